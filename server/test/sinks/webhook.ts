// A receiver of webhooks that checks signatures with the standard's own library. The path says how it answers:
// /status/503?retry-after=5, /reset, /half, /silent; everything else is taken.

import { Webhook } from 'standardwebhooks'
import { type Answer, type HttpSink, type HttpSinkSettings, type Received, startHttpSink } from './http.ts'

export type WebhookSink = HttpSink & { accepted: { id: string; body: unknown }[] }

export async function startWebhookSink(secret: string, settings: HttpSinkSettings = {}): Promise<WebhookSink> {
  const receiver = new Webhook(secret)
  const accepted: WebhookSink['accepted'] = []
  const sink = await startHttpSink(({ path, headers, body }: Received): Answer => {
    const { pathname, searchParams } = new URL(path, 'http://sink')
    const [, word, status] = pathname.split('/')
    if (word === 'reset' || word === 'half' || word === 'silent') return word
    if (word === 'status') return { status: Number(status), headers: Object.fromEntries(searchParams), body: 'no' }
    try {
      const content = receiver.verify(body, headers as Record<string, string>)
      accepted.push({ id: String(headers['webhook-id']), body: content })
      return { status: 200, body: 'thanks' }
    } catch {
      return { status: 401, body: 'signature not valid' }
    }
  }, settings)
  return { ...sink, accepted }
}
