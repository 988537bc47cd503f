import type { ServiceAccount } from '../../src/channels/push/fcm-token.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { APNS_HOSTS, type ApnsAccount, type ApnsReceived, apnsService } from '../../src/sink/apns.ts'
import { newSubscription, type Subscription } from '../../src/sink/browser.ts'
import { FCM_HOST, type FcmMessage, fcmService } from '../../src/sink/fcm.ts'
import { createGoogleTokens, isForTokens, TOKEN_HOST } from '../../src/sink/google-tokens.ts'
import { type WebPushReceived, webPushService } from '../../src/sink/web-push.ts'
import { type Provider, type ProviderSettings, startProvider } from './scripted.ts'

export type ApnsSink = Provider & { received: ApnsReceived[] }

export async function startApnsSink(
  clock: Clock,
  account: ApnsAccount,
  settings: Partial<ProviderSettings> = {},
): Promise<ApnsSink> {
  const received: ApnsReceived[] = []
  const service = apnsService({ clock, account, onReceived: (it) => received.push(it) })
  return { ...(await startProvider({ hosts: APNS_HOSTS, ...settings }, () => service)), received }
}

export type FcmSink = Provider & { received: FcmMessage[]; tokensSold(): number; revokeTokens(): void }

export async function startFcmSink(
  clock: Clock,
  account: ServiceAccount,
  settings: Partial<ProviderSettings> = {},
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

export type PushService = Provider & {
  origin: string
  /** A browser that lets only this key send. */
  subscribe(vapidPublicKey: string): Subscription
  received: WebPushReceived[]
}

export async function startPushService(clock: Clock, settings: Partial<ProviderSettings> = {}): Promise<PushService> {
  const hosts = ['updates.push.example.com']
  const origin = `https://${hosts[0]}`
  const received: WebPushReceived[] = []
  const service = webPushService({ clock, onReceived: (it) => received.push(it) })
  return {
    ...(await startProvider({ hosts, ...settings }, () => service)),
    origin,
    received,
    subscribe: (vapidPublicKey) => newSubscription(origin, vapidPublicKey),
  }
}
