// Sends SMS through Twilio, or through any service with a compatible API.

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
  /** The account's token; or the secret of an API key whose SID is `user`. */
  password: string
  user?: string | undefined
  /** The default sender: a messaging service, or a single sender. */
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
          // Twilio ignores this header. A stand-in can use it to identify what was sent.
          ...(item.messageId !== undefined && { 'x-message-id': item.messageId }),
        },
        body: formOf(item, sender).toString(),
      })
      return judge(result, clock.now())
    },
  })
}

/** Returns an empty string, which is then refused, if nothing can be appended to the base. */
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
    // The answer may come from something other than Twilio, or have a format that we do not know, so the outcome is
    // unknown.
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
