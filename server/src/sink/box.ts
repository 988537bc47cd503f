// Stand-ins for all providers in one box: an HTTPS port for everything that uses HTTP, one port for SMPP, one for SMTP,
// and one to look inside and to inject faults. All credentials are accepted, so any app can send to the box.

import type { Clock } from '../lib/clock.ts'
import { newAppSettings, smsSettings, twilio as twilioAccount } from './app-settings.ts'
import { certificateFor, certificatesByName } from './certificate.ts'
import { listenControl } from './control.ts'
import { createDeliveries } from './deliveries.ts'
import { listenEmail } from './email/listen-email.ts'
import { createFaults, failureOf } from './faults.ts'
import { listen } from './listener.ts'
import { createPace } from './pace.ts'
import { admService, isForAdm } from './push/adm.ts'
import { apnsService, isForApns } from './push/apns.ts'
import { createBrowserSubscription } from './push/browser.ts'
import { AMAZON_TOKENS, createClientTokenStore, HUAWEI_TOKENS, MICROSOFT_TOKENS } from './push/client-tokens.ts'
import { fcmService, isForFcm } from './push/fcm.ts'
import { createGoogleTokens, isForTokens } from './push/google-tokens.ts'
import { huaweiService, isForHuawei } from './push/huawei.ts'
import { readAdm, readApns, readFcm, readHuawei, readWebPush, readWns } from './push/read-push.ts'
import { isForWebPush, webPushService } from './push/web-push.ts'
import { isForWns, wnsService } from './push/wns.ts'
import { type ChannelService, originOf, type Reaction, react, type SinkRequest } from './service.ts'
import { listenSms } from './sms/listen-sms.ts'
import { isForTwilio, twilioService } from './sms/twilio.ts'
import { webhookService } from './webhook.ts'

export type SinkBox = {
  /** The address of the control API. */
  control: string
  /** The server's settings, by their names, that redirect all providers to the box. */
  settings: Record<string, string>
  /** The address of each provider's stand-in. */
  receivers: Record<
    'apns' | 'fcm' | 'huawei' | 'adm' | 'wns' | 'web_push' | 'twilio' | 'webhook' | 'smpp' | 'smtp',
    string
  >
  /** An account that can send through the box, like any other account. */
  twilio: typeof twilioAccount
  /** Push credentials with which an app can send through the box, as the API takes them. */
  newAppSettings(): Record<string, string>
  /** The same for SMS. */
  smsSettings: typeof smsSettings
  close(): Promise<void>
}

export type SinkBoxSettings = {
  clock: Pick<Clock, 'now'>
  /** Control, HTTPS, SMPP and SMTP use this port and the three after it. By default, they use any free ports. */
  portBase?: number | undefined
  /** Every accepted delivery is appended to this file, before the request is answered. */
  logFile?: string | undefined
}

/**
 * The push service of the browsers that the box hands out. The name cannot be resolved, so a server that is not
 * redirected to the box sends nothing anywhere.
 */
const PUSH_ORIGIN = 'https://push.sink.invalid'

/** The address that a delivery shows. */
const addressOf = (service: ChannelService, request: SinkRequest) =>
  service.channel === 'web_push' || service.channel === 'webhook'
    ? `${originOf(request.headers)}${request.path}`
    : service.addressOf(request)

export async function openSinkBox({ clock, portBase, logFile }: SinkBoxSettings): Promise<SinkBox> {
  const deliveries = createDeliveries(clock, logFile)
  const faults = createFaults(clock)
  const pace = createPace()
  const inside = { deliveries, faults, pace }
  const portAt = (n: number) => (portBase === undefined ? undefined : portBase + n)

  const tokens = createGoogleTokens({ clock })
  const fcm = fcmService({ isValid: tokens.isValid, onReceived: (it) => deliveries.add(readFcm(it)) })
  const huaweiTokens = createClientTokenStore(HUAWEI_TOKENS, { clock })
  const amazonTokens = createClientTokenStore(AMAZON_TOKENS, { clock })
  const microsoftTokens = createClientTokenStore(MICROSOFT_TOKENS, { clock })
  const huawei = huaweiService({
    isValid: huaweiTokens.isValid,
    onReceived: (it) => deliveries.add(readHuawei(it)),
  })
  const adm = admService({ isValid: amazonTokens.isValid, onReceived: (it) => deliveries.add(readAdm(it)) })
  const wns = wnsService({ isValid: microsoftTokens.isValid, onReceived: (it) => deliveries.add(readWns(it)) })
  const apns = apnsService({ clock, onReceived: (it) => deliveries.add(readApns(it)) })
  const webPush = webPushService({ clock, takesForeign: true, onReceived: (it) => deliveries.add(readWebPush(it)) })
  const twilio = twilioService({
    onReceived: ({ form, messageId: message_id = null }) =>
      deliveries.add({ channel: 'sms', to: form.get('To') ?? '', message_id, text: form.get('Body') }),
  })
  const webhook = webhookService({
    onReceived: ({ url, id, body }) => deliveries.add({ channel: 'webhook', to: url, message_id: id, text: body }),
  })

  /**
   * Chosen by the form of the request, not by its host name: providers use many host names, and a browser may belong to
   * any push service.
   */
  function serviceFor(request: SinkRequest): ChannelService {
    if (isForApns(request)) return apns
    if (isForFcm(request)) return fcm
    if (isForHuawei(request)) return huawei
    if (isForAdm(request)) return adm
    if (isForWns(request)) return wns
    if (isForTwilio(request)) return twilio
    return isForWebPush(request) ? webPush : webhook
  }

  function handle(request: SinkRequest): Reaction {
    if (isForTokens(request)) return react(tokens.service, request, undefined).reaction
    const shop = [huaweiTokens, amazonTokens, microsoftTokens].find(({ isFor }) => isFor(request))
    if (shop) return react(shop.service, request, undefined).reaction
    const service = serviceFor(request)
    const fault = faults.next(service.channel, addressOf(service, request))
    return react(service, request, failureOf(fault, service)).reaction
  }

  const certificate = certificateFor()
  const opened: { close(): unknown }[] = [deliveries]
  const open = async <Part extends { close(): unknown }>(part: Promise<Part>) => {
    opened.unshift(await part)
    return part
  }
  const close = async () => {
    for (const part of opened.splice(0)) await part.close()
  }
  try {
    const contextFor = certificatesByName()
    const control = await open(
      listenControl({ ...inside, port: portAt(0), subscribe: () => createBrowserSubscription(PUSH_ORIGIN) }),
    )
    const https = await open(listen({ certificate, contextFor, admit: pace.turn, handle, port: portAt(1) }))
    const smpp = await open(listenSms({ ...inside, port: portAt(2) }))
    const smtp = await open(listenEmail({ ...inside, port: portAt(3), tls: { ...certificate, contextFor } }))
    const at = ({ port }: { port: number }) => `127.0.0.1:${port}`
    return {
      control: `http://${at(control)}`,
      settings: {
        PROVIDER_CA: certificate.cert,
        PROVIDER_CONNECT: `https://*=${at(https)},smpp://*=${at(smpp)},smtp://*=${at(smtp)}`,
        SMTP_URL: `smtp://${at(smtp)}?catcher=true`,
      },
      receivers: {
        apns: `https://${at(https)}`,
        fcm: `https://${at(https)}`,
        huawei: `https://${at(https)}`,
        adm: `https://${at(https)}`,
        wns: `https://${at(https)}`,
        web_push: `https://${at(https)}`,
        twilio: `https://${at(https)}`,
        webhook: `https://${at(https)}`,
        smpp: `smpp://${at(smpp)}`,
        smtp: `smtp://${at(smtp)}`,
      },
      twilio: twilioAccount,
      newAppSettings,
      smsSettings,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
