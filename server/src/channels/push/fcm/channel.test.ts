import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cert, deleteApp, initializeApp } from 'firebase-admin/app'
import { getMessaging } from 'firebase-admin/messaging'
import { afterEach, describe, expect, test } from 'vitest'
import { content, START } from '../../../../test/channels/push-content.ts'
import { account, anItem, newToken } from '../../../../test/channels/subjects/fcm.ts'
import { serviceAccount } from '../../../../test/credentials.ts'
import { agentTo } from '../../../../test/sinks/agent.ts'
import { startFcmSink } from '../../../../test/sinks/push.ts'
import type { ScriptedProviderSettings } from '../../../../test/sinks/scripted.ts'
import { systemClock, virtualClock } from '../../../lib/clock.ts'
import { fcmRefusal as refusal } from '../../../sink/push/fcm.ts'
import { TOKEN_PATH } from '../../../sink/push/google-tokens.ts'
import { createServiceAccountTokens } from './access-token.ts'
import { type FcmItem, openFcmChannel } from './channel.ts'
import { writeFcmPush } from './payload.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
})

async function start(settings: Partial<ScriptedProviderSettings> = {}) {
  const clock = virtualClock(START)
  const sink = await startFcmSink(clock, account, settings)
  const channel = openFcmChannel({ clock, route: sink.route })
  open.push(sink, channel)
  const send = async (changes: Partial<FcmItem> = {}) => (await channel.send([anItem(changes)]))[0]
  return { clock, sink, channel, send }
}

describe('what the device gets', () => {
  test('is what the SDK expects: a data message of texts', async () => {
    const { sink, send } = await start()
    const push = writeFcmPush(
      content({
        url: 'https://example.com/bells',
        data: { order: 7 },
        icon: 'https://example.com/i.png',
        smallIcon: 'ic_bell',
        image: 'https://example.com/b.png',
        sound: 'bell',
        group: 'tower',
        collapseId: 'news',
        buttons: [
          { id: 'yes', text: 'Yes', icon: 'ic_yes' },
          { id: 'no', text: 'No' },
        ],
        android: {
          channelId: 'alarms',
          accentColor: 'FF00FF00',
          visibility: -1,
          background: { image: 'https://example.com/g.png' },
        },
      }),
    )
    expect(await send({ push })).toEqual({ kind: 'sent', id: 'projects/test-project/messages/0:1' })
    const [message] = sink.received
    expect(message?.android).toEqual({ priority: 'HIGH', ttl: '3600s', collapse_key: 'news' })
    const { custom = '', o = '', bg_img = '', ...rest } = message?.data ?? {}
    expect(JSON.parse(custom)).toEqual({ i: content().messageId, a: { order: 7 }, u: 'https://example.com/bells' })
    expect(JSON.parse(o)).toEqual([
      { i: 'yes', n: 'Yes', p: 'ic_yes' },
      { i: 'no', n: 'No' },
    ])
    expect(JSON.parse(bg_img)).toEqual({ img: 'https://example.com/g.png' })
    expect(rest).toEqual({
      title: 'Bells',
      alert: 'They ring',
      pri: '10',
      licon: 'https://example.com/i.png',
      sicon: 'ic_bell',
      bicon: 'https://example.com/b.png',
      sound: 'bell',
      grp: 'tower',
      oth_chnl: 'alarms',
      bgac: 'FF00FF00',
      vis: '-1',
    })
  })

  test('is stored for what is left of its time, 28 days at most', async () => {
    const { clock, sink, send } = await start()
    await send({ push: writeFcmPush(content({ expiresAt: new Date('2031-01-01T00:00:00Z'), priority: 5 })) })
    const push = writeFcmPush(content())
    clock.advance({ minutes: 59 })
    await send({ push })
    clock.advance({ minutes: 2 })
    await send({ push })
    expect(sink.received.map(({ android }) => android)).toMatchObject([
      { ttl: '2419200s', priority: 'NORMAL' },
      { ttl: '60s' },
      { ttl: '0s' },
    ])
  })
})

describe('the access token', () => {
  test('is bought once for all who wait, and kept for 55 minutes', async () => {
    const { clock, sink, channel } = await start()
    await channel.send(Array.from({ length: 100 }, () => anItem()))
    expect(sink.tokensSold()).toBe(1)
    clock.advance({ minutes: 54, seconds: 59 })
    await channel.send([anItem()])
    expect(sink.tokensSold()).toBe(1)
    clock.advance({ seconds: 1 })
    await Promise.all([channel.send([anItem()]), channel.send([anItem()])])
    expect(sink.tokensSold()).toBe(2)
    expect(sink.received).toHaveLength(103)
  })

  test('is bought again, once for all, and the messages sent again when Google does not take it', async () => {
    const { sink, channel } = await start()
    await channel.send([anItem()])
    sink.revokeTokens()
    const outcomes = await channel.send(Array.from({ length: 60 }, () => anItem()))
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
    expect(sink.tokensSold()).toBe(2)
    expect(sink.received).toHaveLength(61)
  })

  test('is bought once for those who are refused the same one in the same moment', async () => {
    let bought = 0
    const request = async () =>
      ({ kind: 'answer', status: 200, headers: {}, body: JSON.stringify({ access_token: `t${++bought}` }) }) as const
    const accessFor = createServiceAccountTokens(
      virtualClock(START),
      { request, close: async () => {} },
      'https://x.example/token',
    )
    expect(await accessFor('an app', account)).toEqual({ token: 't1' })
    const renewed = await Promise.all([
      accessFor('an app', account, 't1'),
      accessFor('an app', account, 't1'),
      accessFor('an app', account, 't1'),
    ])
    expect(renewed).toEqual([{ token: 't2' }, { token: 't2' }, { token: 't2' }])
  })

  test('that is refused a second time is a setting to mend', async () => {
    const { sink, send } = await start()
    const token = newToken()
    sink.script(token, refusal(401, 'UNAUTHENTICATED'), refusal(401, 'UNAUTHENTICATED'))
    expect(await send({ token })).toEqual({ kind: 'misconfigured', reason: 'status 401' })
  })

  test.each([
    [
      { status: 400, body: '{"error":"invalid_grant"}' },
      { kind: 'misconfigured', reason: 'service account refused' },
    ],
    [
      { status: 503, headers: { 'retry-after': '5' } },
      { kind: 'retry', reason: 'access token: status 503', pausesProvider: true, afterMs: 5_000 },
    ],
    [
      { status: 200, body: '{}' },
      { kind: 'retry', reason: 'access token: status 200', pausesProvider: true },
    ],
    ['reset' as const, { kind: 'retry', reason: 'access token: stream reset', pausesProvider: true }],
    ['refuse' as const, { kind: 'retry', reason: 'access token: stream refused', pausesProvider: true }],
  ])('that cannot be had lets nothing go out: %#', async (failure, outcome) => {
    const { clock, sink, channel, send } = await start()
    sink.script(TOKEN_PATH, failure, ...(failure === 'refuse' ? [failure] : []))
    expect(await channel.send([anItem(), anItem()])).toEqual([outcome, outcome])
    expect(sink.received).toEqual([])
    clock.advance({ seconds: 11 })
    expect(await send()).toMatchObject({ kind: 'sent' })
  })
})

describe('an answer', () => {
  test.each([
    [refusal(404, 'NOT_FOUND', { code: 'UNREGISTERED' }), { kind: 'gone', reason: 'UNREGISTERED' }],
    [refusal(400, 'INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT' }), { kind: 'gone', reason: 'INVALID_ARGUMENT' }],
    [
      refusal(400, 'INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT', field: 'message.data' }),
      { kind: 'failed', reason: 'INVALID_ARGUMENT' },
    ],
    [refusal(400, 'INVALID_ARGUMENT', { field: 'message.data' }), { kind: 'failed', reason: 'status 400' }],
    [refusal(403, 'PERMISSION_DENIED', { code: 'SENDER_ID_MISMATCH' }), { kind: 'gone', reason: 'SENDER_ID_MISMATCH' }],
    [refusal(403, 'PERMISSION_DENIED'), { kind: 'misconfigured', reason: 'status 403' }],
    [refusal(404, 'NOT_FOUND'), { kind: 'misconfigured', reason: 'status 404' }],
    [
      refusal(401, 'UNAUTHENTICATED', { code: 'THIRD_PARTY_AUTH_ERROR' }),
      { kind: 'misconfigured', reason: 'THIRD_PARTY_AUTH_ERROR' },
    ],
    [
      refusal(429, 'RESOURCE_EXHAUSTED', { code: 'QUOTA_EXCEEDED' }),
      { kind: 'retry', reason: 'QUOTA_EXCEEDED', afterMs: 60_000, pausesProvider: true },
    ],
    [
      refusal(429, 'RESOURCE_EXHAUSTED', { code: 'QUOTA_EXCEEDED', headers: { 'retry-after': '30' } }),
      { kind: 'retry', reason: 'QUOTA_EXCEEDED', afterMs: 30_000, pausesProvider: true },
    ],
    [refusal(503, 'UNAVAILABLE', { code: 'UNAVAILABLE' }), { kind: 'retry', reason: 'UNAVAILABLE', afterMs: 10_000 }],
    [refusal(500, 'INTERNAL', { code: 'INTERNAL' }), { kind: 'retry', reason: 'INTERNAL', afterMs: 10_000 }],
    [
      { status: 502, body: '<html>' },
      { kind: 'retry', reason: 'status 502', afterMs: 10_000 },
    ],
    [{ status: 302 }, { kind: 'failed', reason: 'status 302' }],
    [
      { status: 400, body: '{"error":{"details":[null,7,{}]}}' },
      { kind: 'failed', reason: 'status 400' },
    ],
  ])('is told as what follows: %#', async (answer, outcome) => {
    const { sink, send } = await start()
    const token = newToken()
    sink.script(token, answer)
    expect(await send({ token })).toEqual(outcome)
  })

  test('of 200 without a name is as good', async () => {
    const { sink, send } = await start()
    const token = newToken()
    sink.script(token, { status: 200, body: 'ok' })
    expect(await send({ token })).toEqual({ kind: 'sent' })
  })
})

describe('the stand-in, judged by firebase-admin', () => {
  test('takes what that sends, and refuses what is wrong in words that it knows', async () => {
    const sink = await startFcmSink(systemClock(), account)
    open.push(sink)
    const httpAgent = agentTo(sink)
    const folder = await mkdtemp(join(tmpdir(), 'carillon-fcm-'))
    open.push({ close: () => rm(folder, { recursive: true }) })
    // By a file: with an object it forgets the agent when it fetches its token.
    const messagingOf = async (changes: Record<string, unknown> = {}) => {
      const file = join(folder, newToken())
      await writeFile(file, JSON.stringify(serviceAccount(changes)))
      const app = initializeApp({ credential: cert(file, httpAgent), httpAgent }, file)
      open.push({ close: () => deleteApp(app) })
      return getMessaging(app)
    }
    const messaging = await messagingOf()
    const [good, dead, busy] = [newToken(), newToken(), newToken()]
    const message = { token: good, data: { custom: '{}' }, android: { priority: 'high' } } as const
    expect(await messaging.send(message)).toBe('projects/test-project/messages/0:1')
    expect(sink.received).toMatchObject([message])
    sink.script(dead, refusal(404, 'NOT_FOUND', { code: 'UNREGISTERED' }))
    await expect(messaging.send({ ...message, token: dead })).rejects.toMatchObject({
      code: 'messaging/registration-token-not-registered',
    })
    sink.script(busy, refusal(429, 'RESOURCE_EXHAUSTED', { code: 'QUOTA_EXCEEDED' }))
    await expect(messaging.send({ ...message, token: busy })).rejects.toMatchObject({
      code: 'messaging/message-rate-exceeded',
    })
    await expect(messaging.send({ ...message, data: { x: 'x'.repeat(5_000) } })).rejects.toMatchObject({
      code: 'messaging/invalid-argument',
    })
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const stranger = await messagingOf({ private_key: other.export({ type: 'pkcs8', format: 'pem' }).toString() })
    await expect(stranger.send(message)).rejects.toMatchObject({ message: expect.stringContaining('invalid_grant') })
    expect(sink.received).toHaveLength(1)
  })
})
