// How nodes and branches look on the wire, and the words that schemas of journeys are made of.

import Type, { type TSchema } from 'typebox'
import { EVENT_OPERATORS } from '../journey.ts'
import { MESSAGE_ACTIONS, NODE_KINDS, type NodeKind } from './node.ts'

export const uuid = (description?: string) => ({ type: 'string', format: 'uuid', ...(description && { description }) })
export const uuids = (description?: string) => ({ type: 'array', items: uuid(), ...(description && { description }) })
export const text = (maxLength: number, description?: string) => ({
  type: 'string',
  maxLength,
  ...(description && { description }),
})
export const moment = (description?: string) => ({
  type: ['string', 'null'],
  format: 'date-time',
  ...(description && { description }),
})
export const flag = (description?: string) => ({ type: 'boolean', default: false, ...(description && { description }) })
export const object = (properties: object, required: string[] = [], more: object = {}) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  ...more,
})
export const tags = (description: string) => ({
  type: 'object',
  additionalProperties: text(1_024),
  description,
})
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
export const schema = (it: object): TSchema => Type.Unsafe(it as never)

export const attributes = {
  type: 'array',
  maxItems: 1,
  description: 'One group at most, all of which must hold.',
  items: {
    type: 'array',
    items: object(
      {
        key: text(255),
        operator: { enum: [...EVENT_OPERATORS] },
        value: text(1_024, 'Not for exists and not_exists.'),
      },
      ['key', 'operator'],
    ),
  },
}
const condition = {
  description: 'Decides who takes the branch.',
  anyOf: [
    object(
      {
        kind: { const: 'segment_membership' },
        included_segment_ids: uuids('In any of these.'),
        excluded_segment_ids: uuids('And in none of these.'),
      },
      ['kind'],
    ),
    object(
      {
        kind: { const: 'on_notification_action' },
        action: { enum: [...MESSAGE_ACTIONS] },
        sending_node_id: uuid('The node that sends the message.'),
        client_node_id: text(255, 'The same by its client_node_id; not answered.'),
      },
      ['kind', 'action'],
    ),
    object(
      {
        kind: { const: 'event_trigger' },
        name: text(255),
        attributes,
        entry_event_match_attributes: {
          type: 'array',
          description: 'For journeys that an event triggers: properties that must be as those of the entry event.',
          items: object({ key: text(255), entry_key: text(255, 'Of the entry event; the same unless told.') }, ['key']),
        },
      },
      ['kind', 'name'],
    ),
  ],
}
const seconds = { type: 'integer', minimum: 60, maximum: 31_556_952 }
const point = object({
  hour: { type: 'integer', minimum: 0, maximum: 23 },
  minute: { type: 'integer', minimum: 0, maximum: 59, default: 0 },
})
export const nodes = (description?: string) => ({
  type: 'array',
  items: ref('JourneyNode'),
  ...(description && { description }),
})

/** What can be changed of a node. */
export const nodeFields = {
  client_node_id: text(255, 'Your own name of the node, unique in the journey.'),
  annotation: text(255),
  duration_seconds: { ...seconds, description: 'wait' },
  relative_to: { enum: ['schedule_in_timezone', 'last_active_time'], description: 'time_window' },
  windows: {
    type: 'array',
    description: 'time_window, for schedule_in_timezone. Each is at least 15 minutes long.',
    items: object(
      {
        start: point,
        end: { ...point, description: 'Not after the start: on the next day.' },
        day_of_week: {
          type: 'integer',
          minimum: 1,
          maximum: 7,
          description: '1 is Monday; every day without it.',
        },
      },
      ['start', 'end'],
    ),
  },
  time_zone: { type: 'string', default: 'UTC', description: 'time_window: for users whose own is not known.' },
  use_user_time_zone: flag('time_window'),
  template_id: uuid('send_push, send_email, send_sms: a template of that channel.'),
  iam_id: uuid('send_iam: an in-app message.'),
  user_ttl_seconds: { type: ['integer', 'null'], minimum: 1, description: 'send_iam: how long it is granted.' },
  webhook_id: uuid('send_webhook: a journey webhook.'),
  assignments: tags('tag. Values may hold Liquid; "" takes the tag away.'),
  randomize_on_entry: flag('split_range: whether who comes again is drawn anew.'),
  branches: { type: 'array', items: ref('JourneyBranch'), description: 'split_range, yes_no, wait_until' },
  expiration: {
    ...object({ duration_seconds: seconds, exits: flag('Whether who waited so long leaves the journey.') }),
    type: ['object', 'null'],
    description: 'wait_until: how long users wait; for ever without it.',
  },
}

/** What each kind cannot do without. */
const REQUIRED: Record<NodeKind, (keyof typeof nodeFields)[]> = {
  wait: ['duration_seconds'],
  time_window: ['relative_to'],
  send_push: ['template_id'],
  send_email: ['template_id'],
  send_sms: ['template_id'],
  send_iam: ['iam_id'],
  send_webhook: ['webhook_id'],
  tag: ['assignments'],
  split_range: ['branches'],
  yes_no: ['branches'],
  wait_until: ['branches'],
}

/** A node contains nodes, so it is described once, under a name. */
export const components: Record<string, TSchema> = {
  JourneyNode: schema(
    object(
      {
        id: uuid('Given by the server. Sent back, it keeps the node and those who wait there.'),
        kind: { enum: [...NODE_KINDS], description: 'Says which of the other fields it has; it never changes.' },
        ...nodeFields,
      },
      ['kind'],
      { oneOf: NODE_KINDS.map((kind) => ({ properties: { kind: { const: kind } }, required: REQUIRED[kind] })) },
    ),
  ),
  JourneyBranch: schema(
    object({
      id: uuid('Given by the server.'),
      condition,
      weight: { type: 'number', minimum: 0, maximum: 100, description: 'split_range: all of them sum to 100.' },
      nodes: nodes(),
    }),
  ),
}
