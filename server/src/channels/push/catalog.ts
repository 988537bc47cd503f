// The push providers as data: what other domains, reports and warnings need to know about each. The code that talks to
// them is in providers.ts.

export type PushProviderFacts = {
  /** The types of subscription that it serves. No two providers share one. */
  subscriptionTypes: readonly string[]
  /** The company that pauses or refuses messages, as the subject of a sentence. */
  vendor: string
  /** What an app must configure before it can reach these devices; absent if there is nothing to warn about. */
  setUp?: {
    service: string
    devices: string
    /** Any one of these settings of an app is enough. */
    credentials: readonly string[]
    /** The settings to change, as the warning words them. */
    settings: string
  }
  /**
   * The provider's answer for an unknown token, for instance because another app or environment created it. If all
   * first messages of an app end with it, the app is misconfigured.
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
