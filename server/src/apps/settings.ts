// The plain settings of an app's push platforms, and how they are validated. Credentials are in read-credential.ts.

import { invalid } from '../lib/errors.ts'
import { codePoints } from '../lib/text.ts'
import { type CredentialName, credentialNames } from './credentials/read-credential.ts'

/** Null means the same as leaving it unset. */
type SettingReader = (field: string, given: string) => string | null

const shortText: SettingReader = (field, given) => {
  if (codePoints(given) > 128) throw invalid(`${field} must have at most 128 characters`)
  return given
}

/** As a browser writes it: scheme, host, and the port unless it is the default. */
const origin: SettingReader = (field, given) => {
  const url = /^https:\/\/[^/?#]+\/?$/i.test(given) ? httpsUrl(given) : undefined
  if (!url) throw invalid(`${field} must be an https origin, as https://example.com, without a path`)
  return url.origin
}

/**
 * Passed on to browsers and never fetched from here, because an address that the customer chooses could lead anywhere.
 */
const icon: SettingReader = (field, given) => {
  if (!httpsUrl(given)) throw invalid(`${field} must be the https address of an image`)
  return given
}

function httpsUrl(text: string): URL | undefined {
  if (!/^https:\/\/[^\s\\]+$/i.test(text)) return undefined
  const url = URL.parse(text)
  return url?.protocol === 'https:' && url.username === '' && url.password === '' ? url : undefined
}

const matching =
  (pattern: RegExp, demand: string): SettingReader =>
  (field, given) => {
    if (!pattern.test(given)) throw invalid(`${field} must ${demand}`)
    return given
  }

const appleId = matching(
  /^[A-Za-z0-9]{1,32}$/,
  'consist of letters and digits, as 10 of them stand in the Apple account',
)
const senderId = matching(/^\d{1,32}$/, 'consist of digits')

const huaweiId = matching(/^\d{1,32}$/, 'consist of digits, as in AppGallery Connect')

const environment: SettingReader = (field, given) => {
  // The default is not stored, so that setting it explicitly makes no difference.
  if (given === 'production') return null
  // Apple and an older client say "sandbox".
  if (given === 'development' || given === 'sandbox') return 'development'
  throw invalid(`${field} must be "production" or "development"`)
}

const readers = {
  fcm_sender_id: senderId,
  chrome_web_origin: origin,
  chrome_web_gcm_sender_id: senderId,
  chrome_web_default_notification_icon: icon,
  apns_env: environment,
  apns_team_id: appleId,
  apns_key_id: appleId,
  apns_bundle_id: matching(/^[A-Za-z0-9.-]{1,255}$/, 'be a bundle id, as com.example.app'),
  safari_site_origin: origin,
  safari_icon_16_16: icon,
  safari_icon_32_32: icon,
  safari_icon_64_64: icon,
  safari_icon_128_128: icon,
  safari_icon_256_256: icon,
  site_name: shortText,
  huawei_app_id: huaweiId,
  huawei_project_id: huaweiId,
  huawei_package_name: matching(
    /^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$/,
    'be the name of a package, as com.example.app',
  ),
  adm_client_id: matching(/^[A-Za-z0-9._-]{1,128}$/, 'be the id of a client, as amzn1.application-oa2-client.…'),
  wns_package_sid: matching(/^ms-app:\/\/[A-Za-z0-9-]{1,200}$/, 'be a package SID, as ms-app://s-1-15-2-…'),
} satisfies Record<string, SettingReader>

export type SettingName = keyof typeof readers
export const settingNames = Object.keys(readers) as SettingName[]

/** By the names of the API; unset settings are absent. */
export type PushSettings = { [Name in SettingName]?: string } & {
  additional_data_is_root_payload?: boolean
  /** Read from the certificate. */
  safari_push_id?: string
}

/** "" clears. */
export const readSetting = (name: SettingName, given: string): string | null =>
  given === '' ? null : readers[name](name, given)

const WEB_ORIGINS = ['chrome_web_origin', 'safari_site_origin'] as const
const APNS_TOKEN = ['apns_key_id', 'apns_team_id', 'apns_bundle_id'] as const

/** The settings without which each credential is useless. */
const NEEDED: Partial<Record<CredentialName, readonly SettingName[]>> = {
  apns_p8: APNS_TOKEN,
  huawei_app_secret: ['huawei_app_id'],
  adm_client_secret: ['adm_client_id'],
  wns_client_secret: ['wns_package_sid'],
}

/** Error texts for missing settings that are only useful together. */
export function findMissing(settings: PushSettings, isSet: (credential: CredentialName) => boolean): string[] {
  const origins = WEB_ORIGINS.filter((name) => settings[name] !== undefined)
  return [
    ...(origins.length > 0 && settings.site_name === undefined
      ? [`site_name is required with ${origins.join(' and ')}`]
      : []),
    ...credentialNames
      .filter(isSet)
      .flatMap((credential) =>
        (NEEDED[credential] ?? [])
          .filter((name) => settings[name] === undefined)
          .map((name) => `${name} is required with ${credential}`),
      ),
  ]
}
