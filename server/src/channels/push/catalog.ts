// The push providers as data: what domains, reports and warnings need to know of each. How each is spoken to is in providers.ts.

export type PushProviderFacts = {
  /** Types of subscription that it serves; no two providers share one. */
  subscriptionTypes: readonly string[]
  /** Who pauses or refuses, as the subject of a sentence. */
  vendor: string
  /** What an app must be given before it can reach these devices; absent where there is nothing to warn about. */
  setUp?: {
    service: string
    devices: string
    /** Any of these settings of an app is enough. */
    credentials: readonly string[]
    /** What to set, as the warning says it. */
    settings: string
  }
  /**
   * Its answer for a token that it does not know, be it because another app or environment made it: when all first messages of an
   * app end so, the app is set up wrongly.
   */
  unknownToken?: string
}

/** In the order in which they are listed everywhere. */
export const pushCatalog = {
  'web-push': {
    subscriptionTypes: ['ChromePush', 'FirefoxPush', 'SafariPush'],
    vendor: 'The push service of a browser',
  },
  apns: {
    subscriptionTypes: ['iOSPush', 'macOSPush'],
    vendor: 'Apple',
    setUp: { service: 'APNs', devices: 'Apple devices', credentials: ['apns_p8', 'apns_p12'], settings: 'apns_p8' },
    unknownToken: 'BadDeviceToken',
  },
  safari: { subscriptionTypes: ['SafariLegacyPush'], vendor: 'Apple, for Safari,' },
  fcm: {
    subscriptionTypes: ['AndroidPush'],
    vendor: 'Google',
    setUp: {
      service: 'FCM',
      devices: 'Android devices',
      credentials: ['fcm_v1_service_account_json'],
      settings: 'fcm_v1_service_account_json',
    },
  },
  huawei: {
    subscriptionTypes: ['HuaweiPush'],
    vendor: 'Huawei',
    setUp: {
      service: 'Push Kit',
      devices: 'Huawei devices',
      credentials: ['huawei_app_secret'],
      settings: 'huawei_app_id and huawei_app_secret',
    },
    unknownToken: 'code 80300007',
  },
  adm: {
    subscriptionTypes: ['FireOSPush'],
    vendor: 'Amazon',
    setUp: {
      service: 'ADM',
      devices: 'Amazon devices',
      credentials: ['adm_client_secret'],
      settings: 'adm_client_id and adm_client_secret',
    },
    unknownToken: 'InvalidRegistrationId',
  },
  wns: {
    subscriptionTypes: ['WindowsPush'],
    vendor: 'Microsoft',
    setUp: {
      service: 'WNS',
      devices: 'Windows devices',
      credentials: ['wns_client_secret'],
      settings: 'wns_package_sid and wns_client_secret',
    },
  },
} as const satisfies Record<string, PushProviderFacts>

export type PushProviderName = keyof typeof pushCatalog
export const pushProviderNames = Object.keys(pushCatalog) as PushProviderName[]

export const pushFactsOf = (name: PushProviderName): PushProviderFacts => pushCatalog[name]
