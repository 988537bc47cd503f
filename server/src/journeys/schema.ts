// The wire shapes of journeys. Bodies are read by read-journey.ts, which tells everything that is wrong at once and where; these
// schemas describe them.

import Type from 'typebox'
import { attributes, flag, object, schema, tags, text, time, uuid, uuids } from './document/json-schema.ts'
import { MAX_NESTING, MAX_NODES } from './document/read-nodes.ts'
import type { Fields } from './document/reader.ts'
import { JOURNEY_STATES } from './journey.ts'
import { NODE_KINDS } from './nodes/kinds.ts'
import { nodeFields, nodes } from './nodes/schema.ts'
import type { RunState } from './runs/run.ts'
import { REQUESTABLE_STATES } from './states/transitions.ts'

/** Of one user's way through the journey. */
const RUN_STATES: readonly RunState[] = ['waiting', 'completed', 'exited', 'stopped', 'barred']

/** Any object: what is in it is read by hand. */
export const AnyBody = Type.Unsafe<Fields>({ type: 'object' })

const authored = {
  name: text(300),
  description: { ...text(1_024), default: '' },
  audience: {
    description: 'Who enters.',
    anyOf: [
      object(
        {
          kind: { const: 'segment' },
          included_segment_ids: uuids(),
          excluded_segment_ids: uuids(),
          future_additions_only: flag('Those who are in the segments at the activation never enter.'),
        },
        ['kind'],
      ),
      object({ kind: { const: 'event_trigger' }, name: text(255), attributes }, ['kind', 'name']),
    ],
  },
  early_exit: {
    ...object({
      rules: object({
        on_segment: { ...object({ included_segment_ids: uuids() }), type: ['object', 'null'] },
        when_not_in_audience: flag(),
        on_session: flag(),
        on_event: { ...object({ name: text(255) }, ['name']), type: ['object', 'null'] },
      }),
      tag_on_early_exit: tags('Set on who leaves; "" takes a tag away.'),
    }),
    type: ['object', 'null'],
    description: 'Who leaves before the end. At least one rule.',
  },
  reentry_rules: {
    ...object({ duration_seconds: { type: 'integer', minimum: 600 } }, ['duration_seconds']),
    type: ['object', 'null'],
    description: 'How long after leaving one may enter again; null: never. For segment audiences.',
  },
  schedule: {
    ...object({
      start_at: time('At least 5 minutes ahead.'),
      stop_at: time('After the start.'),
      error: { type: ['string', 'null'], readOnly: true, description: 'Why it could not start.' },
    }),
    type: ['object', 'null'],
  },
  nodes: nodes(`In order. At most ${MAX_NODES} in all, ${MAX_NESTING} branching ones inside each other.`),
}
const key = { type: 'string', description: 'As it was answered last; a 409 when the journey was changed since.' }

export const CreateBody = schema(object(authored, ['name']))
export const UpdateBody = schema(
  object({ ...authored, state: { enum: [...REQUESTABLE_STATES] }, concurrency_key: key }),
)
export const UpdateNodeBody = schema(object({ ...nodeFields, concurrency_key: key }))
export const DuplicateBody = Type.Unsafe<{ name?: string | null }>(
  object({ name: { type: ['string', 'null'], minLength: 1, maxLength: 300 } }) as never,
)

export const AppPath = Type.Object({ app_id: Type.String() })
export const JourneyPath = Type.Object({ app_id: Type.String(), journey_id: Type.String() })
export const NodePath = Type.Object({ app_id: Type.String(), journey_id: Type.String(), node_id: Type.String() })
export const VersionPath = Type.Object({ app_id: Type.String(), journey_id: Type.String(), version: Type.String() })
export const ListQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 50, default: 50 }),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before.' })),
})
export const VersionsQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  before: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'Only older ones than this.' }),
  ),
})

const summary = {
  id: uuid(),
  app_id: uuid(),
  name: { type: 'string' },
  state: { enum: [...JOURNEY_STATES] },
  created_at: { type: 'string', format: 'date-time' },
  updated_at: { type: 'string', format: 'date-time' },
  started_at: time('When it became active.'),
  archived_at: time('When it was stopped.'),
  created_source: { type: 'string', description: 'As public_api.' },
}
const full = { ...summary, ...authored, concurrency_key: { type: 'string', description: 'Opaque.' } }
export const JourneyAnswer = schema(object(full, Object.keys(full)))
export const JourneysAnswer = schema(
  object(
    {
      journeys: { type: 'array', items: object(summary, Object.keys(summary)) },
      has_more: { type: 'boolean' },
      next_cursor: { type: 'string', description: 'Only where there are more.' },
    },
    ['journeys', 'has_more'],
  ),
)
export const DeletedAnswer = Type.Object({ success: Type.Boolean() })

const count = { type: 'integer', minimum: 0 }
export const StatsAnswer = schema(
  object(
    {
      id: uuid(),
      started: count,
      completed: count,
      exited_early: count,
      nodes: {
        type: 'object',
        description: 'By the id of the node.',
        additionalProperties: object({
          kind: { enum: [...NODE_KINDS] },
          waiting: count,
          completed: count,
          exited_early: count,
          message_stats: {
            ...object({ totals: { type: 'object', additionalProperties: { type: 'number' } } }),
            description: 'Of nodes that send.',
          },
        }),
      },
      branches: {
        type: 'object',
        description: 'By the id of the branch.',
        additionalProperties: object({ completed: count }),
      },
    },
    ['id', 'started', 'completed', 'exited_early', 'nodes', 'branches'],
  ),
)

const version = {
  version: { type: 'integer' },
  changed_at: { type: 'string', format: 'date-time' },
  changed_by: object({ kind: { type: 'string' }, id: { type: ['string', 'null'], description: 'Of the key.' } }),
  fields: { type: 'array', items: { type: 'string' }, description: 'What is different from the version before.' },
}
export const VersionsAnswer = schema(object({ versions: { type: 'array', items: object(version) } }, ['versions']))
export const VersionAnswer = schema(object({ ...version, state: { enum: [...JOURNEY_STATES] }, ...authored }))

const whom = {
  external_id: Type.Optional(Type.String()),
  onesignal_id: Type.Optional(Type.String()),
}
export const WhomQuery = Type.Object(whom)
export const AddUserBody = Type.Object({
  ...whom,
  event: Type.Optional(
    Type.Object(
      { properties: Type.Optional(Type.Record(Type.String(), Type.Unknown())) },
      { description: 'For journeys that an event triggers: the event by which the user enters.' },
    ),
  ),
})
export const AddedAnswer = Type.Object({ run_id: Type.String({ format: 'uuid' }) })
export const RemovedAnswer = Type.Object({
  success: Type.Boolean(),
  removed: Type.Integer({ description: 'How many runs ended: more than one only where events trigger the journey.' }),
})
export const TraceQuery = Type.Object({
  ...whom,
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before.' })),
})

const kind = { type: ['string', 'null'], description: 'Null of a node that is not in the journey any more.' }
const run = {
  run_id: uuid(),
  state: { enum: [...RUN_STATES] },
  entered_at: { type: 'string', format: 'date-time' },
  ended_at: time(),
  entry_event: { type: ['string', 'null'], description: 'The name of the event by which the user entered.' },
  node: {
    ...object({ id: uuid(), kind }, ['id', 'kind']),
    type: ['object', 'null'],
    description: 'Where the user is, or was when they left early.',
  },
  since: time('When the user came to the node.'),
  moves_at: time(
    'When the user leaves the node if nothing happens before; null where only something that happens moves them.',
  ),
  waits_for: {
    type: 'array',
    items: { type: 'string' },
    description: 'Kinds of the conditions that would move the user.',
  },
  held: { type: 'boolean', description: 'The user is at a node that sends, and the app may not send.' },
  held_reason: { type: ['string', 'null'] },
  may_enter_again_at: time('Of a run that is over.'),
  explanation: { type: 'string', description: 'All of it in words.' },
  path: {
    type: 'array',
    description: 'What the user came by, in order.',
    items: object({ node_id: uuid(), branch_id: uuid(), kind, at: time() }, ['kind', 'at']),
  },
}
export const TraceAnswer = schema(
  object(
    {
      journey_id: uuid(),
      journey_state: { enum: [...JOURNEY_STATES] },
      onesignal_id: uuid(),
      runs: { type: 'array', items: object(run, Object.keys(run)) },
      next_cursor: { type: 'string', description: 'Only where there are more.' },
    },
    ['journey_id', 'journey_state', 'onesignal_id', 'runs'],
  ),
)
