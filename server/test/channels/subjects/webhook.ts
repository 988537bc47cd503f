import { openOutbound } from '../../../src/channels/outbound.ts'
import { newWebhookSecret } from '../../../src/channels/webhook/sign.ts'
import { openWebhooks, type WebhookItem } from '../../../src/channels/webhook/webhook.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { startWebhookSink, WEBHOOK_ORIGIN } from '../../sinks/webhook.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { httpTroubles } from './http.ts'

const secret = newWebhookSecret()
let last = 0

export const troubles: Troubles<SinkFailure> = { ...httpTroubles, refused: { status: 400 }, gone: { status: 410 } }

export async function start({ deadlineMs }: StartOptions): Promise<Subject<WebhookItem, SinkFailure>> {
  const provider = await startWebhookSink(secret)
  const outbound = openOutbound({ route: provider.route, timeoutMs: deadlineMs })
  const item = (changes: Partial<WebhookItem> = {}): WebhookItem => ({
    url: `${WEBHOOK_ORIGIN}/marker/${++last}`,
    id: `msg_${last}`,
    body: '{"marker":"content"}',
    secrets: [secret],
    ...changes,
  })
  return {
    provider,
    channel: openWebhooks({ outbound, clock: systemClock() }),
    close: () => outbound.close(),
    item,
    addressOf: ({ url }) => URL.parse(url)?.pathname ?? '',
    secretsOf: ({ id }) => [secret, 'marker', '127.0.0.1', id].filter((it) => it.length > 4),
    broken: () => [
      item({ url: 'nonsense marker' }),
      item({ url: 'http://hooks.example.com/marker' }),
      item({ url: 'https://10.0.0.1/marker' }),
      item({ headers: { 'bad name': 'x' } }),
      item({ headers: { 'x-a': 'b\r\nc: d' } }),
      item({ headers: { 'Webhook-Signature': 'v1,mine' } }),
      item({ headers: { 'Transfer-Encoding': 'chunked' } }),
      item({ secrets: [] }),
      item({ secrets: [secret, 'marker'] }),
      item({ id: 'a.b\r\n' }),
    ],
  }
}
