// The wire format of the audit log.

import Type, { type Static, type TStringOptions } from 'typebox'

const moment = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))
const list = (maxItems: number, description: string, item: TStringOptions = { maxLength: 256 }) =>
  Type.Optional(Type.Array(Type.String(item), { maxItems, description }))
const uuid = { format: 'uuid' }

export const AuditQuery = Type.Object({
  start_time: moment('From here on, at most 90 days ago. Required without a cursor.'),
  end_time: moment('Exclusive. Defaults to now.'),
  cursor: Type.Optional(
    Type.String({
      maxLength: 32_768,
      description: 'The next_cursor of a page; it carries its whole query but the limit.',
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100 })),
  app_ids: list(10, 'Apps.', uuid),
  actions: list(20, 'As `app.update` or `key.rotate`.'),
  actor_ids: list(10, 'Ids of keys.', uuid),
  actor_emails: list(10, 'Keys have no email address, so nothing matches.'),
  target_types: list(10, 'As `app` or `key`.'),
  target_ids: list(10, 'Ids of what was changed.'),
  ip_addresses: list(10, 'Addresses that the requests came from.'),
})
export type AuditQuery = Static<typeof AuditQuery>

export const OrganizationPath = Type.Object({ organization_id: Type.String({ format: 'uuid' }) })

const orNull = Type.Unsafe<string | null>({ type: ['string', 'null'] })

const AuditEvent = Type.Object({
  id: Type.String(),
  occurred_at: Type.String(),
  action: Type.String(),
  organization_id: Type.String(),
  app_id: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Null for what concerns the organization alone.',
  }),
  actor: Type.Object({
    type: Type.Unsafe<'key' | 'organization' | 'system'>({
      type: 'string',
      enum: ['key', 'organization', 'system'],
      description: 'A key of the app, a key of the organization, or the operator and the server itself.',
    }),
    id: orNull,
  }),
  targets: Type.Array(Type.Object({ type: Type.String(), id: Type.String() })),
  context: Type.Object({ ip: orNull }),
  metadata: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
})

export const AuditAnswer = Type.Object({
  audit_logs: Type.Array(AuditEvent),
  has_more: Type.Boolean(),
  next_cursor: orNull,
})
export type AuditAnswer = Static<typeof AuditAnswer>
