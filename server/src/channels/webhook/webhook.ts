import type { Clock } from '../../lib/clock.ts'
import type { Channel, ChannelOutcome } from '../channel.ts'
import type { Outbound, OutboundResult } from '../outbound.ts'
import { parseRetryAfter } from '../retry-after.ts'
import { sendEach } from '../send-each.ts'
import { readWebhookSecret, signWebhook } from './sign.ts'

export type WebhookItem = {
  url: string
  /**
   * The same for every attempt at the same thing, so that the receiver can drop duplicates. Letters, digits, `_` and
   * `-`.
   */
  id: string
  /** Finished JSON. */
  body: string
  /** `whsec_…`: the current secret and, while it is being replaced, the previous one. At least one. */
  secrets: readonly string[]
  method?: 'POST' | 'PUT' | 'PATCH' | undefined
  /** The customer's own headers. Those that frame or sign the request cannot be set. */
  headers?: Readonly<Record<string, string>> | undefined
}

export type WebhookChannelSettings = {
  outbound: Pick<Outbound, 'request'>
  clock: Pick<Clock, 'now'>
  /**
   * How many requests may be in flight at once. At most a quarter of them go to one receiver, so that a slow one does
   * not delay the others.
   */
  atOnce?: number | undefined
}

const OURS =
  /^(webhook-.*|host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-length)$/i

/** The HTTP client is shared by all webhooks of the server, so closing this channel leaves it open. */
export function openWebhooks({ outbound, clock, atOnce = 64 }: WebhookChannelSettings): Channel<WebhookItem> {
  return sendEach({
    atOnce,
    lanes: { of: ({ url }) => URL.parse(url)?.origin ?? '', atOnce: Math.ceil(atOnce / 4) },
    async sendOne({ url, id, body, secrets, method = 'POST', headers = {} }) {
      const keys = secrets.map(readWebhookSecret).filter((key) => key !== undefined)
      if (keys.length === 0 || keys.length < secrets.length)
        return { kind: 'failed', reason: 'signing secret not valid' }
      if (!/^[\w-]{1,256}$/.test(id)) return { kind: 'failed', reason: 'id not valid' }
      if (Object.keys(headers).some((name) => OURS.test(name))) return { kind: 'failed', reason: 'header not allowed' }
      const now = clock.now()
      const result = await outbound.request({
        url,
        method,
        body,
        headers: {
          'user-agent': 'Carillon',
          'content-type': 'application/json',
          ...lowerCased(headers),
          ...signWebhook(keys, id, now, body),
        },
      })
      return judge(result, now)
    },
  })
}

const lowerCased = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function judge(result: OutboundResult, now: Date): ChannelOutcome {
  if (result.kind === 'refused') return { kind: 'failed', reason: result.reason }
  if (result.kind === 'unreached') return { kind: 'retry', reason: result.reason }
  if (result.kind === 'unanswered') return { kind: 'unknown', reason: result.reason }
  const { status, headers } = result
  const reason = `status ${status}`
  if (status >= 200 && status <= 299) return { kind: 'sent' }
  if (status === 410) return { kind: 'gone', reason }
  if (status >= 500 || [408, 425, 429].includes(status)) {
    const afterMs = parseRetryAfter(headers['retry-after'], now)
    return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
  }
  // This includes redirects: the customer has to give us the new address of a receiver that moved.
  return { kind: 'failed', reason }
}
