import { afterEach, describe, expect, test } from 'vitest'
import { content, START } from '../../../../test/channels/push-content.ts'
import { account, anItem, newToken } from '../../../../test/channels/subjects/huawei.ts'
import { startHuaweiSink } from '../../../../test/sinks/push.ts'
import { virtualClock } from '../../../lib/clock.ts'
import { HUAWEI_TOKENS } from '../../../sink/push/client-tokens.ts'
import { huaweiRefusal as refusal } from '../../../sink/push/huawei.ts'
import { type HuaweiItem, openHuaweiChannel } from './channel.ts'
import { writeHuaweiPush } from './payload.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
})

async function start() {
  const clock = virtualClock(START)
  const sink = await startHuaweiSink(clock, account)
  const channel = openHuaweiChannel({ clock, route: sink.route })
  open.push(sink, channel)
  const send = async (changes: Partial<HuaweiItem> = {}) => (await channel.send([anItem(changes)]))[0]
  return { clock, sink, channel, send }
}

const RICH = content({
  url: 'https://example.com/bells',
  data: { order: 7 },
  icon: 'https://example.com/i.png',
  smallIcon: 'ic_bell',
  image: 'https://example.com/b.png',
  sound: 'bell',
  collapseId: 'news',
  buttons: [{ id: 'yes', text: 'Yes' }],
  android: { channelId: 'alarms', accentColor: 'FF00FF00', ledColor: '80FF0000', visibility: -1 },
  huawei: { category: 'IM', biTag: 'campaign', badge: { class: 'com.example.Main', set: 3, add: 2 } },
})

describe('what the device gets', () => {
  test('is a notification for the system to show, with an intent that tells the SDK of a tap', async () => {
    const { sink, send } = await start()
    const token = newToken()
    expect(await send({ token, push: writeHuaweiPush(RICH) })).toEqual({ kind: 'sent', id: '1' })
    const [message] = sink.received
    expect(message?.token).toEqual([token])
    const { notification, collapse_key, ...android } = message?.android ?? {}
    expect(android).toEqual({ urgency: 'HIGH', category: 'IM', bi_tag: 'campaign', ttl: '3600s' })
    expect(collapse_key).toBeGreaterThanOrEqual(1)
    const { click_action, buttons, ...shown } = notification ?? {}
    expect(shown).toEqual({
      title: 'Bells',
      body: 'They ring',
      icon: '/raw/ic_bell',
      image: 'https://example.com/i.png',
      style: 2,
      big_picture: 'https://example.com/b.png',
      color: '#00FF00',
      sound: '/raw/bell',
      default_sound: false,
      channel_id: 'alarms',
      visibility: 'SECRET',
      light_settings: {
        color: { alpha: 0.502, red: 1, green: 0, blue: 0 },
        light_on_duration: '1s',
        light_off_duration: '1s',
      },
      badge: { class: 'com.example.Main', set_num: 3, add_num: 2 },
      tag: 'news',
    })
    const intent = String(click_action?.intent)
    expect(intent).toMatch(
      /^#Intent;launchFlags=0x58000000;component=com\.example\.bells\/com\.onesignal\.NotificationOpenedActivityHMS;.*;end$/,
    )
    expect(customOf(intent)).toEqual({ i: RICH.messageId, a: { order: 7 }, u: 'https://example.com/bells' })
    const [button] = buttons as { name: string; intent: string }[]
    expect(button?.name).toBe('Yes')
    expect(customOf(button?.intent ?? '')).toMatchObject({ i: RICH.messageId, actionId: 'yes' })
  })

  const customOf = (intent: string) => JSON.parse(decodeURIComponent(/;S\.custom=([^;]*)/.exec(intent)?.[1] ?? ''))

  test('is a data message for the SDK to show, where the message says so or shows nothing', async () => {
    const { sink, send } = await start()
    await send({ push: writeHuaweiPush({ ...RICH, huawei: { isDataMessage: true, category: 'IM' } }) })
    await send({ push: writeHuaweiPush(content({ title: undefined, body: undefined, data: { sync: true } })) })
    const [shown, quiet] = sink.received
    const data = JSON.parse(shown?.data ?? '')
    expect(data).toMatchObject({
      ...{ title: 'Bells', alert: 'They ring', licon: 'https://example.com/i.png', sicon: 'ic_bell', sound: 'bell' },
      ...{ oth_chnl: 'alarms', bgac: 'FF00FF00', ledc: '80FF0000', vis: '-1', collapse_key: 'news' },
    })
    expect(JSON.parse(data.custom)).toMatchObject({ i: RICH.messageId, a: { order: 7 } })
    expect(shown?.android).toMatchObject({ category: 'IM', urgency: 'NORMAL' })
    expect(shown?.android?.notification).toBeUndefined()
    expect(JSON.parse(JSON.parse(quiet?.data ?? '').custom)).toMatchObject({ a: { sync: true } })
    expect(quiet?.android).toMatchObject({ category: 'MARKETING' })
  })

  test('has a title in any case, the default sound unless told, and a way to open without a package', async () => {
    const { sink, send } = await start()
    const credentials = { ...account, packageName: undefined }
    await send({ credentials, push: writeHuaweiPush(content({ title: undefined, url: 'https://example.com/' })) })
    await send({ credentials, push: writeHuaweiPush(content({ sound: 'nil', priority: 5 })) })
    const [first, second] = sink.received.map(({ android }) => android)
    expect(first?.notification).toMatchObject({
      title: account.defaultTitle,
      default_sound: true,
      click_action: { type: 2, url: 'https://example.com/' },
    })
    expect(second?.notification).toMatchObject({ default_sound: false, click_action: { type: 3 } })
    expect(second?.urgency).toBe('NORMAL')
  })

  test('is whole where a character was cut in two', async () => {
    const { sink, send } = await start()
    expect(await send({ push: writeHuaweiPush(content({ title: 'Bells \ud83d' })) })).toMatchObject({ kind: 'sent' })
    expect(String(sink.received[0]?.android?.notification?.click_action?.intent)).toContain('Bells%20%EF%BF%BD')
  })

  test('goes by the project, or by the app where none is named', async () => {
    const { sink, send } = await start()
    await send()
    await send({ credentials: { ...account, projectId: undefined } })
    const paths = sink.asked.map(({ path }) => path).filter((path) => path !== HUAWEI_TOKENS.path)
    expect(paths).toEqual(['/v2/7700001/messages:send', '/v1/100000001/messages:send'])
  })
})

describe('an access token', () => {
  test('is bought once for many, and once more when it is over or revoked', async () => {
    const { clock, sink, channel, send } = await start()
    await channel.send(Array.from({ length: 50 }, () => anItem()))
    expect(sink.tokensSold()).toBe(1)
    clock.advance({ minutes: 57 })
    expect(await send()).toMatchObject({ kind: 'sent' })
    expect(sink.tokensSold()).toBe(2)
    sink.revokeTokens()
    const outcomes = await channel.send(Array.from({ length: 20 }, () => anItem()))
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
    expect(sink.tokensSold()).toBe(3)
  })

  test('that cannot be had lets nothing go out', async () => {
    const { sink, send } = await start()
    expect(await send({ credentials: { ...account, secret: 'wrong-secret' } })).toEqual({
      kind: 'misconfigured',
      reason: 'client secret refused',
    })
    sink.script(HUAWEI_TOKENS.path, { status: 503, headers: { 'retry-after': '5' } })
    expect(await send()).toEqual({
      kind: 'retry',
      reason: 'access token: status 503',
      pausesProvider: true,
      afterMs: 5_000,
    })
    expect(sink.received).toEqual([])
  })
})

test.each([
  [refusal(200, '80100000'), { kind: 'gone', reason: 'code 80100000' }],
  [refusal(400, '80300007'), { kind: 'gone', reason: 'code 80300007' }],
  [refusal(400, '80300008'), { kind: 'failed', reason: 'code 80300008' }],
  [refusal(400, '80100003'), { kind: 'failed', reason: 'code 80100003' }],
  [refusal(400, '80300002'), { kind: 'misconfigured', reason: 'code 80300002' }],
  [refusal(404, ''), { kind: 'misconfigured', reason: 'status 404' }],
  [refusal(500, '81000001'), { kind: 'retry', reason: 'code 81000001', afterMs: 10_000 }],
  [refusal(503, ''), { kind: 'retry', reason: 'status 503', afterMs: 30_000, pausesProvider: true }],
  [refusal(400, '99999999'), { kind: 'failed', reason: 'status 400' }],
  [refusal(200, '99999999'), { kind: 'failed', reason: 'status 200' }],
  [
    { status: 200, body: 'nothing that means anything' },
    { kind: 'unknown', reason: 'answer not understood' },
  ],
])('an answer means what Huawei says: %#', async (answer, outcome) => {
  const { sink, send } = await start()
  const token = newToken()
  sink.script(token, answer)
  expect(await send({ token })).toEqual(outcome)
})

test('an access token that is refused twice is a setting to mend', async () => {
  const { sink, send } = await start()
  const token = newToken()
  sink.script(token, refusal(401, '80200003'), refusal(401, '80200003'))
  expect(await send({ token })).toEqual({ kind: 'misconfigured', reason: 'code 80200003' })
})
