import type { BaseNode } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'
import { readDuration, restUntil, secondsAfter, secondsSchema } from './rest.ts'

export interface WaitNode extends BaseNode {
  kind: 'wait'
  duration_seconds: number
}

export const wait: NodeKindDefinition<WaitNode> = {
  summary: 'users rest for a fixed time',
  fields: { duration_seconds: { ...secondsSchema, description: 'wait' } },
  required: ['duration_seconds'],
  read: ({ reading, path, fields }) => ({
    duration_seconds: readDuration(reading, `${path}.duration_seconds`, fields.duration_seconds),
  }),
  decide: (node, visit) => restUntil(visit, () => secondsAfter(visit.now, node.duration_seconds)),
}
