// The channels that apps send SMS through, one per app with a provider. A session with an SMPP message center stays
// open as long as this process runs, even without anything to send, because receipts and opt-outs arrive over it. Each
// worker opens its own session, and handles what the message center sends to that session.

import { readSmsProvider, type SmsProvider, twilioCallbackUrl } from '../apps/sms/configure.ts'
import { findSmppAppsAcrossApps, KEYS_CHANNEL } from '../apps/store.ts'
import type { Channel } from '../channels/channel.ts'
import type { Outbound } from '../channels/outbound.ts'
import type { SmsItem } from '../channels/sms/message.ts'
import { openSmpp } from '../channels/sms/smpp.ts'
import { openTwilio } from '../channels/sms/twilio.ts'
import type { FeedbackContext } from '../feedback/context.ts'
import { handleInboundSms } from '../feedback/handle-inbound-sms.ts'
import type { AppId } from '../lib/ids.ts'
import { createKeyedMutex } from '../lib/keyed-mutex.ts'
import type { Log } from '../lib/log.ts'
import type { Listener } from '../storage/listen.ts'

/** How an app sends SMS. Only `TextChannels` closes the channel, because it is shared. */
export type Texts = { channel: Channel<SmsItem>; statusCallback?: string | undefined }

export type TextChannels = {
  /** Returns undefined for an app without a provider, and otherwise the same channel until the provider changes. */
  open(appId: AppId): Promise<Texts | undefined>
  /** Opens the sessions with all message centers, and follows changes. */
  start(): void
  /** Waits for sends in progress. */
  close(): Promise<void>
}

type Parts = {
  feedback: FeedbackContext
  outbound: Outbound
  twilioUrl: string
  listener: Pick<Listener, 'on'>
  log: Log
}
type Open = { provider: string; channel: Channel<SmsItem>; texts: Texts }

/** Changes are announced; a missed announcement goes unnoticed for at most this long. */
const LOOK_AGAIN_MS = 60_000

export function createTextChannels({ feedback, outbound, twilioUrl, listener, log }: Parts): TextChannels {
  const channels = new Map<AppId, Open>()
  const inTurn = createKeyedMutex()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const open = (appId: AppId) =>
    inTurn(appId, async () => {
      const provider = await readSmsProvider(feedback, appId)
      const known = channels.get(appId)
      if (known && provider && known.provider === JSON.stringify(provider)) return known.texts
      channels.delete(appId)
      // Sends in progress on the channel finish by themselves; nothing waits for them.
      known?.channel.close().catch(() => {})
      if (!provider || isClosed) return undefined
      const channel = openChannel(appId, provider)
      const texts: Texts = {
        channel: { send: channel.send, close: async () => {} },
        ...(provider.kind === 'twilio' && { statusCallback: twilioCallbackUrl(feedback.publicUrl, appId) }),
      }
      channels.set(appId, { provider: JSON.stringify(provider), channel, texts })
      return texts
    })

  function openChannel(appId: AppId, it: SmsProvider): Channel<SmsItem> {
    if (it.kind === 'twilio')
      return openTwilio({
        outbound,
        baseUrl: twilioUrl,
        clock: feedback.clock,
        accountSid: it.account_sid,
        password: it.secret,
        ...(it.messaging_service_sid !== null && { messagingServiceSid: it.messaging_service_sid }),
        ...(it.from !== null && { from: it.from }),
      })
    return openSmpp({
      outbound,
      log: log.child({ appId }),
      host: it.host,
      port: it.port,
      isTls: it.tls,
      systemId: it.system_id,
      password: it.secret,
      ...(it.system_type !== null && { systemType: it.system_type }),
      from: it.from,
      ...(it.source_addr_ton !== null &&
        it.source_addr_npi !== null && { sender: { ton: it.source_addr_ton, npi: it.source_addr_npi } }),
      onReceipt: (receipt) => feedback.handleReceipt(appId, receipt),
      onText: (text) => handleInboundSms(feedback, appId, it, text),
    })
  }

  const tryOpen = (appId: AppId) =>
    open(appId).catch((error) => log.warn({ appId, reason: error.message }, 'Could not open the SMS provider'))

  async function lookAtAll() {
    try {
      const found = await findSmppAppsAcrossApps(feedback.db)
      const all = new Set([...found.map(({ id }) => id), ...channels.keys()])
      await Promise.all([...all].map(tryOpen))
    } catch (error) {
      log.warn({ reason: (error as Error).message }, 'Could not look for SMPP providers; retrying')
    }
  }

  return {
    open,
    start() {
      const heard = (payload: string) => {
        const [what, appId] = payload.split(' ')
        if (what === 'app' && appId !== undefined) void tryOpen(appId)
      }
      listener.on(KEYS_CHANNEL, heard, () => void lookAtAll())
      timer = setInterval(() => void lookAtAll(), LOOK_AGAIN_MS)
      timer.unref()
      void lookAtAll()
    },
    async close() {
      isClosed = true
      clearInterval(timer)
      // Waits for channels that are just being opened.
      await Promise.all([...channels.keys()].map((appId) => inTurn(appId, async () => {})))
      await Promise.all([...channels.values()].map(({ channel }) => channel.close()))
    },
  }
}
