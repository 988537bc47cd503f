import { tagMatches } from './evaluate.ts'
import type { Node } from './tree.ts'

const TRUE: Node = { kind: 'all', of: [] }
const FALSE: Node = { kind: 'any', of: [] }

/** A tree as it would be for users who had these tags, whatever they have now; null: without the tag. Other tags stay theirs. */
export function withTags(node: Node, tags: ReadonlyMap<string, string | null>, now: Date): Node {
  if (node.kind === 'clause') {
    const value = node.field === 'tag' ? tags.get(node.key) : undefined
    if (value === undefined) return node
    return tagMatches(node, value, now) ? TRUE : FALSE
  }
  return 'of' in node ? { ...node, of: node.of.map((inner) => withTags(inner, tags, now)) } : node
}
