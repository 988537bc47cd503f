// The wire shapes of the development mailbox.

import Type, { type Static } from 'typebox'

const nullable = (description?: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], ...(description && { description }) })

export const AppPath = Type.Object({ app_id: Type.String() })
export const MailPath = Type.Object({ app_id: Type.String(), mail_id: Type.String({ format: 'uuid' }) })

export const MailboxQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  cursor: Type.Optional(Type.String({ maxLength: 200, description: 'next_cursor of the page before.' })),
  to: Type.Optional(Type.String({ maxLength: 254, description: 'Mail to this address alone, in any case.' })),
})
export type MailboxQuery = Static<typeof MailboxQuery>

const summary = {
  id: Type.String({ format: 'uuid' }),
  at: Type.String({ format: 'date-time' }),
  from: Type.String(),
  to: Type.String(),
  subject: Type.String(),
  message_id: nullable('The message it belongs to; null for notices of the server.'),
}
export const MailboxAnswer = Type.Object({
  mails: Type.Array(Type.Object(summary)),
  next_cursor: nullable('Null on the last page.'),
})
export type MailboxAnswer = Static<typeof MailboxAnswer>

export const MailAnswer = Type.Object({
  ...summary,
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  html: nullable(),
  text: nullable(),
  raw: Type.String({ description: 'All of it, as it would have gone out.' }),
})
export type MailAnswer = Static<typeof MailAnswer>
export const EmptiedAnswer = Type.Object({ deleted: Type.Integer() })
