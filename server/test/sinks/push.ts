import type { GoogleServiceAccount } from '../../src/channels/push/fcm/access-token.ts'
import type { HuaweiCredentials } from '../../src/channels/push/huawei/credentials.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { ADM_HOST, type AdmMessage, admService } from '../../src/sink/push/adm.ts'
import { APNS_HOSTS, type ApnsAccount, type ApnsReceived, apnsService } from '../../src/sink/push/apns.ts'
import { type BrowserSubscription, createBrowserSubscription } from '../../src/sink/push/browser.ts'
import {
  AMAZON_TOKENS,
  type ClientTokens,
  createClientTokenStore,
  HUAWEI_TOKENS,
  MICROSOFT_TOKENS,
  type TokenShop,
} from '../../src/sink/push/client-tokens.ts'
import { FCM_HOST, type FcmMessage, fcmService } from '../../src/sink/push/fcm.ts'
import { createGoogleTokens, isForTokens, TOKEN_HOST } from '../../src/sink/push/google-tokens.ts'
import { HUAWEI_HOST, type HuaweiMessage, huaweiService } from '../../src/sink/push/huawei.ts'
import { type WebPushReceived, webPushService } from '../../src/sink/push/web-push.ts'
import { type WnsReceived, wnsService } from '../../src/sink/push/wns.ts'
import type { ChannelService } from '../../src/sink/service.ts'
import { type ScriptedProvider, type ScriptedProviderSettings, startProvider } from './scripted.ts'

export type ApnsSink = ScriptedProvider & { received: ApnsReceived[] }

export async function startApnsSink(
  clock: Clock,
  account: ApnsAccount,
  settings: Partial<ScriptedProviderSettings> = {},
): Promise<ApnsSink> {
  const received: ApnsReceived[] = []
  const service = apnsService({ clock, account, onReceived: (it) => received.push(it) })
  return { ...(await startProvider({ hosts: APNS_HOSTS, ...settings }, () => service)), received }
}

export type FcmSink = ScriptedProvider & { received: FcmMessage[]; tokensSold(): number; revokeTokens(): void }

export async function startFcmSink(
  clock: Clock,
  account: GoogleServiceAccount,
  settings: Partial<ScriptedProviderSettings> = {},
): Promise<FcmSink> {
  const received: FcmMessage[] = []
  const tokens = createGoogleTokens({ clock, account })
  const { projectId } = account
  const fcm = fcmService({ projectId, isValid: tokens.isValid, onReceived: (it) => received.push(it) })
  const provider = await startProvider({ hosts: [FCM_HOST, TOKEN_HOST], ...settings }, (request) =>
    isForTokens(request) ? tokens.service : fcm,
  )
  return { ...provider, received, tokensSold: tokens.sold, revokeTokens: tokens.revokeAll }
}

export type PushService = ScriptedProvider & {
  origin: string
  /** A browser that lets only this key send. */
  subscribe(vapidPublicKey: string): BrowserSubscription
  received: WebPushReceived[]
}

export async function startPushService(
  clock: Clock,
  settings: Partial<ScriptedProviderSettings> = {},
): Promise<PushService> {
  const hosts = ['updates.push.example.com']
  const origin = `https://${hosts[0]}`
  const received: WebPushReceived[] = []
  const service = webPushService({ clock, onReceived: (it) => received.push(it) })
  return {
    ...(await startProvider({ hosts, ...settings }, () => service)),
    origin,
    received,
    subscribe: (vapidPublicKey) => createBrowserSubscription(origin, vapidPublicKey),
  }
}

/** One that sells access tokens for a client and its secret. */
type TokenSeller = { tokensSold(): number; revokeTokens(): void }

type SinkOAuthClient = { clientId: string; secret: string }

const startWithTokens = async (
  shop: TokenShop,
  tokens: ClientTokens,
  service: ChannelService,
  { hosts, ...settings }: ScriptedProviderSettings,
): Promise<ScriptedProvider & TokenSeller> => {
  const provider = await startProvider({ hosts: [...hosts, shop.host], ...settings }, (request) =>
    tokens.isFor(request) ? tokens.service : service,
  )
  return { ...provider, tokensSold: tokens.sold, revokeTokens: tokens.revokeAll }
}

export type HuaweiSink = ScriptedProvider & TokenSeller & { received: HuaweiMessage[] }

export async function startHuaweiSink(
  clock: Clock,
  { appId, secret, projectId }: HuaweiCredentials,
  settings: Partial<ScriptedProviderSettings> = {},
): Promise<HuaweiSink> {
  const received: HuaweiMessage[] = []
  const tokens = createClientTokenStore(HUAWEI_TOKENS, { clock, account: { clientId: appId, secret } })
  const service = huaweiService({
    known: { appId, projectId },
    isValid: tokens.isValid,
    onReceived: (it) => received.push(it),
  })
  const provider = await startWithTokens(HUAWEI_TOKENS, tokens, service, { hosts: [HUAWEI_HOST], ...settings })
  return { ...provider, received }
}

export type AdmSink = ScriptedProvider & TokenSeller & { received: AdmMessage[] }

export async function startAdmSink(
  clock: Clock,
  account: SinkOAuthClient,
  settings: Partial<ScriptedProviderSettings> = {},
): Promise<AdmSink> {
  const received: AdmMessage[] = []
  const tokens = createClientTokenStore(AMAZON_TOKENS, { clock, account })
  const service = admService({ isValid: tokens.isValid, onReceived: (it) => received.push(it) })
  const provider = await startWithTokens(AMAZON_TOKENS, tokens, service, { hosts: [ADM_HOST], ...settings })
  return { ...provider, received }
}

export type WnsSink = ScriptedProvider & TokenSeller & { received: WnsReceived[] }

export const WNS_HOST = 'db5p.notify.windows.com'

export async function startWnsSink(
  clock: Clock,
  account: SinkOAuthClient,
  settings: Partial<ScriptedProviderSettings> = {},
): Promise<WnsSink> {
  const received: WnsReceived[] = []
  const tokens = createClientTokenStore(MICROSOFT_TOKENS, { clock, account })
  const service = wnsService({ isValid: tokens.isValid, onReceived: (it) => received.push(it) })
  const provider = await startWithTokens(MICROSOFT_TOKENS, tokens, service, { hosts: [WNS_HOST], ...settings })
  return { ...provider, received }
}
