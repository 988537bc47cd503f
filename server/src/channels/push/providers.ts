// All push providers. A new one has a folder beside this file, an entry here and one in catalog.ts.

import { admProvider } from './adm/provider.ts'
import { apnsProvider, safariProvider } from './apns/provider.ts'
import type { PushProviderName } from './catalog.ts'
import { fcmProvider } from './fcm/provider.ts'
import { huaweiProvider } from './huawei/provider.ts'
import type { PushProvider, PushSender } from './provider.ts'
import { webPushProvider } from './web-push/provider.ts'
import { wnsProvider } from './wns/provider.ts'

export const pushProviders = {
  'web-push': webPushProvider,
  apns: apnsProvider,
  safari: safariProvider,
  fcm: fcmProvider,
  huawei: huaweiProvider,
  adm: admProvider,
  wns: wnsProvider,
} satisfies Record<PushProviderName, PushProvider<never>>

type Providers = typeof pushProviders
type SettingsReadBy<Provider> = Provider extends PushProvider<infer App> ? (app: App) => void : never

/** An app's decrypted push settings, by their names in the API: all settings that any provider reads. */
export type PushAppSettings = SettingsReadBy<Providers[PushProviderName]> extends (app: infer App) => void ? App : never

/** A sender of any provider, which accepts all push settings of an app. */
export type AnyPushSender = PushSender<PushAppSettings>
