// The wire shapes of outcomes.

import Type, { type Static } from 'typebox'
import { attributions } from './measure.ts'

const optional = <Value>(schema: object) => Type.Optional(Type.Unsafe<Value | null>(schema))
const ids = () =>
  optional<string[]>({ type: ['array', 'null'], items: { type: 'string', maxLength: 64 }, maxItems: 100 })
const MAX_WEIGHT = 1_000_000_000_000

const common = {
  app_id: Type.String(),
  id: Type.String({ minLength: 1, description: 'The name of the outcome.' }),
  onesignal_id: optional<string>({ type: ['string', 'null'], maxLength: 64 }),
  subscription: optional<{ id?: string | null; type?: string | null }>({
    type: ['object', 'null'],
    properties: { id: { type: ['string', 'null'] }, type: { type: ['string', 'null'], maxLength: 64 } },
  }),
  device_type: optional<number | string>({ type: ['integer', 'string', 'null'], description: 'Of older SDKs.' }),
  weight: optional<number>({ type: ['number', 'null'], minimum: -MAX_WEIGHT, maximum: MAX_WEIGHT }),
  session_time: optional<number>({
    type: ['integer', 'null'],
    minimum: 0,
    maximum: 31_622_400,
    description: 'Seconds, of os__session_duration.',
  }),
  timestamp: optional<number>({
    type: ['number', 'null'],
    description: 'Unix seconds, where it happened before it could be told.',
  }),
}

export const MeasureBody = Type.Object({
  ...common,
  direct: optional<boolean>({
    type: ['boolean', 'null'],
    description: 'True after a click, false after a message that was seen; without it, because of none.',
  }),
  notification_ids: ids(),
})
export type MeasureBody = Static<typeof MeasureBody>

type MeasureSource = { notification_ids?: string[] | null; in_app_message_ids?: string[] | null } | null
const source = {
  type: ['object', 'null'],
  properties: {
    notification_ids: { type: ['array', 'null'], items: { type: 'string', maxLength: 64 }, maxItems: 100 },
    in_app_message_ids: { type: ['array', 'null'], items: { type: 'string', maxLength: 64 }, maxItems: 100 },
  },
}
export const MeasureSourcesBody = Type.Object({
  ...common,
  sources: optional<{ direct?: MeasureSource; indirect?: MeasureSource }>({
    type: ['object', 'null'],
    properties: { direct: source, indirect: source },
  }),
})
export type MeasureSourcesBody = Static<typeof MeasureSourcesBody>

export const Nothing = Type.Object({})
export const AppPath = Type.Object({ app_id: Type.String() })

const names = (description: string) => Type.Optional(Type.Array(Type.String({ maxLength: 10_000 }), { description }))
const ATTRIBUTIONS = [...attributions, 'total'] as const
const RANGES = ['1h', '1d', '1mo'] as const

/** Also part of the query of a message's view. */
export const outcomeQuery = {
  outcome_names: names('Names with `.count` or `.sum` behind them, separated by commas.'),
  'outcome_names[]': names('The same, one by one.'),
  outcome_time_range: Type.Optional(
    Type.Unsafe<(typeof RANGES)[number]>({ type: 'string', enum: [...RANGES], description: 'Defaults to 1h.' }),
  ),
  outcome_platforms: Type.Optional(Type.String({ maxLength: 100, description: 'Device types, separated by commas.' })),
  outcome_attribution: Type.Optional(
    Type.Unsafe<(typeof ATTRIBUTIONS)[number]>({
      type: 'string',
      enum: [...ATTRIBUTIONS],
      description: 'Defaults to total.',
    }),
  ),
}
export const OutcomesQuery = Type.Object(outcomeQuery)
export type OutcomesQuery = Static<typeof OutcomesQuery>

export const OutcomeObject = Type.Object({
  id: Type.String(),
  value: Type.Number(),
  aggregation: Type.Union([Type.Literal('count'), Type.Literal('sum')]),
})
export type OutcomeObject = Static<typeof OutcomeObject>
export const OutcomesAnswer = Type.Object({ outcomes: Type.Array(OutcomeObject) })
