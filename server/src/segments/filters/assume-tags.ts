import { matchesTag } from './evaluate.ts'
import type { FilterNode } from './tree.ts'

const TRUE: FilterNode = { kind: 'all', of: [] }
const FALSE: FilterNode = { kind: 'any', of: [] }

/**
 * Returns the tree as it would be for users who have these tags, whatever their actual tags are. Null means without the
 * tag. Other tags keep their actual values.
 */
export function assumeTags(node: FilterNode, tags: ReadonlyMap<string, string | null>, now: Date): FilterNode {
  if (node.kind === 'clause') {
    const value = node.field === 'tag' ? tags.get(node.key) : undefined
    if (value === undefined) return node
    return matchesTag(node, value, now) ? TRUE : FALSE
  }
  return 'of' in node ? { ...node, of: node.of.map((inner) => assumeTags(inner, tags, now)) } : node
}
