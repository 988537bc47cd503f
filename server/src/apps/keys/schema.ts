// The wire format of API keys.

import Type, { type Static } from 'typebox'
import { type Permission, permissions } from '../../lib/permissions.ts'
import type { AllowlistMode } from '../app.ts'

const mode = Type.Unsafe<AllowlistMode>({
  type: 'string',
  enum: ['disabled', 'explicit'],
  description: '`explicit` lets the key be used from the listed networks alone; `disabled` (default) from everywhere.',
})
const networks = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 100,
  description: 'Addresses and networks (CIDR).',
})
const permissionList = Type.Array(Type.Unsafe<Permission>({ type: 'string', enum: permissions }), {
  maxItems: permissions.length,
  description: 'What the key may do. Defaults to everything.',
})

const settings = {
  permissions: Type.Optional(permissionList),
  ip_allowlist_mode: Type.Optional(mode),
  ip_allowlist: Type.Optional(networks),
}
const name = Type.String({ minLength: 1, maxLength: 128 })

export const NewKeyBody = Type.Object({ name, ...settings })
export const KeyBody = Type.Object({ name: Type.Optional(name), ...settings })

export const KeysPath = Type.Object({ app_id: Type.String() })
export const KeyPath = Type.Object({ app_id: Type.String(), token_id: Type.String({ format: 'uuid' }) })

export const KeyAnswer = Type.Object({
  token_id: Type.String(),
  name: Type.String(),
  permissions: Type.Array(Type.String()),
  ip_allowlist_mode: mode,
  ip_allowlist: Type.Array(Type.String()),
  created_at: Type.String(),
  updated_at: Type.String(),
  last_used_at: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'To within a few seconds on this server, a minute on others; null when never used.',
  }),
})
export type KeyAnswer = Static<typeof KeyAnswer>
export const KeysAnswer = Type.Object({ tokens: Type.Array(KeyAnswer) })

export const IssuedKeyAnswer = Type.Object({
  token_id: Type.String(),
  formatted_token: Type.String({ description: 'The key. It is shown this once.' }),
})
