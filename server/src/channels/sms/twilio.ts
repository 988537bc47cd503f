// Texts through Twilio, or through any service that speaks as Twilio does.

import type { Clock } from '../../lib/clock.ts'
import type { Channel, ChannelOutcome } from '../channel.ts'
import type { Outbound, OutboundResult } from '../outbound.ts'
import { parseRetryAfter } from '../retry-after.ts'
import { sendEach } from '../send-each.ts'
import { EMPTY, type SmsItem } from './message.ts'
import { judgeTwilioCode, judgeTwilioStatus } from './twilio-errors.ts'

export type TwilioChannelSettings = {
  outbound: Pick<Outbound, 'request'>
  clock: Pick<Clock, 'now'>
  accountSid: string
  /** The account's token; or the secret of an API key, with `user` its SID. */
  password: string
  user?: string | undefined
  /** Who sends, unless the item says: a pool of senders, or one. */
  messagingServiceSid?: string | undefined
  from?: string | undefined
  baseUrl?: string | undefined
  atOnce?: number | undefined
}

export function openTwilio(settings: TwilioChannelSettings): Channel<SmsItem> {
  const { outbound, clock, accountSid, password, user = accountSid, baseUrl = 'https://api.twilio.com' } = settings
  const url = addressOf(baseUrl, accountSid)
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  return sendEach({
    atOnce: settings.atOnce ?? 16,
    async sendOne(item) {
      if (item.text === '' && !item.mediaUrls?.length) return EMPTY
      const sender = senderOf(item, settings)
      if (!sender) return { kind: 'misconfigured', reason: 'no sender' }
      const result = await outbound.request({
        url,
        headers: {
          ...{ authorization, 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
          // Twilio leaves it aside; who stands in for it can tell by it what was sent.
          ...(item.messageId !== undefined && { 'x-message-id': item.messageId }),
        },
        body: formOf(item, sender).toString(),
      })
      return judge(result, clock.now())
    },
  })
}

/** Empty, and so refused, when nothing can be appended to the base. */
function addressOf(baseUrl: string, accountSid: string): string {
  const base = URL.parse(baseUrl)
  if (!base || /[?#]/.test(baseUrl)) return ''
  return `${base.href.replace(/\/+$/, '')}/2010-04-01/Accounts/${encodeURIComponent(accountSid)}/Messages.json`
}

type TwilioSender = ['MessagingServiceSid' | 'From', string]

function senderOf({ from }: SmsItem, settings: TwilioChannelSettings): TwilioSender | undefined {
  if (from) return ['From', from]
  if (settings.messagingServiceSid) return ['MessagingServiceSid', settings.messagingServiceSid]
  return settings.from ? ['From', settings.from] : undefined
}

function formOf({ to, text, mediaUrls = [], statusCallback }: SmsItem, sender: TwilioSender): URLSearchParams {
  const form = new URLSearchParams([['To', to], sender])
  if (text !== '') form.append('Body', text)
  for (const url of mediaUrls) form.append('MediaUrl', url)
  if (statusCallback) form.append('StatusCallback', statusCallback)
  return form
}

function judge(result: OutboundResult, now: Date): ChannelOutcome {
  if (result.kind === 'refused') return { kind: 'misconfigured', reason: result.reason }
  if (result.kind === 'unreached') return { kind: 'retry', reason: result.reason }
  if (result.kind === 'unanswered') return { kind: 'unknown', reason: result.reason }
  const { status, headers } = result
  const { sid, code, error_code } = readJson(result.body)
  if (status >= 200 && status <= 299) {
    const refused = judgeTwilioCode(error_code)
    if (refused) return refused
    // Something else than Twilio may have answered, or a Twilio that we do not understand: nobody can tell.
    return typeof sid === 'string' && sid !== ''
      ? { kind: 'sent', id: sid }
      : { kind: 'unknown', reason: 'answer not understood' }
  }
  const verdict = judgeTwilioCode(code) ?? judgeTwilioStatus(status)
  if (verdict.kind !== 'retry') return verdict
  const afterMs = parseRetryAfter(headers['retry-after'], now)
  return { ...verdict, ...(afterMs !== undefined && { afterMs }) }
}

function readJson(body: Buffer): { sid?: unknown; code?: unknown; error_code?: unknown } {
  try {
    return Object(JSON.parse(body.toString()))
  } catch {
    return {}
  }
}
