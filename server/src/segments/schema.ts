// The wire shapes of segments. fields.ts defines what filters may contain.

import Type, { type Static } from 'typebox'
import type { SegmentFilter } from './filters/tree.ts'

const Filters = Type.Unsafe<SegmentFilter[]>({
  type: 'array',
  description:
    'Filters (`field`, `relation` and operands), `{"operator": "AND" | "OR"}` between them, and groups `{"group": [...]}`. Neighbours are joined by AND, which binds tighter than OR. At most 200 entries.',
  items: { type: 'object' },
})
const Name = Type.String({ minLength: 1, maxLength: 128 })
const Names = Type.Optional(Type.Array(Name, { maxItems: 100, description: 'Names.' }))
const Description = Type.Optional(
  Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 255, description: '"" clears it.' }),
)

export const CreateSegmentBody = Type.Object({
  id: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'uuid' })),
  name: Name,
  description: Description,
  filters: Filters,
})
export type CreateSegmentBody = Static<typeof CreateSegmentBody>

export const UpdateSegmentBody = Type.Object({
  name: Name,
  description: Description,
  filters: Type.Optional(
    Type.Unsafe<SegmentFilter[] | null>({
      type: ['array', 'null'],
      items: { type: 'object' },
      description: 'Replace all.',
    }),
  ),
})
export type UpdateSegmentBody = Static<typeof UpdateSegmentBody>

export const PreviewBody = Type.Object({ filters: Filters })

export const EstimateBody = Type.Object({
  app_id: Type.String(),
  included_segments: Names,
  excluded_segments: Names,
  filters: Type.Optional(Filters),
  include_aliases: Type.Optional(
    Type.Unsafe<Record<string, string[]>>({
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'string' }, maxItems: 20_000 },
      description: 'Label and values. Needs target_channel.',
    }),
  ),
  target_channel: Type.Optional(Type.Union([Type.Literal('push'), Type.Literal('email'), Type.Literal('sms')])),
})
export type EstimateBody = Static<typeof EstimateBody>

export const AppPath = Type.Object({ app_id: Type.String() })
export const SegmentPath = Type.Object({ app_id: Type.String(), segment_id: Type.String() })
export const ListQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 300, default: 300 }),
  offset: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0 }),
})
export const ViewQuery = Type.Object({
  'include-segment-detail': Type.Optional(Type.Boolean({ description: 'Answer the payload too.' })),
})
export const ExplainSegmentQuery = Type.Object({ alias_label: Type.String(), alias_id: Type.String() })
export const MembersQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
  cursor: Type.Optional(Type.String({ format: 'uuid', description: 'next_cursor of the page before.' })),
})

const SegmentItem = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
  created_at: Type.String(),
  updated_at: Type.String(),
  app_id: Type.String(),
  read_only: Type.Boolean(),
  is_active: Type.Boolean(),
})
export type SegmentItem = Static<typeof SegmentItem>

export const SegmentsAnswer = Type.Object({
  total_count: Type.Integer(),
  offset: Type.Integer(),
  limit: Type.Integer(),
  segments: Type.Array(SegmentItem),
})

export const SegmentAnswer = Type.Object({
  subscriber_count: Type.Integer({ description: 'Subscriptions in the segment, subscribed or not.' }),
  payload: Type.Optional(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      description: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
      created_at: Type.Integer({ description: 'Unix seconds.' }),
      source: Type.Union([Type.Literal('default'), Type.Literal('custom')]),
      filters: Filters,
    }),
  ),
})

export const SavedAnswer = Type.Object({ success: Type.Boolean(), id: Type.String() })
export const SuccessAnswer = Type.Object({ success: Type.Boolean() })

const ByChannel = Type.Object({ push: Type.Integer(), email: Type.Integer(), sms: Type.Integer() })
export const EstimateAnswer = Type.Object({
  count: Type.Integer(),
  uncapped_count: Type.Integer(),
  cap_applied: Type.Boolean(),
  mobile_suppressed: Type.Boolean(),
  mobile_excluded_count: Type.Integer(),
  by_channel: ByChannel,
})
export type EstimateAnswer = Static<typeof EstimateAnswer>

const Member = Type.Object({ subscription_id: Type.String(), onesignal_id: Type.String() })
export const MembersAnswer = Type.Object({
  members: Type.Array(Member),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
})
export type MembersAnswer = Static<typeof MembersAnswer>
export const PreviewAnswer = Type.Object({ subscriber_count: Type.Integer(), ...MembersAnswer.properties })

export const ExplainSegmentAnswer = Type.Object({
  onesignal_id: Type.String(),
  matches: Type.Boolean({ description: 'Is any subscription of the user in the segment?' }),
  subscriptions: Type.Array(
    Type.Object({
      id: Type.String(),
      type: Type.String(),
      matches: Type.Boolean(),
      clauses: Type.Array(
        Type.Object({
          entry: Type.String({ description: 'Where the filter stands: `filters[2].group[0]`.' }),
          filter: Type.Unsafe<SegmentFilter>({ type: 'object' }),
          matches: Type.Boolean(),
          value: Type.Unsafe<string | number | boolean | null>({ description: 'What was seen.' }),
        }),
      ),
    }),
  ),
})
export type ExplainSegmentAnswer = Static<typeof ExplainSegmentAnswer>
