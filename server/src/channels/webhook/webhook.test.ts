import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type HttpSink, startHttpSink } from '../../../test/sinks/http.ts'
import { startWebhookSink, WEBHOOK_ORIGIN, type WebhookSink } from '../../../test/sinks/webhook.ts'
import { systemClock } from '../../lib/clock.ts'
import type { SinkFailure } from '../../sink/service.ts'
import type { Channel } from '../channel.ts'
import { type Outbound, openOutbound } from '../outbound.ts'
import { newWebhookSecret } from './sign.ts'
import { openWebhooks, type WebhookItem } from './webhook.ts'

const secret = newWebhookSecret()
const clock = systemClock()
let sink: WebhookSink
let outbound: Outbound
let channel: Channel<WebhookItem>
beforeAll(async () => {
  sink = await startWebhookSink(secret)
  outbound = openOutbound({ route: sink.route, allow: ['127.0.0.1'], allowHttp: true, timeoutMs: 500 })
  channel = openWebhooks({ outbound, clock })
})
afterAll(async () => {
  await channel.close()
  await outbound.close()
  await sink.close()
})

const item = (path: string, more: Partial<WebhookItem> = {}): WebhookItem => ({
  url: `${WEBHOOK_ORIGIN}${path}`,
  id: 'msg_2f',
  body: '{"type":"message.sent","text":"Grüße 🎉"}',
  secrets: [secret],
  ...more,
})
const sendOne = async (one: WebhookItem) => (await channel.send([one]))[0]
/** To a receiver that answers so. */
function sendFor(answer: SinkFailure) {
  sink.script('/answer', answer)
  return sendOne(item('/answer'))
}
const retryAfter = (status: number, text: string) => sendFor({ status, headers: { 'retry-after': text } })

describe('a webhook', () => {
  test('is believed by the receiver, with the same id on every try', async () => {
    expect(await sendOne(item('/hook'))).toEqual({ kind: 'sent' })
    expect(await sendOne(item('/hook'))).toEqual({ kind: 'sent' })
    const body = { type: 'message.sent', text: 'Grüße 🎉' }
    expect(sink.accepted).toEqual([
      { id: 'msg_2f', body },
      { id: 'msg_2f', body },
    ])
  })

  test('is believed by receivers that still have the old secret', async () => {
    expect(await sendOne(item('/hook', { secrets: [newWebhookSecret(), secret] }))).toEqual({ kind: 'sent' })
    expect(await sendOne(item('/hook', { secrets: [newWebhookSecret()] }))).toEqual({
      kind: 'failed',
      reason: 'status 401',
    })
  })

  test('carries the customer’s method and headers, but no signature of theirs', async () => {
    const headers = { 'X-Tenant': 'blue', 'Content-Type': 'application/vnd.blue+json', 'User-Agent': 'Blue' }
    expect(await sendOne(item('/hook', { method: 'PUT', headers }))).toEqual({ kind: 'sent' })
    expect(sink.asked.at(-1)).toMatchObject({
      method: 'PUT',
      headers: { 'x-tenant': 'blue', 'content-type': 'application/vnd.blue+json', 'user-agent': 'Blue' },
    })
    for (const name of ['webhook-id', 'Webhook-Signature', 'HOST', 'Content-Length', 'transfer-encoding', 'Connection'])
      expect(await sendOne(item('/hook', { headers: { [name]: 'x' } })), name).toEqual({
        kind: 'failed',
        reason: 'header not allowed',
      })
  })
})

describe('the outcome', () => {
  test.each([
    [200, { kind: 'sent' }],
    [204, { kind: 'sent' }],
    [299, { kind: 'sent' }],
    [301, { kind: 'failed', reason: 'status 301' }],
    [308, { kind: 'failed', reason: 'status 308' }],
    [400, { kind: 'failed', reason: 'status 400' }],
    [401, { kind: 'failed', reason: 'status 401' }],
    [404, { kind: 'failed', reason: 'status 404' }],
    [408, { kind: 'retry', reason: 'status 408' }],
    [410, { kind: 'gone', reason: 'status 410' }],
    [413, { kind: 'failed', reason: 'status 413' }],
    [425, { kind: 'retry', reason: 'status 425' }],
    [429, { kind: 'retry', reason: 'status 429' }],
    [500, { kind: 'retry', reason: 'status 500' }],
    [503, { kind: 'retry', reason: 'status 503' }],
  ])('of %d', async (status, expected) => {
    expect(await sendFor({ status })).toEqual(expected)
  })

  test('of a receiver that says when: then', async () => {
    expect(await retryAfter(429, '120')).toEqual({
      kind: 'retry',
      reason: 'status 429',
      afterMs: 120_000,
    })
    const date = new Date(clock.now().getTime() + 60_000).toUTCString()
    const dated = await retryAfter(503, date)
    expect(dated).toMatchObject({ kind: 'retry', afterMs: expect.any(Number) })
    expect(dated?.kind === 'retry' && dated.afterMs).toBeGreaterThan(50_000)
    for (const nonsense of ['soon', '-5', '1.5', ''])
      expect(await retryAfter(503, nonsense)).toEqual({
        kind: 'retry',
        reason: 'status 503',
      })
    expect(await retryAfter(503, '999999999')).toMatchObject({ afterMs: 86_400_000 })
  })

  test('of one that took it and was lost: unknown', async () => {
    expect(await sendFor('reset')).toEqual({ kind: 'unknown', reason: 'connection lost' })
    expect(await sendFor('half')).toEqual({ kind: 'unknown', reason: 'connection lost' })
    expect(await sendFor('hang')).toEqual({ kind: 'unknown', reason: 'timeout' })
  })
})

test('a receiver that hangs holds up nobody else', async () => {
  const hanging: HttpSink = await startHttpSink(() => 'silent')
  const small = openWebhooks({ outbound, clock, atOnce: 8 })
  const stuck = small.send(Array.from({ length: 20 }, () => item('/', { url: hanging.url })))
  await vi.waitFor(() => expect(hanging.received).toHaveLength(2))
  expect(await small.send(Array.from({ length: 20 }, () => item('/hook')))).toEqual(Array(20).fill({ kind: 'sent' }))
  expect(hanging.received.length).toBeLessThanOrEqual(2)
  await hanging.stop()
  expect(new Set((await stuck).map(({ kind }) => kind))).toEqual(new Set(['unknown', 'retry']))
})
