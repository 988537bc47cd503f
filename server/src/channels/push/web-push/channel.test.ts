import { createECDH, randomBytes } from 'node:crypto'
import ece from 'http_ece'
import { afterEach, describe, expect, test } from 'vitest'
import webpush from 'web-push'
import { content, START } from '../../../../test/channels/push-content.ts'
import { itemFor, newVapid, vapid } from '../../../../test/channels/subjects/web-push.ts'
import { agentTo } from '../../../../test/sinks/agent.ts'
import { startPushService } from '../../../../test/sinks/push.ts'
import { systemClock, virtualClock } from '../../../lib/clock.ts'
import type { BrowserSubscription } from '../../../sink/push/browser.ts'
import { openWebPushChannel } from './channel.ts'
import { encryptWebPush, MAX_PLAINTEXT_BYTES } from './encrypt.ts'
import { type WebPush, writeWebPush } from './payload.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
})

async function start(settings: Parameters<typeof startPushService>[1] = {}) {
  const clock = virtualClock(START)
  const service = await startPushService(clock, settings)
  const channel = openWebPushChannel({ clock, route: service.route })
  open.push(service, channel)
  const browser = service.subscribe(vapid.publicKey)
  const sendTo = async (it: BrowserSubscription, push?: WebPush) => (await channel.send([itemFor(it, push)]))[0]
  return { clock, service, channel, browser, send: (push?: WebPush) => sendTo(browser, push), sendTo }
}

test('encrypts as the example of RFC 8291 does', () => {
  const from = (text: string) => Buffer.from(text, 'base64url')
  const encrypted = encryptWebPush(
    Buffer.from('When I grow up, I want to be a watermelon'),
    {
      p256dh: from('BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'),
      auth: from('BTBZMqHH6r4Tts7J_aSIgg'),
    },
    { salt: from('DGv6ra1nlYgDCS1FRnbzlw'), privateKey: from('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw') },
  )
  expect(encrypted.toString('base64url')).toBe(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
})

test('encrypts what the package http_ece can read', () => {
  const browser = createECDH('prime256v1')
  const keys = { p256dh: browser.generateKeys(), auth: randomBytes(16) }
  for (const length of [0, 1, 300, MAX_PLAINTEXT_BYTES]) {
    const plain = randomBytes(length)
    const authSecret = keys.auth.toString('base64url')
    expect(
      ece.decrypt(encryptWebPush(plain, keys), { version: 'aes128gcm', privateKey: browser, authSecret }).equals(plain),
    ).toBe(true)
  }
})

describe('what the browser gets', () => {
  test('is what the service worker expects', async () => {
    const { service, send } = await start()
    const push = writeWebPush(
      content({
        url: 'https://example.com/bells',
        data: { order: 7 },
        icon: 'https://example.com/i.png',
        image: 'https://example.com/b.png',
        smallIcon: 'https://example.com/s.png',
        buttons: [
          { id: 'yes', text: 'Yes', icon: 'https://example.com/y.png', url: 'https://example.com/yes' },
          { id: 'no', text: 'No' },
        ],
        confirmsReceipt: true,
        collapseId: 'news',
      }),
    )
    expect(await send(push)).toEqual({ kind: 'sent' })
    const [received] = service.received
    expect(JSON.parse(received?.text ?? '')).toEqual({
      custom: { i: content().messageId, a: { order: 7 }, u: 'https://example.com/bells', rr: 'y' },
      title: 'Bells',
      alert: 'They ring',
      icon: 'https://example.com/i.png',
      image: 'https://example.com/b.png',
      badge: 'https://example.com/s.png',
      tag: 'news',
      o: [
        { i: 'yes', n: 'Yes', p: 'https://example.com/y.png', u: 'https://example.com/yes' },
        { i: 'no', n: 'No' },
      ],
    })
    expect(received).toMatchObject({ ttl: 3600, urgency: 'high', topic: 'news' })
  })

  test('has a TTL of what is left, and a topic of allowed characters', async () => {
    const { clock, service, send } = await start()
    const push = writeWebPush(content({ collapseId: 'Ünal & more than thirty-two characters', priority: 5 }))
    clock.advance({ minutes: 59 })
    await send(push)
    clock.advance({ minutes: 2 })
    await send(push)
    expect(service.received).toMatchObject([
      { ttl: 60, urgency: 'normal', topic: expect.stringMatching(/^[\w-]{32}$/) },
      { ttl: 0 },
    ])
    expect(JSON.parse(service.received[0]?.text ?? '')).not.toHaveProperty('custom.rr')
  })

  test('may be as large as the record, and not a byte more', async () => {
    const { service, send } = await start()
    const push = writeWebPush(content())
    expect(await send({ ...push, plain: Buffer.alloc(MAX_PLAINTEXT_BYTES, 'x') })).toEqual({ kind: 'sent' })
    expect(await send({ ...push, plain: Buffer.alloc(MAX_PLAINTEXT_BYTES + 1, 'x') })).toEqual({
      kind: 'failed',
      reason: 'too large',
    })
    expect(service.requests()).toBe(1)
  })
})

describe('the token of the sender', () => {
  test('is kept for an hour, and good for the service at every moment', async () => {
    const { clock, service, send } = await start()
    for (let minutes = 0; minutes < 180; minutes += 10) {
      expect(await send()).toEqual({ kind: 'sent' })
      clock.advance({ minutes: 10 })
    }
    expect(new Set(service.asked.map(({ headers }) => headers.authorization)).size).toBe(3)
  })
})

describe('an answer', () => {
  test.each([
    [200, { kind: 'sent' }],
    [201, { kind: 'sent' }],
    [202, { kind: 'sent' }],
    [301, { kind: 'failed' }],
    [400, { kind: 'failed' }],
    [401, { kind: 'failed', reason: 'key refused' }],
    [403, { kind: 'failed', reason: 'key refused' }],
    [404, { kind: 'gone' }],
    [410, { kind: 'gone' }],
    [413, { kind: 'failed', reason: 'too large' }],
    [429, { kind: 'retry' }],
    [500, { kind: 'retry' }],
    [503, { kind: 'retry' }],
  ])('of %i is told', async (status, outcome) => {
    const { service, browser, send } = await start()
    service.script(browser.path, { status })
    expect(await send()).toMatchObject(outcome)
  })

  test('may ask for a pause until a date', async () => {
    const { service, browser, send } = await start()
    const headers = { 'retry-after': 'Tue, 01 Jan 2030 09:00:30 GMT' }
    service.script(browser.path, { status: 429, headers })
    expect(await send()).toMatchObject({ kind: 'retry', afterMs: 30_000 })
  })

  test('of a service about one subscription says nothing of the app: another key is refused for it alone', async () => {
    const { service, sendTo } = await start()
    expect(await sendTo(service.subscribe(newVapid().publicKey))).toEqual({ kind: 'failed', reason: 'key refused' })
    expect(await sendTo({ ...service.subscribe(vapid.publicKey), endpoint: `${service.origin}/gone` })).toMatchObject({
      kind: 'gone',
    })
  })
})

test('a service that speaks HTTP/1.1 only is reached as well', async () => {
  const { service, send } = await start({ isHttp1: true })
  expect([await send(), await send()]).toEqual([{ kind: 'sent' }, { kind: 'sent' }])
  expect(service.received).toHaveLength(2)
})

describe('the stand-in, judged by the web-push package', () => {
  const keys = { subject: vapid.subject, publicKey: vapid.publicKey, privateKey: vapid.privateKey }
  test('takes what that sends, and refuses what is wrong', async () => {
    const clock = systemClock()
    const service = await startPushService(clock, { isHttp1: true })
    open.push(service)
    const agent = agentTo(service)
    const { endpoint, p256dh, auth, path } = service.subscribe(vapid.publicKey)
    const subscription = { endpoint, keys: { p256dh, auth } }
    const options = { vapidDetails: keys, agent, TTL: 60 }
    expect(await webpush.sendNotification(subscription, 'hello', options)).toMatchObject({ statusCode: 201 })
    expect(service.received).toMatchObject([{ path, text: 'hello', ttl: 60 }])
    const other = newVapid()
    await expect(
      webpush.sendNotification(subscription, 'x', {
        ...options,
        vapidDetails: { ...keys, publicKey: other.publicKey, privateKey: other.privateKey },
      }),
    ).rejects.toMatchObject({ statusCode: 403 })
    await expect(
      webpush.sendNotification({ ...subscription, endpoint: `${endpoint}x` }, 'x', options),
    ).rejects.toMatchObject({ statusCode: 404 })
    await expect(webpush.sendNotification(subscription, 'x'.repeat(4_096), options)).rejects.toMatchObject({
      statusCode: 413,
    })
  })
})
