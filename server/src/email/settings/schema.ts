// The wire shapes of an app's email settings.

import Type, { type Static } from 'typebox'
import { type RelayTls, relayTls } from '../../apps/email-settings.ts'
import { MASK } from '../../apps/schema.ts'

const text = (maxLength: number, description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength, description }))
const number = (minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum, maximum, description }))

export const AppPath = Type.Object({ app_id: Type.String() })

const relay = {
  host: Type.String({ minLength: 1, maxLength: 253, description: 'Name or public address of the relay.' }),
  port: number(1, 65_535, 'Defaults to 587, and to 465 with implicit TLS.'),
  tls: Type.Optional(
    Type.Unsafe<RelayTls | null>({
      enum: [...relayTls, null],
      description:
        'Defaults to `starttls` (`implicit` on port 465); `opportunistic` and `none` only without a password.',
    }),
  ),
  username: text(256, 'To sign in with; together with password.'),
  pool: number(1, 50, 'Connections per worker. Defaults to 5.'),
  per_second: number(1, 100_000, 'Emails per second and worker. Defaults to as fast as the relay accepts them.'),
}
const password = text(1_024, `Write-only; "${MASK}" or nothing leaves it as it is.`)

const mode = (description: string) =>
  Type.Unsafe<'relay' | 'direct' | null>({ enum: ['relay', 'direct', null], description })
const sender = {
  from_address: text(254, 'Who sends where a message does not say it.'),
  from_name: text(128, 'The name beside it.'),
}

const RelayBody = Type.Object({ ...relay, password })
export type RelayBody = Static<typeof RelayBody>

export const EmailSettingsBody = Type.Object({
  mode: Type.Optional(mode('Null: as the server does it. `relay` where a relay is given and nothing else is said.')),
  relay: Type.Optional(Type.Unsafe<RelayBody | null>({ ...RelayBody, type: ['object', 'null'] })),
  ...sender,
})
export type EmailSettingsBody = Static<typeof EmailSettingsBody>

const RelayAnswer = Type.Object({
  ...relay,
  password: Type.Unsafe<string | null>({ type: ['string', 'null'], description: `"${MASK}" when there is one.` }),
})
export const EmailSettingsAnswer = Type.Object({
  mode: mode('Null: as the server does it.'),
  relay: Type.Unsafe<Static<typeof RelayAnswer> | null>({ ...RelayAnswer, type: ['object', 'null'] }),
  from_address: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
  from_name: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
  way: Type.Unsafe<'relay' | 'direct' | 'catch'>({
    type: 'string',
    enum: ['relay', 'direct', 'catch'],
    description: 'How mail goes out now. `catch`: it is kept in the mailbox, and sent nowhere.',
  }),
  paused_since: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    description: 'Since when email is paused because too many people complained.',
  }),
})
export type EmailSettingsAnswer = Static<typeof EmailSettingsAnswer>
