import { tags } from '../document/json-schema.ts'
import { MAX_TAGS, readTags } from '../document/read-fields.ts'
import { isPresent } from '../document/reader.ts'
import type { DocumentReading } from '../document/reading.ts'
import type { BaseNode } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'

export interface TagNode extends BaseNode {
  kind: 'tag'
  assignments: Record<string, string>
}

export const tag: NodeKindDefinition<TagNode> = {
  summary: 'sets and removes tags of the user',
  fields: { assignments: tags('tag. Values may hold Liquid; "" removes the tag.') },
  required: ['assignments'],
  read: ({ reading, path, fields }) => ({
    assignments: readAssignments(reading, `${path}.assignments`, fields.assignments),
  }),
  decide: ({ assignments }) => ({ kind: 'continues', effect: { kind: 'tag', assignments } }),
}

function readAssignments(reading: DocumentReading, path: string, value: unknown): Record<string, string> {
  if (!isPresent(value)) reading.reader.report(path, 'is required')
  const assignments = readTags(reading, path, value)
  if (isPresent(value) && Object.keys(assignments).length === 0)
    reading.reader.report(path, `must have 1 to ${MAX_TAGS} tags`)
  return assignments
}
