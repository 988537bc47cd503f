import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** All of our files, as paths from the root, with their texts. */
export const readFiles = () =>
  new Map(
    globSync('server/{src,test}/**/*.ts', { cwd: ROOT }).map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]),
  )

/** These, and all that import one of them or somebody who does. */
export function reaching(files: ReadonlyMap<string, string>, targets: Iterable<string>): Set<string> {
  const importers = new Map<string, string[]>()
  for (const [path, text] of files)
    for (const [, to = ''] of text.matchAll(/\b(?:from|import)[\s(]+'(\.[^']+)'/g)) {
      const target = join(dirname(path), to)
      importers.set(target, [...(importers.get(target) ?? []), path])
    }
  const found = new Set(targets)
  // A set is walked to its end, also to what is added on the way.
  for (const path of found) for (const importer of importers.get(path) ?? []) found.add(importer)
  return found
}
