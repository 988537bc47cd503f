// A push service of browsers (RFC 8030, 8188, 8291, 8292), and the browsers behind it, which decrypt what they receive.

import type { Clock } from '../../lib/clock.ts'
import { type ChannelService, originOf, RETRY_AFTER, type SinkRequest } from '../service.ts'
import { type Browser, readBrowser } from './browser.ts'
import { checkWebPush, webPushRefusal } from './check-web-push.ts'
import { decrypt } from './decrypt.ts'

export type WebPushReceived = {
  endpoint: string
  path: string
  /** Null if the browser is not one of ours, or cannot decrypt the message. */
  text: string | null
  ttl: number
  urgency: string | undefined
  topic: string | undefined
}

export type WebPushSinkSettings = {
  clock: Pick<Clock, 'now'>
  /** Also accepts messages for browsers of other services, which it cannot decrypt. */
  takesForeign?: boolean | undefined
  onReceived(received: WebPushReceived): void
}

export const isForWebPush = ({ headers }: SinkRequest) => headers['content-encoding'] === 'aes128gcm'

export function webPushService({ clock, takesForeign = false, onReceived }: WebPushSinkSettings): ChannelService {
  let taken = 0
  return {
    channel: 'web_push',
    addressOf: ({ path }) => path,
    check(request) {
      const browser = readBrowser(request.path)
      if (!browser && !takesForeign) return webPushRefusal(404, 'no such subscription')
      return checkWebPush(request, browser?.vapidPublicKey, clock.now())
    },
    accept({ path, headers, body }) {
      const browser = readBrowser(path)
      onReceived({
        endpoint: `${originOf(headers)}${path}`,
        path,
        text: browser ? readText(body, browser) : null,
        ttl: Number(headers.ttl),
        urgency: headers.urgency,
        topic: headers.topic,
      })
      return { status: 201, headers: { location: `${originOf(headers)}/m/${++taken}` } }
    },
    refusals: {
      unavailable: () => webPushRefusal(503, 'unavailable'),
      rate_limited: () => webPushRefusal(429, 'too many requests', RETRY_AFTER),
      gone: () => webPushRefusal(410, 'no such subscription'),
    },
  }
}

/** A real service cannot look inside, so messages that the browser cannot decrypt are accepted too. */
function readText(body: Buffer, { ecdh, auth }: Browser): string | null {
  try {
    return decrypt(body, ecdh, auth).toString('utf8')
  } catch {
    return null
  }
}
