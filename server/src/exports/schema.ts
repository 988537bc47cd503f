// The wire shapes of exports.

import Type, { type Static } from 'typebox'

export const MessagePath = Type.Object({ message_id: Type.String() })
export const AppQuery = Type.Object({ app_id: Type.String() })

const optional = <Value>(schema: object) => Type.Optional(Type.Unsafe<Value | null>(schema))

export const HistoryBody = Type.Object({
  app_id: Type.String(),
  events: Type.Union([Type.Literal('sent'), Type.Literal('clicked')], {
    description: 'The users it was sent to, or who clicked it.',
  }),
  email: optional<string>({
    type: ['string', 'null'],
    maxLength: 254,
    description: 'Taken for the sake of clients; no mail is sent. Poll the address.',
  }),
})

export const SubscriptionsBody = Type.Object({
  extra_fields: optional<string[]>({
    type: ['array', 'null'],
    items: { type: 'string', maxLength: 64 },
    maxItems: 50,
    description:
      'location, country, rooted, notification_types, ip, external_user_id, web_auth, web_p256. Others are left out.',
  }),
  last_active_since: optional<string>({
    type: ['string', 'null'],
    pattern: '^\\d{1,11}$',
    description: 'Only those that were active at or after this time, in Unix seconds.',
  }),
  segment_name: optional<string>({
    type: ['string', 'null'],
    maxLength: 128,
    description: 'Only those of this segment.',
  }),
  include_unsubscribed: optional<boolean>({
    type: ['boolean', 'null'],
    description:
      'With segment_name: also those who are in the segment and not subscribed. Defaults to false. Without segment_name all are exported.',
  }),
})
export type SubscriptionsBody = Static<typeof SubscriptionsBody>

export const HistoryAnswer = Type.Object({ success: Type.Literal(true), destination_url: Type.String() })
export const FileAnswer = Type.Object({ csv_file_url: Type.String() })

export const FilePath = Type.Object({ app_id: Type.String(), export_id: Type.String(), file: Type.String() })
export const FileBytes = Type.String({ description: 'CSV with a header line, in gzip.', format: 'binary' })
