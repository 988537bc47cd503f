// The wire shapes of live activities.

import Type, { type Static } from 'typebox'
import type { SegmentFilter } from '../../segments/filters/tree.ts'
import { contentFields } from '../../templates/content.ts'
import { CreateMessageBody } from '../schema.ts'

const optional = <Value>(schema: object) => Type.Optional(Type.Unsafe<Value | null>(schema))
const object = (description: string) => Type.Unsafe<Record<string, unknown>>({ type: 'object', description })
const name = Type.String({ minLength: 1, maxLength: 128 })
const moment = (description: string) =>
  optional<number>({ type: ['integer', 'null'], minimum: 0, maximum: 99_999_999_999, description })
const activityName = Type.String({ minLength: 1, maxLength: 256 })

const common = {
  name,
  event_updates: object('What it shows: the content state that the app declares.'),
  stale_date: moment('Unix seconds: when what it shows is out of date.'),
  priority: contentFields.priority,
  ios_relevance_score: optional<number>({ type: ['number', 'null'], minimum: 0, maximum: 100 }),
  idempotency_key: optional<string>({
    type: ['string', 'null'],
    description: 'A UUID; the same key, the same answer.',
  }),
}
const { contents, headings, ios_sound } = contentFields
const { include_aliases, include_subscription_ids, included_segments, excluded_segments, filters } =
  CreateMessageBody.properties

export const StartActivityBody = Type.Object({
  ...common,
  event: Type.Literal('start'),
  activity_id: activityName,
  event_attributes: object('What it is about: the attributes that the app declares.'),
  contents,
  headings,
  ios_sound,
  include_aliases,
  include_subscription_ids,
  included_segments,
  excluded_segments,
  filters,
})
export type StartActivityBody = Static<typeof StartActivityBody> & { filters?: SegmentFilter[] | null }

export const UpdateActivityBody = Type.Object({
  ...common,
  event: Type.Union([Type.Literal('update'), Type.Literal('end')]),
  contents,
  headings,
  sound: ios_sound,
  ios_sound,
  dismissal_date: moment('Of an end: when it leaves the lock screen, in Unix seconds.'),
})
export type UpdateActivityBody = Static<typeof UpdateActivityBody>

export const StartedAnswer = Type.Object({ notification_id: Type.String() })
export const UpdatedAnswer = Type.Object({ id: Type.String() })
export const Nothing = Type.Object({})

const uuid = Type.String({ format: 'uuid' })
const app = { app_id: Type.String() }
export const TypePath = Type.Object({ ...app, activity_type: activityName })
export const ActivityPath = Type.Object({ ...app, activity_id: activityName })
export const ActivityTokenPath = Type.Object({ ...app, activity_id: activityName, subscription_id: uuid })
export const TypeTokenPath = Type.Object({ ...app, activity_type: activityName, subscription_id: uuid })

export const ClickBody = Type.Object({
  activity_id: activityName,
  notification_id: optional<string>({
    type: ['string', 'null'],
    format: 'uuid',
    description: 'The message that started or changed it last: the click is counted for it.',
  }),
})

const pushToken = Type.String({ minLength: 1, maxLength: 4_096 })
export const TokenBody = Type.Object({ subscription_id: uuid, push_token: pushToken })
export const ActivityTokenBody = Type.Object({
  activity_token: Type.Optional(pushToken),
  token: Type.Optional(pushToken),
})
