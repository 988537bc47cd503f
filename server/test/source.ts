// The sources as the compiler sees them, for tests that hold rules about the code itself.

import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Node, SourceFile } from 'typescript/unstable/ast'
import { isFunctionDeclaration, isIdentifier, isVariableDeclaration } from 'typescript/unstable/ast/is'
import { API, type Checker, type Project } from 'typescript/unstable/sync'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export type Sources = {
  project: Project
  checker: Checker
  /** Files of the product below `folder`, without tests. */
  files: { path: string; file: SourceFile }[]
  close(): void
}

export function openSources(config = `${ROOT}tsconfig.json`, folder = `${ROOT}server/src/`): Sources {
  const api = new API({ cwd: ROOT })
  const project = api.updateSnapshot({ openProject: config }).getProject(config)
  if (!project) throw new Error(`${config} is not a project`)
  const files = project.program
    .getSourceFileNames()
    .filter((name) => name.startsWith(folder) && !name.endsWith('.test.ts'))
    .map((name) => ({ path: relative(folder, name), file: project.program.getSourceFile(name) as SourceFile }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
  return { project, checker: project.checker, files, close: () => api.close() }
}

export function walk(node: Node, visit: (node: Node) => void): void {
  visit(node)
  node.forEachChild((child) => walk(child, visit))
}

/** The outermost thing with a name around a node: what a reader would look for. */
export function ownerOf(node: Node): string {
  let name = 'the file itself'
  for (let at: Node | undefined = node; at; at = at.parent)
    if ((isFunctionDeclaration(at) || isVariableDeclaration(at)) && at.name && isIdentifier(at.name))
      name = at.name.text
  return name
}
