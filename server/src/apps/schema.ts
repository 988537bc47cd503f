// The wire format of apps. What a JSON schema cannot express is checked in settings.ts, read-credential.ts and
// configure.ts.

import Type, { type Static } from 'typebox'

/** Replaces every credential in answers; in a request it means unchanged. */
export const MASK = '********'

/** Clients send null for what they do not know; it means the same as leaving the field out. */
const text = (maxLength: number, description: string, more: object = {}) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength, description, ...more }))

/** A file of 64 KB in Base64, with line breaks. */
const FILE_LENGTH = 90_000
const file = (description: string) =>
  text(FILE_LENGTH, `${description} Write-only; "${MASK}" means unchanged, "" clears it.`)
const secret = (description: string) => text(512, `${description} Write-only; "${MASK}" means unchanged, "" clears it.`)
const icon = (size: number) => text(2048, `https address of a PNG of ${size}x${size}.`)

const configuration = {
  organization_id: text(36, 'Organization the app belongs to; must be that of the key.', { format: 'uuid' }),
  site_name: text(128, 'Website name, used as web push title when the message has none. Required with an origin.'),
  chrome_web_origin: text(2048, 'Full https origin. Needs a site_name.'),
  safari_site_origin: text(2048, 'Full https origin. Needs a site_name, and safari_apns_p12 in the same body.'),
  chrome_web_default_notification_icon: icon(256),
  safari_icon_16_16: icon(16),
  safari_icon_32_32: icon(32),
  safari_icon_64_64: icon(64),
  safari_icon_128_128: icon(128),
  safari_icon_256_256: icon(256),
  safari_apns_p12: file('p12 file in Base64, or "". Must be there whenever safari_site_origin is set.'),
  safari_apns_p12_password: text(1024, 'Password of that file, or "".'),
  fcm_v1_service_account_json: file('Service account JSON in Base64. Required for Android push.'),
  fcm_sender_id: text(32, 'Sender id of the Android push project.'),
  chrome_web_gcm_sender_id: text(32, 'Sender id for web push.'),
  apns_p8: file('p8 file in Base64; replaces a p12.'),
  apns_env: text(16, '`production` (default) or `development`; `sandbox` is another word for the latter.'),
  apns_key_id: text(32, 'Required with apns_p8.'),
  apns_team_id: text(32, 'Required with apns_p8.'),
  apns_bundle_id: text(255, 'Required with apns_p8.'),
  apns_p12: file('p12 file in Base64; replaces a p8.'),
  apns_p12_password: text(1024, 'Password of that file.'),
  huawei_app_id: text(32, 'Ours: App ID in AppGallery Connect. Required with huawei_app_secret.'),
  huawei_app_secret: secret('Ours: App secret of Push Kit. Required for Huawei push.'),
  huawei_project_id: text(32, 'Ours: project ID; with it messages go by v2 of Push Kit, without it by v1.'),
  huawei_package_name: text(255, 'Ours: the package of the app; without it a tap is not told to the SDK.'),
  adm_client_id: text(128, 'Ours: client ID of the security profile. Required with adm_client_secret.'),
  adm_client_secret: secret('Ours: client secret of the security profile. Required for Amazon push.'),
  wns_package_sid: text(255, 'Ours: package SID, as ms-app://s-1-15-2-…. Required with wns_client_secret.'),
  wns_client_secret: secret('Ours: client secret of the package. Required for Windows push.'),
  additional_data_is_root_payload: Type.Optional(
    Type.Unsafe<boolean | null>({
      type: ['boolean', 'null'],
      description:
        'Whether the `data` of a push also stands at the root of its payload (APNs, FCM, web push), except for reserved keys.',
    }),
  ),
}

const flag = (description: string) =>
  Type.Optional(Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], description }))

/** How SDKs, which have no key, are admitted. */
const door = {
  keyless: flag('Whether SDKs may come in without a key at all. Defaults to true.'),
  require_identity: flag('Whether they must bring an identity token for their user. Needs identity_public_key.'),
  identity_public_key: text(
    8192,
    'Public key in PEM that identity tokens are verified with: EC on P-256, or RSA of 2048 bits or more. "" clears it.',
  ),
}

export const AppBody = Type.Object({ name: text(128, 'Internal name.', { minLength: 1 }), ...configuration, ...door })
export type AppBody = Static<typeof AppBody>

export const NewAppBody = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 128, description: 'Internal name.' }),
  ...configuration,
  ...door,
})
export type NewAppBody = Static<typeof NewAppBody>

export const AppPath = Type.Object({ app_id: Type.String() })

export const AppQuery = Type.Object({
  view: Type.Optional(
    Type.Unsafe<'config'>({ type: 'string', enum: ['config'], description: 'Leaves messageable_players out.' }),
  ),
})
export type AppQuery = Static<typeof AppQuery>

const orNull = Type.Unsafe<string | null>({ type: ['string', 'null'] })
const masked = Type.Unsafe<string | null>({ type: ['string', 'null'], description: `"${MASK}" when it is set.` })

export const AppAnswer = Type.Object({
  id: Type.String(),
  name: Type.String(),
  players: Type.Integer({ description: 'Subscriptions in the app.' }),
  messageable_players: Type.Optional(
    Type.Integer({ description: 'Subscribed web and mobile subscriptions that can receive messages.' }),
  ),
  created_at: Type.String(),
  updated_at: Type.String(),
  organization_id: Type.String(),
  fcm_v1_service_account_json: masked,
  fcm_sender_id: orNull,
  chrome_web_key: Type.String({ description: 'Public key for web push (VAPID).' }),
  chrome_web_origin: orNull,
  chrome_web_gcm_sender_id: orNull,
  chrome_web_default_notification_icon: orNull,
  chrome_web_sub_domain: Type.Null({ description: 'This server provides no sub-domains.' }),
  apns_env: Type.String(),
  apns_certificates: masked,
  apns_p12: masked,
  apns_p8: masked,
  apns_team_id: orNull,
  apns_key_id: orNull,
  apns_bundle_id: orNull,
  safari_site_origin: orNull,
  safari_push_id: orNull,
  safari_apns_certificates: masked,
  safari_apns_p12: masked,
  safari_icon_16_16: orNull,
  safari_icon_32_32: orNull,
  safari_icon_64_64: orNull,
  safari_icon_128_128: orNull,
  safari_icon_256_256: orNull,
  site_name: orNull,
  huawei_app_id: orNull,
  huawei_app_secret: masked,
  huawei_project_id: orNull,
  huawei_package_name: orNull,
  adm_client_id: orNull,
  adm_client_secret: masked,
  wns_package_sid: orNull,
  wns_client_secret: masked,
  additional_data_is_root_payload: Type.Boolean(),
  keyless: Type.Boolean(),
  require_identity: Type.Boolean(),
  identity_public_key: orNull,
  warnings: Type.Array(Type.String(), { description: 'What is allowed but seldom meant.' }),
})
export type AppAnswer = Static<typeof AppAnswer>
