import Type from 'typebox'
import { object, schema, uuid } from '../document/json-schema.ts'
import { NODE_KINDS } from '../nodes/kinds.ts'
import { MESSAGE_ACTIONS } from '../nodes/node.ts'
import { DAYS, SAMPLE, type SimulationRequest } from './options.ts'

export const SimulateBody = Type.Unsafe<SimulationRequest>(
  object({
    days: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: DAYS.most,
      description: `How many virtual days. Defaults to ${DAYS.usual}.`,
    },
    sample: {
      anyOf: [{ type: 'integer', minimum: 1, maximum: SAMPLE.mostUsers }, { const: 'all' }, { type: 'null' }],
      description: `How many users are simulated, or "all". Defaults to ${SAMPLE.usual}. At most ${SAMPLE.mostUsers}, and ${SAMPLE.mostEvents} entries where an event starts the journey.`,
    },
    start_at: {
      type: ['string', 'null'],
      format: 'date-time',
      description: 'The virtual start, within a year from now. Defaults to now.',
    },
  }) as never,
)

const count = { type: 'integer', minimum: 0 }
const share = { type: 'number', minimum: 0, maximum: 1 }
const when = { type: 'string', format: 'date-time' }
const seconds = { type: 'integer', minimum: 0 }
const shares = { type: 'array', items: object({ within_seconds: seconds, share }) }
const day = { type: 'string', format: 'date', description: 'In UTC.' }

const report = {
  journey_id: uuid(),
  users: { ...count, description: 'How many were walked through: users, or the entries by events.' },
  sample_share: { ...share, description: 'What part of all they are. All counts are of this part.' },
  estimated_total: {
    ...object({ factor: { type: 'number', minimum: 1 }, started: count, sends: count }),
    description: 'What the counts come to for everybody: each of them times the factor.',
  },
  start_at: when,
  end_at: when,
  started: { ...count, description: 'Entries; who enters again counts again.' },
  completed: count,
  exited_early: count,
  still_inside: { ...count, description: 'When the days are over.' },
  time_to_complete: {
    ...object({ p50_seconds: seconds, p90_seconds: seconds, max_seconds: seconds }),
    type: ['object', 'null'],
    description: 'Of those who completed, to the minute; null when nobody did.',
  },
  sends: {
    type: 'array',
    items: object({
      day,
      node_id: uuid(),
      channel: { enum: ['push', 'email', 'sms', 'in_app', 'webhook'] },
      count,
      reachable: { ...count, description: 'Of them, users who have a subscription that can be sent to.' },
    }),
  },
  sends_by_day: { type: 'array', items: object({ day, count, reachable: count }) },
  nodes: {
    type: 'object',
    description: 'By the id of the node.',
    additionalProperties: object({
      kind: { enum: [...NODE_KINDS] },
      arrived: count,
      completed: count,
      exited_early: count,
      waiting_at_end: count,
      most_waiting: {
        ...object({ count, at: when }),
        type: ['object', 'null'],
        description: 'The most who waited here at once, and since when; null when nobody waited.',
      },
    }),
  },
  branches: {
    type: 'object',
    description: 'By the id of the branch.',
    additionalProperties: object({ taken: count }),
  },
  never_reached: { type: 'array', items: uuid(), description: 'Nodes that nobody came to.' },
  pile_ups: {
    type: 'array',
    description: 'Minutes in which more than a fifth of all go on from a node at once; the first 100.',
    items: object({ node_id: uuid(), at: when, count, share: { type: 'number', minimum: 0 } }),
  },
  rates: {
    type: 'array',
    description: 'What the last 30 days said about what cannot be known.',
    items: {
      anyOf: [
        object({ kind: { const: 'event' }, name: { type: 'string' }, shares }),
        object({ kind: { const: 'session' }, shares }),
        object({
          kind: { const: 'message' },
          channel: { enum: ['push', 'email', 'sms'] },
          action: { enum: [...MESSAGE_ACTIONS] },
          share,
          deliveries: count,
        }),
      ],
    },
  },
  assumptions: { type: 'array', items: { type: 'string' }, description: 'What was taken for granted, to be read.' },
}
export const ReportAnswer = schema(object(report, Object.keys(report)))
