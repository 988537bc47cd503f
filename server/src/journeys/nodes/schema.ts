// Nodes and branches on the wire.

import type { TSchema } from 'typebox'
import { object, schema, text, uuid } from '../document/json-schema.ts'
import { conditionSchema } from './conditions.ts'
import { NODE_DEFINITIONS, NODE_KINDS } from './kinds.ts'

export const nodes = (description?: string) => ({
  type: 'array',
  items: { $ref: '#/components/schemas/JourneyNode' },
  ...(description && { description }),
})

/** The fields of a node that can be changed. */
export const nodeFields: Record<string, object> = Object.assign(
  { client_node_id: text(255, 'Your own name of the node, unique in the journey.'), annotation: text(255) },
  ...NODE_KINDS.map((kind) => NODE_DEFINITIONS[kind].fields),
)

const summaries = NODE_KINDS.map((kind) => `\`${kind}\`: ${NODE_DEFINITIONS[kind].summary}`).join('; ')

/** A node contains nodes, so it is described once, under a name. */
export const components: Record<string, TSchema> = {
  JourneyNode: schema(
    object(
      {
        id: uuid(
          'Assigned by the server. A node that is sent back with its id stays the same, and so do the users who wait there.',
        ),
        kind: {
          enum: NODE_KINDS,
          description: `Decides which of the other fields the node has; it never changes. ${summaries}.`,
        },
        ...nodeFields,
      },
      ['kind'],
      {
        oneOf: NODE_KINDS.map((kind) => ({
          properties: { kind: { const: kind } },
          required: NODE_DEFINITIONS[kind].required,
        })),
      },
    ),
  ),
  JourneyBranch: schema(
    object({
      id: uuid('Assigned by the server.'),
      condition: conditionSchema,
      weight: { type: 'number', minimum: 0, maximum: 100, description: 'split_range: the weights sum to 100.' },
      nodes: nodes(),
    }),
  ),
}
