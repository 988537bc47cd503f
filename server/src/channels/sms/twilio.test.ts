import twilio from 'twilio'
import { afterEach, describe, expect, test } from 'vitest'
import { agentTo } from '../../../test/sinks/agent.ts'
import { startTwilioSink } from '../../../test/sinks/texts.ts'
import { systemClock } from '../../lib/clock.ts'
import type { SinkFailure } from '../../sink/service.ts'
import { twilioRefusal } from '../../sink/sms/twilio.ts'
import { openOutbound } from '../outbound.ts'
import type { SmsItem } from './message.ts'
import { openTwilio, type TwilioChannelSettings } from './twilio.ts'

const account = { accountSid: 'AC0123', password: 'token' }
const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function rig(
  fates: Record<string, SinkFailure> = {},
  more: Partial<TwilioChannelSettings> = {},
  known: object = {},
  timeoutMs = 60_000,
) {
  const sink = await startTwilioSink({ ...account, ...known })
  for (const [to, fate] of Object.entries(fates)) sink.script(to, fate)
  const outbound = openOutbound({ route: sink.route, timeoutMs })
  const settings = {
    outbound,
    clock: systemClock(),
    from: '+15005550100',
    ...account,
    ...more,
  }
  const channel = openTwilio(settings)
  stops.push(async () => {
    await channel.close()
    await outbound.close()
    await sink.close()
  })
  const send = (...items: SmsItem[]) => channel.send(items)
  return { sink, send }
}
const TO = '+15005550001'

describe('what is asked of Twilio', () => {
  test('recipient, sender, text, media and where to report', async () => {
    const { sink, send } = await rig()
    const statusCallback = 'https://us.example/sms/status?d=1&s=2'
    const mediaUrls = ['https://cdn.example/a.png', 'https://cdn.example/b.png']
    expect(await send({ to: TO, text: 'Grüße & 🎉 + =', mediaUrls, statusCallback })).toEqual([
      { kind: 'sent', id: sink.texts[0]?.sid },
    ])
    expect([...(sink.texts[0]?.form ?? [])]).toEqual([
      ['To', TO],
      ['From', '+15005550100'],
      ['Body', 'Grüße & 🎉 + ='],
      ['MediaUrl', 'https://cdn.example/a.png'],
      ['MediaUrl', 'https://cdn.example/b.png'],
      ['StatusCallback', statusCallback],
    ])
  })

  test('the sender of the item, else the messaging service, else the number of the settings', async () => {
    const { sink, send } = await rig({}, { messagingServiceSid: 'MG1' })
    await send({ to: TO, text: 'a' }, { to: TO, text: 'b', from: 'Carillon' })
    const senders = sink.texts.map(({ form }) => [form.get('From'), form.get('MessagingServiceSid')])
    expect(senders).toEqual([
      [null, 'MG1'],
      ['Carillon', null],
    ])
    const without = await rig({}, { from: undefined })
    expect(await without.send({ to: TO, text: 'a' })).toEqual([{ kind: 'misconfigured', reason: 'no sender' }])
    expect(without.sink.connections()).toBe(0)
  })

  test('an API key signs in with its own name', async () => {
    const key = { user: 'SK9', password: 'other' }
    expect(await (await rig({}, key, key)).send({ to: TO, text: 'a' })).toMatchObject([{ kind: 'sent' }])
    const refused = [{ kind: 'misconfigured', reason: 'credentials refused' }]
    expect(await (await rig({}, key)).send({ to: TO, text: 'a' })).toEqual(refused)
  })

  test('a base address may have a path, but nothing behind it', async () => {
    const { sink, send } = await rig({}, { baseUrl: 'https://api.twilio.com/gateway//' })
    expect(await send({ to: TO, text: 'a' })).toEqual([{ kind: 'misconfigured', reason: 'account not found' }])
    expect(sink.asked[0]?.path).toBe('/gateway/2010-04-01/Accounts/AC0123/Messages.json')
    for (const baseUrl of ['https://api.twilio.com?x=', 'https://api.twilio.com/#', 'nonsense', 'http://', '']) {
      const wrong = await rig({}, { baseUrl })
      expect(await wrong.send({ to: TO, text: 'a' }), baseUrl).toEqual([
        { kind: 'misconfigured', reason: 'address not valid' },
      ])
      expect(wrong.sink.requests()).toBe(0)
    }
  })
})

describe('the outcome', () => {
  test.each([
    [400, 21211, { kind: 'gone', reason: 'not a valid number' }],
    [400, 21614, { kind: 'gone', reason: 'not a mobile number' }],
    [400, 21610, { kind: 'gone', reason: 'opted out' }],
    [400, 21612, { kind: 'failed', reason: 'number out of reach from this sender' }],
    [400, 21408, { kind: 'failed', reason: 'country not enabled' }],
    [400, 21617, { kind: 'failed', reason: 'text not accepted' }],
    [400, 21606, { kind: 'misconfigured', reason: 'sender not accepted' }],
    [401, 20003, { kind: 'misconfigured', reason: 'credentials refused' }],
    [403, 0, { kind: 'misconfigured', reason: 'credentials refused' }],
    [404, 20404, { kind: 'misconfigured', reason: 'account not found' }],
    [429, 20429, { kind: 'retry', reason: 'too many requests', pausesProvider: true }],
    [429, 21611, { kind: 'retry', reason: 'queue full', pausesProvider: true }],
    [500, 20500, { kind: 'retry', reason: 'status 500' }],
    [503, 0, { kind: 'retry', reason: 'status 503' }],
    [400, 99999, { kind: 'failed', reason: 'status 400' }],
  ])('of %d with code %d', async (status, code, expected) => {
    const { send } = await rig({ [TO]: twilioRefusal(status, code) })
    expect(await send({ to: TO, text: 'a' })).toEqual([expected])
  })

  test('of answers that are not Twilio’s', async () => {
    const html = { status: 200, body: '<html>Welcome</html>' }
    const numbers: Record<string, SinkFailure> = {
      '+1500': html,
      '+1501': { status: 200, body: 'null' },
      '+1502': { status: 200, body: '{"sid":7}' },
      '+1503': { status: 400, body: '[]' },
      '+1504': { status: 201, body: JSON.stringify({ sid: 'x'.repeat(70_000) }) },
      '+1505': { status: 302, headers: { location: 'https://elsewhere.example' } },
      '+1506': { status: 201, body: '{"sid":"SM1","error_code":30007}' },
    }
    const { send } = await rig(numbers)
    const unknown = { kind: 'unknown', reason: 'answer not understood' }
    expect(await send(...Object.keys(numbers).map((to) => ({ to, text: 'a' })))).toEqual([
      unknown,
      unknown,
      unknown,
      { kind: 'failed', reason: 'status 400' },
      unknown,
      { kind: 'failed', reason: 'status 302' },
      { kind: 'failed', reason: 'filtered by the carrier' },
    ])
  })

  test('of too many requests holds for all that had not been asked yet', async () => {
    const { sink, send } = await rig({ '+1500': twilioRefusal(429, 20429, { 'retry-after': '3' }) }, { atOnce: 1 })
    const outcomes = await send({ to: TO, text: 'a' }, { to: '+1500', text: 'b' }, { to: TO, text: 'c' })
    const pause = { kind: 'retry', reason: 'too many requests', pausesProvider: true, afterMs: 3_000 }
    expect(outcomes).toEqual([{ kind: 'sent', id: expect.any(String) }, pause, pause])
    expect(sink.requests()).toBe(2)
  })

  test('of a lost answer is unknown, of an address that we do not go to a wrong setting', async () => {
    const { send } = await rig({ '+15005550100': 'reset', '+15005550101': 'half', '+15005550102': 'hang' }, {}, {}, 500)
    expect(
      await send(
        { to: '+15005550100', text: 'a' },
        { to: '+15005550101', text: 'a' },
        { to: '+15005550102', text: 'a' },
      ),
    ).toEqual([
      { kind: 'unknown', reason: 'connection lost' },
      { kind: 'unknown', reason: 'connection lost' },
      { kind: 'unknown', reason: 'timeout' },
    ])
    const inside = await rig({}, { baseUrl: 'https://169.254.169.254' })
    expect(await inside.send({ to: TO, text: 'a' })).toEqual([{ kind: 'misconfigured', reason: 'address not allowed' }])
  })
})

test('the stand-in is taken for Twilio by its own library', async () => {
  const sink = await startTwilioSink(account)
  stops.push(() => sink.close())
  const clientOf = (password: string) => {
    const httpClient = new twilio.RequestClient()
    httpClient.axios.defaults.httpsAgent = agentTo(sink)
    return twilio(account.accountSid, password, { httpClient })
  }
  const { messages } = clientOf(account.password)
  const sent = await messages.create({
    to: TO,
    from: '+15005550100',
    body: 'Grüße & 🎉',
    mediaUrl: ['https://cdn.example/a.png'],
  })
  expect(sent).toMatchObject({ sid: sink.texts[0]?.sid, status: 'queued', to: TO, numMedia: '1', errorCode: null })
  expect(sink.texts[0]?.form.get('Body')).toBe('Grüße & 🎉')
  sink.script(TO, twilioRefusal(400, 21610))
  await expect(messages.create({ to: TO, from: '+15005550100', body: 'a' })).rejects.toMatchObject({
    status: 400,
    code: 21610,
  })
  await expect(messages.create({ to: 'nobody', from: '+15005550100', body: 'a' })).rejects.toMatchObject({
    code: 21211,
  })
  await expect(messages.create({ to: TO, body: 'a' })).rejects.toMatchObject({ code: 21603 })
  await expect(clientOf('wrong').messages.create({ to: TO, from: 'x', body: 'a' })).rejects.toMatchObject({
    status: 401,
    code: 20003,
  })
  expect(sink.texts).toHaveLength(1)
})
