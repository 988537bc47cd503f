// The wire format of an app's SMS provider. Which field belongs to which kind is checked in read.ts.

import Type, { type Static } from 'typebox'
import { MASK } from '../schema.ts'

/** Clients send null for what they do not know; it means the same as leaving the field out. */
const text = (maxLength: number, description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength, description }))
const number = (minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum, maximum, description }))
const words = (description: string) =>
  Type.Optional(
    Type.Unsafe<string[] | null>({
      type: ['array', 'null'],
      maxItems: 50,
      items: { type: 'string', minLength: 1, maxLength: 32 },
      description,
    }),
  )
const secret = (what: string) => text(256, `${what} Write-only; "${MASK}" or nothing leaves it as it is.`)

const settings = {
  account_sid: text(64, 'twilio: the account.'),
  messaging_service_sid: text(64, 'twilio: a pool of senders. This or `from` is required.'),
  from: text(
    20,
    'Who sends, unless the message says it: a number in E.164 form, a short code or a name. Required for smpp.',
  ),
  host: text(253, 'smpp: name or public address of the message centre.'),
  port: number(1_024, 65_535, 'For smpp. Defaults to 2775, and to 3550 with tls.'),
  tls: Type.Optional(Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], description: 'smpp: over TLS.' })),
  system_id: text(15, 'smpp: the name to sign in with.'),
  system_type: text(12, 'smpp: where the message centre asks for one.'),
  source_addr_ton: number(0, 6, 'smpp: type of number of the sender, where not the one that its form says.'),
  source_addr_npi: number(0, 18, 'smpp: numbering plan of the sender, together with source_addr_ton.'),
  opt_out_words: words('Words that unsubscribe who texts them, beside STOP and the like.'),
  opt_in_words: words('Words that subscribe again, beside START and the like.'),
}

const kinds = ['twilio', 'smpp'] as const

export const SmsBody = Type.Object({
  kind: Type.Unsafe<(typeof kinds)[number]>({ enum: [...kinds] }),
  auth_token: secret('twilio: the account’s token.'),
  password: secret('smpp: the password to sign in with.'),
  ...settings,
})
export type SmsBody = Static<typeof SmsBody>

export const SmsPath = Type.Object({ app_id: Type.String() })

export const SmsAnswer = Type.Object({
  kind: Type.Unsafe<(typeof kinds)[number] | null>({ enum: [...kinds, null], description: 'null: there is none.' }),
  auth_token: Type.Optional(Type.String({ description: `"${MASK}"` })),
  password: Type.Optional(Type.String({ description: `"${MASK}"` })),
  ...settings,
  callback_url: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'twilio: where texts to your numbers have to be sent; null while the server has no PUBLIC_URL.',
    }),
  ),
})
export type SmsAnswer = Static<typeof SmsAnswer>
