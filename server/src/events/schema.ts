// The wire format of custom events. What a JSON schema cannot express is checked in read-event.ts.

import Type, { type Static } from 'typebox'

/** SDKs send null for what they do not know; it means the same as leaving the field out. */
const orNull = <Value>(type: string, options: object) =>
  Type.Optional(Type.Unsafe<Value | null>({ type: [type, 'null'], ...options }))

const properties = (description: string) => orNull<Record<string, unknown>>('object', { description })
const KEY = 'A UUID. What comes with the same key within 24 hours is accepted and not stored again.'

export const MAX_NAME = 128
/** A body of 1 MB can hold a few more of the very smallest; one statement should not. */
export const MAX_EVENTS = 10_000

export const EventBody = Type.Object({
  name: Type.String({ minLength: 1, maxLength: MAX_NAME }),
  external_id: orNull<string>('string', {
    minLength: 1,
    description: 'Whose event it is. One of the two is required.',
  }),
  onesignal_id: orNull<string>('string', {
    description: 'Whose event it is. SDKs send both; then this one counts.',
  }),
  timestamp: orNull<string>('string', {
    format: 'date-time',
    description: 'When it happened, ISO 8601; now if absent or in the future.',
  }),
  idempotency_key: orNull<string>('string', { description: KEY }),
  properties: properties('Anything that is to be known of the event.'),
  payload: properties('The same, as SDKs and older clients call it; read where there are no properties.'),
})
export type EventBody = Static<typeof EventBody>

export const EventsBody = Type.Object({
  events: Type.Array(EventBody, { minItems: 1, maxItems: MAX_EVENTS }),
  idempotency_key: orNull<string>('string', {
    description: `${KEY} Stands for the events that have none of their own, by their place in the list.`,
  }),
})
export type EventsBody = Static<typeof EventsBody>

export const EventsAnswer = Type.Object({
  errors: Type.Optional(
    Type.Array(
      Type.Object({
        event_user_id: Type.String({ description: 'As the event gave it.' }),
        event_id: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Its idempotency_key.' }),
        error: Type.Object({
          code: Type.String({ description: '`not found`, `too large` or `too old`' }),
          title: Type.String(),
          meta: Type.Object({ index: Type.Integer({ description: 'Its place in the list, from 0.' }) }),
        }),
      }),
      { description: 'The events that were not accepted; absent when all were.' },
    ),
  ),
})
export type EventsAnswer = Static<typeof EventsAnswer>

export const AppPath = Type.Object({ app_id: Type.String() })
export const AliasPath = Type.Object({ app_id: Type.String(), alias_label: Type.String(), alias_id: Type.String() })

export const HistoryQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 300, default: 50 }),
  cursor: Type.Optional(Type.String({ description: 'The `next_cursor` of the page before.' })),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_NAME, description: 'Only events of this name.' })),
})
export type HistoryQuery = Static<typeof HistoryQuery>

export const HistoryAnswer = Type.Object({
  events: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      timestamp: Type.String({ format: 'date-time', description: 'When it happened.' }),
      received_at: Type.String({ format: 'date-time', description: 'When the server was told.' }),
      properties: Type.Unsafe<object>({ type: 'object' }),
    }),
  ),
  next_cursor: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Null on the last page.' }),
})
export type HistoryAnswer = Static<typeof HistoryAnswer>
