import { spawn, spawnSync } from 'node:child_process'
import { createECDH, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { content } from '../../test/channels/push-content.ts'
import { aMail, CONTENT } from '../../test/channels/subjects/mail.ts'
import { newVapid } from '../../test/channels/subjects/web-push.ts'
import { readCredential } from '../apps/credentials/read-credential.ts'
import type { Channel } from '../channels/channel.ts'
import { createDial } from '../channels/dial.ts'
import type { EmailContent, EmailItem } from '../channels/email/message.ts'
import { openRelayChannel } from '../channels/email/relay.ts'
import { openOutbound } from '../channels/outbound.ts'
import { type AdmItem, openAdmChannel, writeAdmPush } from '../channels/push/adm/channel.ts'
import { type ApnsItem, openApnsChannel } from '../channels/push/apns/channel.ts'
import { writeLiveActivityPush } from '../channels/push/apns/live-activity.ts'
import { writeApnsPush } from '../channels/push/apns/payload.ts'
import { type FcmItem, openFcmChannel } from '../channels/push/fcm/channel.ts'
import { writeFcmPush } from '../channels/push/fcm/payload.ts'
import { type HuaweiItem, openHuaweiChannel } from '../channels/push/huawei/channel.ts'
import { writeHuaweiPush } from '../channels/push/huawei/payload.ts'
import { openWebPushChannel, type WebPushItem } from '../channels/push/web-push/channel.ts'
import { writeWebPush } from '../channels/push/web-push/payload.ts'
import { openWnsChannel, type WnsItem } from '../channels/push/wns/channel.ts'
import { writeWnsPush } from '../channels/push/wns/payload.ts'
import { openSmpp } from '../channels/sms/smpp.ts'
import { openTwilio } from '../channels/sms/twilio.ts'
import { newWebhookSecret } from '../channels/webhook/sign.ts'
import { openWebhooks } from '../channels/webhook/webhook.ts'
import { systemClock } from '../lib/clock.ts'
import { createLog } from '../lib/log.ts'
import { readConfig } from '../settings/config.ts'
import { newAppSettings } from './app-settings.ts'
import { openSinkBox, type SinkBox } from './box.ts'
import type { SinkDelivery } from './deliveries.ts'
import type { SinkChannelName } from './service.ts'

const clock = systemClock()
/** As a box makes them; once, because it takes a while. */
const appSettings = newAppSettings()
let folder: string
let box: SinkBox
const open: { close(): Promise<unknown> }[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-sink-'))
  box = await openSinkBox({ clock, logFile: join(folder, 'log.jsonl') })
})
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
  await box.close()
  await rm(folder, { recursive: true })
})

const opened = <It extends { close(): Promise<unknown> }>(it: It): It => {
  open.push(it)
  return it
}
const providers = () => readConfig(box.settings).config.providers
const outbound = () => opened(openOutbound(providers().outbound))

async function ask(path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') {
  const response = await fetch(`${box.control}${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}
const deliveries = async (since = 0): Promise<SinkDelivery[]> => (await ask(`/deliveries?since=${since}`)).body

const push = () => content({ expiresAt: new Date(clock.now().getTime() + 3_600_000) })
const messageId = content().messageId
const vapid = newVapid()

type Way = { channel: Channel<unknown>; item(): Promise<unknown>; to(item: never): string }

const ways: Record<SinkChannelName, () => Promise<Way>> = {
  web_push: async () => ({
    channel: opened(openWebPushChannel({ clock, route: providers().route })) as Channel<unknown>,
    async item() {
      const [{ token: endpoint, web_auth: auth, web_p256: p256dh }] = (await ask('/subscriptions', { count: 1 })).body
      return { appId: 'an app', endpoint, auth, p256dh, vapid, push: writeWebPush(push()) } satisfies WebPushItem
    },
    to: ({ endpoint }: WebPushItem) => endpoint,
  }),
  async apns() {
    const { apns_p8, apns_key_id: keyId, apns_team_id: teamId, apns_bundle_id: topic } = appSettings
    const { key } = await readCredential('apns_p8', { given: apns_p8, password: '', owner: 'sink' })
    const credentials = { kind: 'token', environment: 'production', key, keyId, teamId, topic } as const
    return {
      channel: opened(openApnsChannel({ clock, route: providers().route })) as Channel<unknown>,
      item: async (): Promise<ApnsItem> => ({
        appId: 'an app',
        token: randomBytes(32).toString('hex'),
        credentials,
        push: writeApnsPush(push()),
      }),
      to: ({ token }: ApnsItem) => token,
    }
  },
  async fcm() {
    const { fcm_v1_service_account_json } = appSettings
    const credentials = await readCredential('fcm_v1_service_account_json', {
      given: fcm_v1_service_account_json,
      password: '',
      owner: 'sink',
    })
    return {
      channel: opened(openFcmChannel({ clock, route: providers().route })) as Channel<unknown>,
      item: async (): Promise<FcmItem> => ({
        appId: 'an app',
        token: `d:${randomBytes(9).toString('hex')}`,
        credentials,
        push: writeFcmPush(push()),
      }),
      to: ({ token }: FcmItem) => token,
    }
  },
  huawei: async () => ({
    channel: opened(openHuaweiChannel({ clock, route: providers().route })) as Channel<unknown>,
    item: async (): Promise<HuaweiItem> => ({
      appId: 'an app',
      token: randomBytes(24).toString('hex'),
      credentials: {
        appId: appSettings.huawei_app_id,
        secret: appSettings.huawei_app_secret,
        packageName: appSettings.huawei_package_name,
        defaultTitle: 'Sink',
      },
      push: writeHuaweiPush(push()),
    }),
    to: ({ token }: HuaweiItem) => token,
  }),
  adm: async () => ({
    channel: opened(openAdmChannel({ clock, route: providers().route })) as Channel<unknown>,
    item: async (): Promise<AdmItem> => ({
      appId: 'an app',
      token: `amzn1.${randomBytes(24).toString('hex')}`,
      credentials: { clientId: appSettings.adm_client_id, secret: appSettings.adm_client_secret },
      push: writeAdmPush(push()),
    }),
    to: ({ token }: AdmItem) => token,
  }),
  wns: async () => ({
    channel: opened(openWnsChannel({ clock, route: providers().route })) as Channel<unknown>,
    item: async (): Promise<WnsItem> => ({
      appId: 'an app',
      channelUri: `https://db5p.notify.windows.com/w/?token=${randomBytes(24).toString('hex')}`,
      credentials: { clientId: appSettings.wns_package_sid, secret: appSettings.wns_client_secret },
      push: writeWnsPush(push()),
    }),
    to: ({ channelUri }: WnsItem) => channelUri,
  }),
  async email() {
    const { route } = providers()
    const dial = createDial({ route })
    const helo = 'carillon.example.com'
    const relay = { dial, clock, helo, host: 'relay.example.com', port: 587, tls: 'starttls', connections: 2 } as const
    const headers = [['Feedback-ID', [`${messageId}:app:other:carillon`]]] as const
    const mail: EmailContent = { ...CONTENT, html: ['<p>They ring</p>'], text: ['They ring'], headers }
    return {
      channel: opened(openRelayChannel(relay)) as Channel<unknown>,
      // Each in a lane of its own: one that is told to slow down holds up none of the others.
      item: async () => aMail({ content: mail, inboxProvider: randomBytes(4).toString('hex') }),
      to: ({ to }: EmailItem) => to,
    }
  },
  async sms() {
    const { accountSid, authToken: password, from } = box.twilio
    const channel = opened(openTwilio({ outbound: outbound(), clock, accountSid, password, from }))
    return {
      channel: channel as Channel<unknown>,
      item: async () => ({ to: '+15005550001', text: 'They ring', messageId }),
      to: ({ to }: { to: string }) => to,
    }
  },
  webhook: async () => ({
    channel: opened(openWebhooks({ outbound: outbound(), clock })) as Channel<unknown>,
    item: async () => ({
      url: `https://any.example/${randomBytes(4).toString('hex')}`,
      id: messageId,
      body: 'They ring',
      secrets: [newWebhookSecret()],
    }),
    to: ({ url }: { url: string }) => url,
  }),
}
const names = Object.keys(ways) as (keyof typeof ways)[]

describe('what is sent', () => {
  test.each(names)(
    'over %s is shown with its recipient and text, and was logged before it was answered',
    async (name) => {
      const { channel, item, to } = await ways[name]()
      const it = await item()
      expect(await channel.send([it])).toMatchObject([{ kind: 'sent' }])
      const shown = [{ channel: name, to: to(it as never), message_id: messageId, text: 'They ring' }]
      expect(await deliveries()).toMatchObject(shown)
      const lines = (await readFile(join(folder, 'log.jsonl'), 'utf8')).trim().split('\n')
      expect(lines.map((line) => JSON.parse(line))).toEqual(await deliveries())
    },
  )

  test('as a live activity is shown with its message', async () => {
    const { channel, item } = await ways.apns()
    const { expiresAt } = push()
    const activity = writeLiveActivityPush({ messageId, expiresAt, priority: 10, state: { score: 1 } }, clock.now())
    expect(await channel.send([{ ...((await item()) as ApnsItem), push: activity }])).toMatchObject([{ kind: 'sent' }])
    expect(await deliveries()).toMatchObject([{ channel: 'apns', message_id: messageId, text: null }])
  })

  test('over SMPP is shown whole, though it came in parts, without its message', async () => {
    const channel = opened(
      openSmpp({
        outbound: outbound(),
        log: createLog('silent'),
        host: 'smsc.example.com',
        systemId: 'any',
        password: 'any',
        from: 'Carillon',
        onReceipt: async () => {},
        onText: async () => {},
      }),
    )
    const text = `${'ж'.repeat(66)}🎉${'ж'.repeat(70)}`
    expect(await channel.send([{ to: '+15005550002', text, messageId }])).toMatchObject([{ kind: 'sent' }])
    expect(await deliveries()).toMatchObject([{ channel: 'sms', to: '+15005550002', message_id: null, text }])
  })

  test('for a browser that is none of the box’s is taken unread', async () => {
    const channel = opened(openWebPushChannel({ clock, route: providers().route }))
    const browser = createECDH('prime256v1')
    const item = {
      appId: 'an app',
      endpoint: 'https://fcm.googleapis.com/fcm/send/abc',
      p256dh: browser.generateKeys('base64url'),
      auth: randomBytes(16).toString('base64url'),
      vapid,
      push: writeWebPush(push()),
    }
    expect(await channel.send([item])).toEqual([{ kind: 'sent' }])
    expect(await deliveries()).toMatchObject([{ channel: 'web_push', to: item.endpoint, message_id: null, text: null }])
  })

  test('is told from a moment on, and forgotten when asked', async () => {
    const { channel, item } = await ways.webhook()
    await channel.send([await item()])
    const [first] = await deliveries()
    expect(await deliveries((first?.at ?? 0) + 1)).toEqual([])
    expect(await deliveries(first?.at)).toHaveLength(1)
    expect(await ask('/deliveries', undefined, 'DELETE')).toEqual({ status: 204, body: undefined })
    expect(await deliveries()).toEqual([])
  })
})

describe('a fault', () => {
  const expected = { unavailable: 'retry', rate_limited: 'retry', gone: 'gone', reset_after_accept: 'unknown' } as const
  const cases = names.flatMap((name) => Object.entries(expected).map(([fault, kind]) => [name, fault, kind] as const))

  test.each(cases)('of %s: %s is told as %s, once', async (name, fault, kind) => {
    const { channel, item } = await ways[name]()
    expect(await channel.send([await item()])).toMatchObject([{ kind: 'sent' }])
    expect(await ask('/faults', { channel: name, fault, count: 1 })).toMatchObject({ status: 200 })
    const [outcome] = await channel.send([await item()])
    expect(outcome).toMatchObject({ kind })
    if (fault === 'rate_limited' && name !== 'email') expect(outcome).toHaveProperty('afterMs', 2_000)
    if (fault === 'gone' && name === 'apns') expect(outcome).toHaveProperty('since')
    expect(await channel.send([await item()])).toMatchObject([{ kind: 'sent' }])
    // What was reset had been taken.
    expect(await deliveries()).toHaveLength(fault === 'reset_after_accept' ? 3 : 2)
  })

  test.each(['web_push', 'apns', 'fcm'] as const)(
    'of %s: goodbye in the middle loses and repeats nothing',
    async (name) => {
      const { channel, item, to } = await ways[name]()
      await channel.send([await item()])
      await ask('/deliveries', undefined, 'DELETE')
      const items = await Promise.all(Array.from({ length: 60 }, item))
      await ask('/faults', { channel: name, fault: 'goaway', count: 1 })
      const outcomes = await channel.send(items)
      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
      expect((await deliveries()).map((it) => it.to).sort()).toEqual(items.map((it) => to(it as never)).sort())
    },
  )

  test('may be slowness: it was taken, and the answer takes its time', async () => {
    const { channel, item } = await ways.webhook()
    await ask('/faults', { channel: 'webhook', fault: 'slow', count: 1 })
    const sending = channel.send([await item()])
    await expect.poll(async () => (await deliveries()).length).toBe(1)
    const began = performance.now()
    expect(await sending).toMatchObject([{ kind: 'sent' }])
    expect(performance.now() - began).toBeGreaterThan(2_000)
  })

  test.each(names)(
    'of %s: garbage instead of an answer is read no further, and nothing is sent again',
    async (name) => {
      const { channel, item } = await ways[name]()
      await ask('/faults', { channel: name, fault: 'garbage', count: 1 })
      const [outcome] = await channel.send([await item()])
      expect(['sent', 'unknown']).toContain(outcome?.kind)
      expect(await deliveries()).toHaveLength(1)
      expect(await channel.send([await item()])).toMatchObject([{ kind: 'sent' }])
    },
  )

  test.each(names)('of %s can be for some addresses alone, and is told', async (name) => {
    const { channel, item, to } = await ways[name]()
    const [one, other] = [await item(), await item()]
    const told = to(one as never)
    await ask('/faults', { channel: name, fault: 'unavailable', count: 1, to: [told, 'nobody'] })
    const began = Date.now()
    // The number of the texts is always the same.
    if (told !== to(other as never)) expect(await channel.send([other])).toMatchObject([{ kind: 'sent' }])
    expect(await channel.send([one])).toMatchObject([{ kind: 'retry' }])
    const [mishap, ...more] = (await ask('/faults')).body
    expect([mishap, more]).toEqual([{ at: expect.any(Number), channel: name, to: told, fault: 'unavailable' }, []])
    expect(mishap.at).toBeGreaterThanOrEqual(began)
    expect((await ask(`/faults?since=${mishap.at + 1}`)).body).toEqual([])
    await ask('/faults', { channel: name, fault: 'unavailable', to: [told] })
    await ask('/faults', { channel: name, fault: null })
    // Mail to where it was refused may have to wait.
    if (name !== 'email') expect(await channel.send([one])).toMatchObject([{ kind: 'sent' }])
  })

  test('says how long to wait as it is told', async () => {
    const { channel, item } = await ways.apns()
    await ask('/faults', { channel: 'apns', fault: 'rate_limited', count: 1, retry_after: 77 })
    expect(await channel.send([await item()])).toMatchObject([{ kind: 'retry', afterMs: 77_000 }])
  })

  test('lasts until it is lifted, and no longer', async () => {
    const { channel, item } = await ways.webhook()
    await ask('/faults', { channel: 'webhook', fault: 'unavailable', count: null })
    for (let i = 0; i < 3; i++) expect(await channel.send([await item()])).toMatchObject([{ kind: 'retry' }])
    await ask('/faults', { channel: 'webhook', fault: null })
    expect(await channel.send([await item()])).toMatchObject([{ kind: 'sent' }])
  })

  test.each([
    ['/faults', { channel: 'pigeon', fault: 'gone' }],
    ['/faults', { channel: 'sms', fault: 'sleepy' }],
    ['/faults', { channel: 'sms', fault: 'goaway' }],
    ['/faults', { channel: 'sms', fault: 'gone', count: 0 }],
    ['/faults', { channel: 'sms', fault: 'gone', to: '+15005550001' }],
    ['/faults', { channel: 'sms', fault: 'rate_limited', retry_after: -1 }],
    ['/faults', []],
    ['/rate', { per_second: -1 }],
    ['/rate', { per_second: '5' }],
    ['/subscriptions', { count: 10_001 }],
    ['/deliveries', {}],
  ])('or a wish that cannot be read is refused: %s %j', async (path, body) => {
    const { status, body: answer } = await ask(path, body)
    expect([400, 404]).toContain(status)
    expect(answer.errors).toEqual([expect.any(String)])
  })
})

test('nonsense harms nobody', async () => {
  const client = outbound()
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    client.request({ url: `https://any.example${path}`, body, headers })
  const grant = await post('/token', 'assertion=a.b.c')
  expect(grant).toMatchObject({ status: 400 })
  expect(await post('/3/device/00', 'null')).toMatchObject({ status: 403 })
  expect(await post('/v1/projects/x/messages:send', '{"message":{"token":"a","data":null}}')).toMatchObject({
    status: 401,
  })
  expect(await post('/2010-04-01/x', '')).toMatchObject({ status: 401 })
  expect(
    await post('/x', '', { 'content-encoding': 'aes128gcm', ttl: '1', authorization: 'vapid t=a.b.c, k=AA' }),
  ).toMatchObject({ status: 401 })
  expect(await post('/big', 'x'.repeat(1_048_577))).toMatchObject({ status: 413 })
  expect((await fetch(`${box.control}//`)).status).toBe(400)
  expect(await deliveries()).toEqual([])
})

test('a rate holds all of them back, and is lifted for those who wait', async () => {
  const { channel, item } = await ways.webhook()
  await ask('/rate', { per_second: 20 })
  const began = performance.now()
  const items = await Promise.all(Array.from({ length: 10 }, item))
  await channel.send(items)
  // The first goes at once; timers that come late may be made good for.
  expect(performance.now() - began).toBeGreaterThan(9 * 50 - 60)
  await ask('/rate', { per_second: 1 })
  const sending = channel.send(items)
  await expect.poll(async () => (await deliveries()).length).toBeGreaterThan(10)
  await ask('/rate', { per_second: 0 })
  await sending
  expect(await deliveries()).toHaveLength(20)
})

describe('the mail server, judged by Net::SMTP of Perl', () => {
  const SCRIPT = `
    use Net::SMTP;
    my ($port, @to) = @ARGV;
    my $smtp = Net::SMTP->new('127.0.0.1', Port => $port, Timeout => 10) or die 'not connected';
    die 'no SIZE' unless defined $smtp->supports('SIZE') && defined $smtp->supports('PIPELINING');
    $smtp->mail('news@example.com') or die $smtp->message;
    for my $to (@to) { print $smtp->to($to) ? 'ok ' : $smtp->code . ' ' }
    local $/; my $message = <STDIN>;
    $smtp->data($message) or die $smtp->message;
    $smtp->quit;`
  const MAIL = [
    'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= =?utf-8?b?IPCfjok=?=',
    'X-Message-Id: 11111111-1111-4111-8111-111111111111',
    'Content-Type: multipart/alternative; boundary="b1"',
    '',
    '--b1',
    'Content-Type: text/html',
    '',
    '<p>HTML</p>',
    '--b1',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    '.They=',
    ' ring =C3=A4',
    '--b1--',
    '',
  ].join('\n')
  async function send(...to: string[]) {
    const child = spawn('perl', ['-e', SCRIPT, new URL(box.receivers.smtp).port, ...to])
    let said = ''
    child.stdout.on('data', (text) => (said += text))
    child.stdin.end(MAIL)
    const [status] = await once(child, 'close')
    return { status, said }
  }
  const isThere = spawnSync('perl', ['-MNet::SMTP', '-e', '1']).status === 0

  test('takes what that sends, for each recipient, and refuses whom it is told to', async ({ skip }) => {
    if (!isThere) skip('needs perl with Net::SMTP (Debian: perl)')
    await ask('/faults', { channel: 'email', fault: 'gone', count: 1 })
    expect(await send('gone@example.com', 'a@example.com', 'b@example.com')).toEqual({ status: 0, said: '550 ok ok ' })
    const common = { channel: 'email', message_id: messageId, subject: 'Grüße 🎉', text: '.They ring ä' }
    expect(await deliveries()).toMatchObject([
      { ...common, to: 'a@example.com' },
      { ...common, to: 'b@example.com' },
    ])
    await ask('/faults', { channel: 'email', fault: 'reset_after_accept', count: 1 })
    expect((await send('c@example.com')).status).not.toBe(0)
    expect((await deliveries()).at(-1)).toMatchObject({ to: 'c@example.com' })
  })
})
