// The wire format of what SDKs fetch about their app.

import Type, { type Static, type TSchema } from 'typebox'

export const AppPath = Type.Object({ app_id: Type.String() })
export const FeaturesPath = Type.Object({
  app_id: Type.String(),
  platform: Type.String({ maxLength: 64 }),
  sdk_version: Type.String({ maxLength: 64 }),
})
export const CallbackQuery = Type.Object({
  callback: Type.Optional(
    Type.String({ description: 'Name of a function of the page; the answer is then a script that calls it.' }),
  ),
})
export const DemoQuery = Type.Object({ app_id: Type.Optional(Type.String({ description: 'The app to try.' })) })

const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])
const anything = Type.Record(Type.String(), Type.Unknown())

const WebConfig = Type.Object({
  success: Type.Literal(true),
  version: Type.Literal(2),
  app_id: Type.String(),
  features: anything,
  config: Type.Object({
    origin: Type.String(),
    autoResubscribe: Type.Boolean(),
    siteInfo: Type.Object({
      name: Type.String(),
      origin: Type.String(),
      proxyOrigin: orNull(Type.String()),
      defaultIconUrl: orNull(Type.String()),
      proxyOriginEnabled: Type.Boolean(),
    }),
    integration: anything,
    staticPrompts: anything,
    webhooks: anything,
    serviceWorker: anything,
    welcomeNotification: anything,
    notificationBehavior: anything,
    vapid_public_key: Type.String(),
    onesignal_vapid_public_key: Type.String(),
    safari_web_id: Type.Optional(Type.String()),
    subdomain: orNull(Type.String()),
    outcomes: anything,
  }),
  generated_at: Type.Integer({ description: 'When the app was last changed, in Unix seconds.' }),
})
const NoWebConfig = Type.Object({
  success: Type.Literal(false),
  code: Type.Integer({ description: '1: there is no such app. 2: it is not configured for web push.' }),
  message: Type.String(),
  app_id: Type.Optional(Type.String()),
  config: Type.Optional(Type.Object({ vapid_public_key: Type.String() })),
})
export const WebConfigAnswer = Type.Union([WebConfig, NoWebConfig])
export type WebConfigAnswer = Static<typeof WebConfigAnswer>

const params = {
  fba: Type.Boolean(),
  receive_receipts_enable: Type.Boolean(),
  location_shared: Type.Boolean(),
  requires_user_privacy_consent: Type.Boolean(),
  jwt_required: Type.Boolean(),
  outcomes: anything,
}
export const AndroidParamsAnswer = Type.Object({ android_sender_id: Type.Optional(Type.String()), ...params })
export const IosParamsAnswer = Type.Object({ require_user_id_auth: Type.Boolean(), ...params })
export const FeaturesAnswer = Type.Object({ features: Type.Array(Type.String()) })
