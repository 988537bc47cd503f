import apn from '@parse/node-apn'
import { afterEach, describe, expect, test } from 'vitest'
import { content, START } from '../../../../test/channels/push-content.ts'
import { account, anItem, credentials, newToken } from '../../../../test/channels/subjects/apns.ts'
import { aP8 } from '../../../../test/credentials.ts'
import { startApnsSink } from '../../../../test/sinks/push.ts'
import type { ScriptedProviderSettings } from '../../../../test/sinks/scripted.ts'
import { systemClock, virtualClock } from '../../../lib/clock.ts'
import { certificateOfApp } from '../../../sink/certificate.ts'
import { apnsRefusal as refusal } from '../../../sink/push/apns.ts'
import { readJwt } from '../../../sink/push/jwt.ts'
import { type ApnsCredentials, type ApnsItem, openApnsChannel } from './channel.ts'
import { writeLiveActivityPush } from './live-activity.ts'
import { type ApnsPush, writeApnsPush, writeSafariPush } from './payload.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
})

async function start(settings: Partial<ScriptedProviderSettings> = {}) {
  const clock = virtualClock(START)
  const sink = await startApnsSink(clock, account, settings)
  const channel = openApnsChannel({ clock, route: sink.route })
  open.push(sink, channel)
  const send = async (changes: Partial<ApnsItem> = {}) => (await channel.send([anItem(changes)]))[0]
  return { clock, sink, channel, send }
}

describe('what the device gets', () => {
  test('is what iOS and the SDK expect, with the headers that Apple asks for', async () => {
    const { sink, send } = await start()
    const push = writeApnsPush(
      content({
        subtitle: 'Loud',
        url: 'https://example.com/bells',
        data: { order: 7 },
        image: 'https://example.com/b.png',
        sound: 'bell.caf',
        group: 'tower',
        collapseId: 'news',
        buttons: [{ id: 'yes', text: 'Yes' }],
        ios: { badge: { increase: 2 }, category: 'c', interruptionLevel: 'time-sensitive', relevanceScore: 0.5 },
      }),
    )
    const id = '22222222-2222-4222-8222-222222222222'
    expect(await send({ push, id })).toEqual({ kind: 'sent', id })
    expect(sink.received).toMatchObject([
      {
        payload: {
          aps: {
            alert: { title: 'Bells', subtitle: 'Loud', body: 'They ring' },
            sound: 'bell.caf',
            category: 'c',
            'thread-id': 'tower',
            'interruption-level': 'time-sensitive',
            'relevance-score': 0.5,
            'mutable-content': 1,
          },
          custom: {
            i: content().messageId,
            a: { order: 7 },
            u: 'https://example.com/bells',
            badge_inc: 2,
            collapse_id: 'news',
          },
          att: { image: 'https://example.com/b.png' },
          buttons: [{ i: 'yes', n: 'Yes' }],
        },
        headers: {
          'apns-topic': 'com.example.app',
          'apns-push-type': 'alert',
          'apns-priority': '10',
          'apns-expiration': String(Date.parse('2030-01-01T10:00:00Z') / 1000),
          'apns-collapse-id': 'news',
        },
      },
    ])
    expect(sink.received[0]?.payload.aps).not.toHaveProperty('badge')
  })

  test('wakes the app quietly when there is nothing to show', async () => {
    const { sink, send } = await start()
    const push = writeApnsPush(content({ title: undefined, body: undefined, data: { sync: true }, sound: 'bell.caf' }))
    expect(await send({ push })).toMatchObject({ kind: 'sent' })
    expect(sink.received[0]).toMatchObject({
      payload: { aps: { 'content-available': 1 }, custom: { a: { sync: true } } },
      headers: { 'apns-push-type': 'background', 'apns-priority': '5' },
    })
    expect(sink.received[0]?.payload.aps).toEqual({ 'content-available': 1 })
  })

  test('is for a call: another topic, and a larger limit', async () => {
    const { sink, send } = await start()
    const push = (length: number): ApnsPush => {
      const empty = writeApnsPush(content({ ios: { isVoip: true }, data: { x: '' } }))
      const fill = 'x'.repeat(length - empty.body.length)
      return writeApnsPush(content({ ios: { isVoip: true }, data: { x: fill } }))
    }
    expect(await send({ push: push(5_120) })).toMatchObject({ kind: 'sent' })
    expect(await send({ push: push(5_121) })).toEqual({ kind: 'failed', reason: 'too large' })
    expect(sink.received[0]?.headers).toMatchObject({ 'apns-topic': 'com.example.app.voip', 'apns-push-type': 'voip' })
  })

  test('starts, updates and ends a live activity', async () => {
    const { clock, sink, send } = await start()
    const activity = {
      messageId: content().messageId,
      expiresAt: content().expiresAt,
      priority: 10,
      state: { score: 1 },
    } as const
    const order = { type: 'OrderAttributes', attributes: { order: 7 }, activityId: 'order-7' }
    await send({
      push: writeLiveActivityPush({ ...activity, start: order, alert: { title: 'On its way' } }, clock.now()),
    })
    await send({ push: writeLiveActivityPush({ ...activity, staleAt: new Date('2030-01-01T10:00:00Z') }, clock.now()) })
    await send({ push: writeLiveActivityPush({ ...activity, isEnd: true, dismissAt: clock.now() }, clock.now()) })
    const timestamp = Date.parse(START) / 1000
    const state = { score: 1, onesignal: { notificationId: content().messageId } }
    expect(sink.received.map(({ payload }) => payload.aps)).toEqual([
      {
        timestamp,
        event: 'start',
        'content-state': state,
        'attributes-type': 'OrderAttributes',
        attributes: { order: 7, onesignal: { activityId: 'order-7' } },
        alert: { title: 'On its way' },
      },
      { timestamp, event: 'update', 'content-state': state, 'stale-date': timestamp + 3600 },
      { timestamp, event: 'end', 'content-state': state, 'dismissal-date': timestamp },
    ])
    expect(sink.received[0]?.headers).toMatchObject({
      'apns-push-type': 'liveactivity',
      'apns-topic': 'com.example.app.push-type.liveactivity',
    })
  })

  test('has a collapse id of 64 bytes at most, and is not stored when it was for now', async () => {
    const { sink, send } = await start()
    const push = writeApnsPush(
      content({ collapseId: 'ü'.repeat(64), expiresAt: new Date(START), ios: { badge: { set: 3 } } }),
    )
    await send({ push })
    expect(sink.received[0]?.headers).toMatchObject({
      'apns-collapse-id': expect.stringMatching(/^[\w-]{43}$/),
      'apns-expiration': '0',
    })
    expect(sink.received[0]).toHaveProperty('payload.aps.badge', 3)
  })
})

describe('the token of the team', () => {
  test('is renewed at 50 minutes, so that Apple never calls it old and never complains of too many', async () => {
    const { clock, sink, send } = await start()
    for (let minutes = 0; minutes < 200; minutes += 5) {
      expect(await send()).toMatchObject({ kind: 'sent' })
      clock.advance({ minutes: 5 })
    }
    const issued = [...new Set(sink.received.map(({ jwt }) => jwt))].map((jwt) => Number(readJwt(jwt)?.claims.iat))
    expect(issued.map((iat) => (iat - Date.parse(START) / 1000) / 60)).toEqual([0, 50, 100, 150])
  })

  test('is renewed and the message sent again, once for all, when Apple calls it expired', async () => {
    const { clock, sink, channel } = await start()
    await channel.send([anItem()])
    clock.advance({ minutes: 30 })
    const items = Array.from({ length: 40 }, () => anItem())
    for (const { token } of items) sink.script(token, refusal(403, 'ExpiredProviderToken'))
    expect(new Set((await channel.send(items)).map(({ kind }) => kind))).toEqual(new Set(['sent']))
    expect(new Set(sink.received.map(({ jwt }) => jwt)).size).toBe(2)
    expect([...sink.taken.values()]).toEqual(Array(41).fill(1))
  })

  test('is not renewed within 20 minutes: then a clock is wrong, and somebody must look', async () => {
    const { clock, sink, send } = await start()
    clock.advance({ minutes: 19 })
    const token = newToken()
    sink.script(token, refusal(403, 'ExpiredProviderToken'))
    expect(await send({ token })).toEqual({ kind: 'misconfigured', reason: 'ExpiredProviderToken' })
    expect(sink.requests()).toBe(1)
  })

  test('goes only over connections of its own team', async () => {
    const { sink, channel } = await start()
    const other: ApnsCredentials = { ...credentials, teamId: 'OTHER' }
    const outcomes = await channel.send([anItem(), anItem({ credentials: other }), anItem()])
    expect(outcomes).toMatchObject([
      { kind: 'sent' },
      { kind: 'misconfigured', reason: 'InvalidProviderToken' },
      { kind: 'sent' },
    ])
    expect(sink.connections()).toBe(2)
  })
})

describe('a certificate', () => {
  const pair = (uid: string): ApnsCredentials => {
    const certificate = certificateOfApp(uid)
    return {
      kind: 'certificate',
      environment: 'development',
      key: certificate.key,
      certificate: certificate.cert,
      topic: null,
    }
  }

  test('takes the place of the token, and names the topic', async () => {
    const { sink, send } = await start()
    expect(await send({ credentials: pair('com.example.app') })).toMatchObject({ kind: 'sent' })
    expect(sink.received[0]?.headers).not.toHaveProperty('authorization')
  })

  test('of a website reaches Safari as it was', async () => {
    const { sink, send } = await start()
    const push = writeSafariPush(content({ url: 'https://example.com/bells', buttons: [{ id: 'go', text: 'Go' }] }))
    const web = { ...pair('web.com.example'), topic: 'web.com.example' }
    expect(await send({ credentials: web, push })).toMatchObject({ kind: 'sent' })
    expect(sink.received[0]).toMatchObject({
      payload: {
        aps: { alert: { title: 'Bells', body: 'They ring', action: 'Go' }, 'url-args': ['https://example.com/bells'] },
      },
      headers: { 'apns-topic': 'web.com.example' },
    })
  })

  test('for another topic is told as a setting to mend', async () => {
    const { send } = await start()
    const wrong = { ...pair('com.example.app'), topic: 'com.example.other' }
    expect(await send({ credentials: wrong })).toEqual({ kind: 'misconfigured', reason: 'TopicDisallowed' })
  })
})

describe('an answer', () => {
  test.each([
    [400, 'BadDeviceToken', 'gone'],
    [400, 'DeviceTokenNotForTopic', 'gone'],
    [410, 'Unregistered', 'gone'],
    [410, 'ExpiredToken', 'gone'],
    [400, 'TopicDisallowed', 'misconfigured'],
    [403, 'InvalidProviderToken', 'misconfigured'],
    [403, 'BadCertificateEnvironment', 'misconfigured'],
    [400, 'BadCollapseId', 'failed'],
    [413, 'PayloadTooLarge', 'failed'],
    [429, 'TooManyRequests', 'retry'],
    [500, 'InternalServerError', 'retry'],
    [503, 'ServiceUnavailable', 'retry'],
    [503, 'Shutdown', 'retry'],
  ])('of %i %s is told as what follows', async (status, word, kind) => {
    const { sink, send } = await start()
    const token = newToken()
    sink.script(token, refusal(status, word))
    expect(await send({ token })).toEqual({ kind, reason: word })
  })

  test('that the device is gone says since when', async () => {
    const { sink, send } = await start()
    const [token, other] = [newToken(), newToken()]
    const since = new Date('2029-12-24T18:00:00Z')
    sink.script(token, refusal(410, 'Unregistered', { timestamp: since.getTime() }))
    sink.script(other, refusal(410, 'Unregistered', { timestamp: 'yesterday' }))
    expect(await send({ token })).toEqual({ kind: 'gone', reason: 'Unregistered', since })
    expect(await send({ token: other })).toEqual({ kind: 'gone', reason: 'Unregistered' })
  })

  test('that tokens are renewed too often stops all of the app for a while', async () => {
    const { sink, send } = await start()
    const token = newToken()
    sink.script(token, refusal(429, 'TooManyProviderTokenUpdates'))
    expect(await send({ token })).toEqual({
      kind: 'retry',
      reason: 'TooManyProviderTokenUpdates',
      afterMs: 1_200_000,
      pausesProvider: true,
    })
  })

  test('that we do not know is judged by its status', async () => {
    const { sink, send } = await start()
    for (const [status, kind] of [
      [400, 'failed'],
      [403, 'misconfigured'],
      [410, 'gone'],
      [500, 'retry'],
      [302, 'failed'],
    ] as const) {
      const token = newToken()
      sink.script(token, { status, body: status === 400 ? '{"reason":"NewWord"}' : '<html>' })
      expect(await send({ token })).toEqual({ kind, reason: `status ${status}` })
    }
  })
})

test('one connection serves many, though it takes one request until it knows us', async () => {
  const { sink, channel } = await start({ firstStreams: 1, maxStreams: 1000 })
  const outcomes = await channel.send(Array.from({ length: 300 }, () => anItem()))
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
  expect(sink.connections()).toBe(1)
})

describe('the stand-in, judged by @parse/node-apn', () => {
  test('takes what that sends, and refuses what is wrong in words that it knows', async () => {
    const sink = await startApnsSink(systemClock(), account)
    open.push(sink)
    const client = (changes: object = {}) =>
      new apn.Provider({
        token: { key: account.key, keyId: account.keyId, teamId: account.teamId },
        production: true,
        address: '127.0.0.1',
        port: sink.port,
        ca: [sink.route.ca as string],
        rejectUnauthorized: true,
        ...changes,
      } as apn.ProviderOptions)
    const notification = (changes: object = {}) =>
      Object.assign(new apn.Notification(), { alert: 'hello', topic: account.topic, pushType: 'alert', ...changes })
    const provider = client()
    const [good, dead] = [newToken(), newToken()]
    sink.script(dead, refusal(410, 'Unregistered', { timestamp: 1_700_000_000_000 }))
    const { sent, failed } = await provider.send(notification(), [good, dead])
    expect(sent).toMatchObject([{ device: good }])
    expect(failed).toMatchObject([
      { device: dead, status: 410, response: { reason: 'Unregistered', timestamp: 1_700_000_000_000 } },
    ])
    const reasonOf = async (it: apn.Provider, changes: object = {}) =>
      (await it.send(notification(changes), good)).failed[0]?.response?.reason
    expect(await reasonOf(provider, { topic: 'com.example.other' })).toBe('DeviceTokenNotForTopic')
    expect(await reasonOf(provider, { collapseId: 'x'.repeat(65) })).toBe('BadCollapseId')
    expect(await reasonOf(provider, { alert: 'x'.repeat(5_000) })).toBe('PayloadTooLarge')
    await provider.shutdown()
    const stranger = client({ token: { key: aP8().pem, keyId: account.keyId, teamId: account.teamId } })
    expect(await reasonOf(stranger)).toBe('InvalidProviderToken')
    await stranger.shutdown()
  })
})
