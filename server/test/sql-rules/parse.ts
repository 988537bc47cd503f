// PostgreSQL's own parser, and walking through what it says. A node is `{ Kind: { field: … } }`.

import { loadModule, parseSync } from 'libpg-query'

await loadModule()

export type Tree = Record<string, unknown>

/** The statements in a text, each as its kind and its tree. */
export const parse = (text: string): { kind: string; tree: Tree }[] =>
  (parseSync(text).stmts ?? []).map(({ stmt }) => unwrap(stmt as Tree))

export function isStatement(text: string): boolean {
  try {
    return parse(text).length > 0
  } catch {
    return false
  }
}

export function unwrap(node: Tree): { kind: string; tree: Tree } {
  const [kind, tree] = Object.entries(node)[0] ?? ['', {}]
  return { kind, tree: tree as Tree }
}

/** `node.Kind` when the node is of that kind. */
export const as = (kind: string, node: unknown): Tree | undefined =>
  (node as Tree | undefined)?.[kind] as Tree | undefined

export const list = (value: unknown): Tree[] => (Array.isArray(value) ? value : [])

export const text = (node: unknown): string => String(as('String', node)?.sval ?? '')

export const names = (value: unknown): string[] => list(value).map(text)

/** Calls `visit` with the kind and tree of every node below; it answers false to go no deeper. */
export function visitNodes(value: unknown, visit: (kind: string, tree: Tree) => boolean | undefined): void {
  if (Array.isArray(value)) for (const item of value) visitNodes(item, visit)
  else if (value !== null && typeof value === 'object')
    for (const [key, inner] of Object.entries(value)) {
      const isNode = /^[A-Z]/.test(key) && inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      if (isNode && visit(key, inner as Tree) === false) continue
      visitNodes(inner, visit)
    }
}
