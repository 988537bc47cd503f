import { afterEach, expect, test } from 'vitest'
import { content, START } from '../../../../test/channels/push-content.ts'
import { account, anItem, newToken } from '../../../../test/channels/subjects/adm.ts'
import { startAdmSink } from '../../../../test/sinks/push.ts'
import { virtualClock } from '../../../lib/clock.ts'
import { admRefusal as refusal } from '../../../sink/push/adm.ts'
import { type AdmItem, openAdmChannel, writeAdmPush } from './channel.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
})

async function start(isHttp1 = false) {
  const clock = virtualClock(START)
  const sink = await startAdmSink(clock, account, { isHttp1 })
  const channel = openAdmChannel({ clock, route: sink.route })
  open.push(sink, channel)
  const send = async (changes: Partial<AdmItem> = {}) => (await channel.send([anItem(changes)]))[0]
  return { clock, sink, channel, send }
}

test.each([false, true])('the device gets what the SDK expects; over HTTP/1.1: %s', async (isHttp1) => {
  const { sink, send } = await start(isHttp1)
  const push = writeAdmPush(
    content({
      url: 'https://example.com/bells',
      data: { order: 7 },
      icon: 'ic_large',
      smallIcon: 'ic_bell',
      image: 'https://example.com/b.png',
      sound: 'bell',
      group: 'tower',
      collapseId: 'news',
      android: { groupMessage: '$[notif_count] bells' },
    }),
  )
  const token = newToken()
  expect(await send({ token, push })).toEqual({ kind: 'sent', id: 'adm-1' })
  const [message] = sink.received
  expect(message).toMatchObject({
    registrationId: token,
    priority: 'high',
    expiresAfter: 3600,
    consolidationKey: 'news',
  })
  const { custom = '', ...data } = message?.data ?? {}
  expect(JSON.parse(custom)).toEqual({ i: content().messageId, a: { order: 7 }, u: 'https://example.com/bells' })
  expect(data).toMatchObject({
    ...{ title: 'Bells', alert: 'They ring', licon: 'ic_large', sicon: 'ic_bell', bicon: 'https://example.com/b.png' },
    ...{ sound: 'bell', grp: 'tower', grp_msg: '$[notif_count] bells', collapse_key: 'news' },
  })
})

test('Amazon keeps nothing for less than a minute or for more than a month', async () => {
  const { sink, send } = await start()
  await send({ push: writeAdmPush(content({ expiresAt: new Date(START), priority: 5 })) })
  await send({ push: writeAdmPush(content({ expiresAt: new Date('2031-01-01T00:00:00Z') })) })
  expect(sink.received.map(({ expiresAfter }) => expiresAfter)).toEqual([60, 2_678_400])
  expect(sink.received[0]?.priority).toBe('normal')
})

test('an access token is bought once for many, and once more when it is over or revoked', async () => {
  const { clock, sink, channel, send } = await start()
  await channel.send(Array.from({ length: 50 }, () => anItem()))
  clock.advance({ minutes: 57 })
  await send()
  expect(sink.tokensSold()).toBe(2)
  sink.revokeTokens()
  const outcomes = await channel.send(Array.from({ length: 20 }, () => anItem()))
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
  expect(sink.tokensSold()).toBe(3)
})

test.each([
  [refusal(400, 'InvalidRegistrationId'), { kind: 'gone', reason: 'InvalidRegistrationId' }],
  [refusal(400, 'Unregistered'), { kind: 'gone', reason: 'Unregistered' }],
  [refusal(400, 'InvalidData'), { kind: 'failed', reason: 'InvalidData' }],
  [refusal(413, 'MessageTooLarge'), { kind: 'failed', reason: 'MessageTooLarge' }],
  [refusal(403, 'a secret'), { kind: 'misconfigured', reason: 'status 403' }],
  [
    refusal(429, 'MaxRateExceeded', { 'retry-after': '9' }),
    { kind: 'retry', reason: 'MaxRateExceeded', afterMs: 9_000, pausesProvider: true },
  ],
  [
    refusal(429, 'MaxRateExceeded'),
    { kind: 'retry', reason: 'MaxRateExceeded', afterMs: 60_000, pausesProvider: true },
  ],
  [refusal(503, '', { 'retry-after': '4' }), { kind: 'retry', reason: 'status 503', afterMs: 4_000 }],
  [refusal(500, ''), { kind: 'retry', reason: 'status 500', afterMs: 10_000 }],
])('an answer means what Amazon says: %#', async (answer, outcome) => {
  const { sink, send } = await start()
  const token = newToken()
  sink.script(token, answer)
  expect(await send({ token })).toEqual(outcome)
})

test('an access token that is refused twice is a setting to mend', async () => {
  const { sink, send } = await start()
  const token = newToken()
  sink.script(token, refusal(401, 'AccessTokenExpired'), refusal(401, 'AccessTokenExpired'))
  expect(await send({ token })).toEqual({ kind: 'misconfigured', reason: 'AccessTokenExpired' })
})
