// The wire shapes of an app's email event sources.

import Type, { type Static, type TProperties } from 'typebox'
import { MASK } from '../../../apps/schema.ts'

const orNull = <Properties extends TProperties>(properties: Properties, description: string) => {
  const schema = Type.Object(properties)
  return Type.Optional(Type.Unsafe<Static<typeof schema> | null>({ ...schema, type: ['object', 'null'], description }))
}
const text = (description: string) => Type.String({ minLength: 1, maxLength: 512, description })
const optional = (description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 512, description }))
const secret = (description: string) => `${description} Write-only; "${MASK}" leaves it as it is.`

export const SourcesPath = Type.Object({ app_id: Type.String() })
export const SecretPath = Type.Object({ app_id: Type.String(), secret: Type.String() })

export const EventSourcesBody = Type.Object({
  ses: orNull({ topic_arn: text('The SNS topic that SES publishes to.') }, 'Amazon SES, by SNS.'),
  mailgun: orNull({ signing_key: text(secret('The HTTP webhook signing key.')) }, 'Mailgun.'),
  sendgrid: orNull({ public_key: text('The verification key of the signed event webhook.') }, 'SendGrid.'),
  postmark: orNull(
    {
      username: optional('For Basic authentication, with `password`.'),
      password: optional(secret('At least 12 characters.')),
      path_secret: optional(secret('Instead, or as well: the last part of an address that nobody else knows.')),
    },
    'Postmark.',
  ),
})
export type EventSourcesBody = Static<typeof EventSourcesBody>

const url = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'Where the provider has to send events; null while the server has no PUBLIC_URL.',
})
const masked = Type.Unsafe<string | null>({ type: ['string', 'null'], description: `"${MASK}" when it is set.` })
const shown = <Properties extends TProperties>(properties: Properties) => {
  const schema = Type.Object({ ...properties, url })
  return Type.Unsafe<Static<typeof schema> | null>({
    ...schema,
    type: ['object', 'null'],
    description: 'null: there is none.',
  })
}

export const EventSourcesAnswer = Type.Object({
  ses: shown({ topic_arn: Type.String() }),
  mailgun: shown({ signing_key: masked }),
  sendgrid: shown({ public_key: Type.String() }),
  postmark: shown({
    username: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
    password: masked,
    path_secret: masked,
  }),
})
export type EventSourcesAnswer = Static<typeof EventSourcesAnswer>

export const TakenAnswer = Type.Object({ success: Type.Boolean() })
