import { afterEach, describe, expect, test } from 'vitest'
import { content, START } from '../../../../test/channels/push-content.ts'
import { account, anItem, newChannelUri } from '../../../../test/channels/subjects/wns.ts'
import { startWnsSink } from '../../../../test/sinks/push.ts'
import { virtualClock } from '../../../lib/clock.ts'
import { certificateFor } from '../../../sink/certificate.ts'
import { isToast, wnsRefusal as refusal } from '../../../sink/push/wns.ts'
import { openWnsChannel, type WnsItem } from './channel.ts'
import { writeWnsPush } from './payload.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
})

async function start(hosts?: string[]) {
  const clock = virtualClock(START)
  const sink = await startWnsSink(clock, account, {
    ...(hosts && { hosts, certificate: certificateFor(...hosts, 'login.live.com') }),
  })
  const channel = openWnsChannel({ clock, route: sink.route })
  open.push(sink, channel)
  const send = async (changes: Partial<WnsItem> = {}) => (await channel.send([anItem(changes)]))[0]
  return { clock, sink, channel, send }
}

describe('what the device gets', () => {
  test('is a toast that the SDK reads, with sound, picture and buttons', async () => {
    const { sink, send } = await start()
    const push = writeWnsPush(
      content({
        title: 'Bells & "whistles"',
        body: '<They> ring\u0000',
        url: 'https://example.com/?a=1&b=2',
        data: { order: 7 },
        image: 'https://example.com/b.png',
        sound: 'bell.wav',
        collapseId: 'news of the day',
        buttons: [
          { id: 'yes', text: 'Yes' },
          { id: 'go', text: 'Go', url: 'https://example.com/go' },
        ],
      }),
    )
    expect(await send({ push })).toEqual({ kind: 'sent', id: 'WNS-1' })
    const [toast] = sink.received
    expect(toast?.headers).toMatchObject({
      'x-wns-type': 'wns/toast',
      'content-type': 'text/xml',
      'x-wns-ttl': '3600',
      'x-wns-priority': '1',
      'x-wns-tag': expect.stringMatching(/^[0-9a-f]{16}$/),
    })
    const xml = toast?.body ?? ''
    expect(isToast(xml)).toBe(true)
    expect(xml).toContain('<text id="1">Bells &amp; &quot;whistles&quot;</text><text id="2">&lt;They&gt; ring</text>')
    expect(xml).toContain('<image id="1" src="https://example.com/b.png"/>')
    expect(xml).toContain('<audio src="ms-appx:///bell.wav"/>')
    expect(xml).toContain('<action content="Go" activationType="protocol" arguments="https://example.com/go"/>')
    const [, launch = ''] = /<toast launch="([^"]*)"/.exec(xml) ?? []
    expect(JSON.parse(launch.replaceAll('&quot;', '"').replaceAll('&amp;', '&'))).toEqual({
      custom: { i: content().messageId, a: { order: 7 }, u: 'https://example.com/?a=1&b=2' },
    })
  })

  test.each([
    ['nil', '<audio silent="true"/>'],
    ['ms-winsoundevent:Notification.Mail', '<audio src="ms-winsoundevent:Notification.Mail"/>'],
    ['"/><evil>', '<audio src="ms-appx:///&quot;/&gt;&lt;evil&gt;"/>'],
  ])('sounds as told: %s', async (sound, audio) => {
    const { sink, send } = await start()
    await send({ push: writeWnsPush(content({ sound })) })
    expect(sink.received[0]?.body).toContain(audio)
  })

  test('is raw, and stored only while there is time, where nothing is shown', async () => {
    const { sink, send } = await start()
    const quiet = content({ title: undefined, body: undefined, data: { sync: 1 }, expiresAt: new Date(START) })
    expect(await send({ push: writeWnsPush({ ...quiet, priority: 5 }) })).toMatchObject({ kind: 'sent' })
    const [raw] = sink.received
    expect(JSON.parse(raw?.body ?? '')).toMatchObject({ custom: { a: { sync: 1 } } })
    expect(raw?.headers).toMatchObject({
      'x-wns-type': 'wns/raw',
      'content-type': 'application/octet-stream',
      'x-wns-cache-policy': 'no-cache',
      'x-wns-priority': '2',
    })
    expect(raw?.headers['x-wns-ttl']).toBeUndefined()
  })
})

describe('the address of a channel', () => {
  test.each([
    'https://evil.example/w/?token=1',
    'https://notify.windows.com.evil.example/?token=1',
    'https://evilnotify.windows.com/?token=1',
    'https://notify.windows.com@evil.example/?token=1',
    'https://user:pass@db5p.notify.windows.com/?token=1',
    'https://db5p.notify.windows.com:8443/?token=1',
    'https://db5p.notify.windows.com./?token=1',
    'http://db5p.notify.windows.com/?token=1',
    'https://127.0.0.1/?token=1',
    'https://login.live.example/',
    'not an address',
  ])('is one of Microsoft or nobody is asked, not even for a token: %s', async (channelUri) => {
    const { sink, send } = await start()
    expect(await send({ channelUri })).toEqual({ kind: 'gone', reason: 'channel address not valid' })
    expect(sink.requests()).toBe(0)
  })

  test('may be on either of the names of the service, or on an origin that the operator leads elsewhere', async () => {
    const hosts = ['db5p.notify.windows.com', 'client.wns.windows.com', 'stand-in.example']
    const { send } = await start(hosts)
    for (const host of hosts)
      expect(await send({ channelUri: `https://${host}/w/?token=1` }), host).toMatchObject({ kind: 'sent' })
  })

  test('is asked at Microsoft alone where everything is led elsewhere', async () => {
    const { sink } = await start()
    const [at] = Object.values(sink.route.connect ?? {})
    const channel = openWnsChannel({
      clock: virtualClock(START),
      route: { ...sink.route, connect: { 'https://*': at as { host: string; port: number } } },
    })
    open.push(channel)
    const evil = anItem({ channelUri: 'https://evil.example/?token=1' })
    expect(await channel.send([anItem(), evil])).toMatchObject([{ kind: 'sent' }, { kind: 'gone' }])
  })
})

test('an access token is bought once for many, and once more when it is revoked', async () => {
  const { sink, channel } = await start()
  await channel.send(Array.from({ length: 50 }, () => anItem()))
  expect(sink.tokensSold()).toBe(1)
  sink.revokeTokens()
  const outcomes = await channel.send(Array.from({ length: 20 }, () => anItem()))
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
  expect(sink.tokensSold()).toBe(2)
})

test.each([
  [refusal(410), { kind: 'gone', reason: 'status 410' }],
  [refusal(404), { kind: 'gone', reason: 'status 404' }],
  [refusal(403), { kind: 'failed', reason: 'channel of another app' }],
  [refusal(413), { kind: 'failed', reason: 'too large' }],
  [refusal(406), { kind: 'retry', reason: 'status 406', afterMs: 60_000, pausesProvider: true }],
  [refusal(503, { 'retry-after': '8' }), { kind: 'retry', reason: 'status 503', afterMs: 8_000 }],
  [
    { status: 200, headers: { 'x-wns-status': 'dropped' } },
    { kind: 'failed', reason: 'dropped' },
  ],
  [
    { status: 200, headers: { 'x-wns-status': 'channelthrottled' } },
    { kind: 'retry', reason: 'channelthrottled', afterMs: 60_000 },
  ],
])('an answer means what Microsoft says: %#', async (answer, outcome) => {
  const { sink, send } = await start()
  const channelUri = newChannelUri()
  sink.script(channelUri, answer)
  expect(await send({ channelUri })).toEqual(outcome)
})

test('an access token that is refused twice is a setting to mend', async () => {
  const { sink, send } = await start()
  const channelUri = newChannelUri()
  sink.script(channelUri, refusal(401), refusal(401))
  expect(await send({ channelUri })).toEqual({ kind: 'misconfigured', reason: 'client secret refused' })
})
