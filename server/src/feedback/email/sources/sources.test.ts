import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../../test/app.ts'
import {
  aSentEmail,
  emailFactsOf,
  type SentEmail,
  standingOf,
  suppressionOf,
  UNTOUCHED,
} from '../../../../test/email-back.ts'
import { type HttpSink, startHttpSink } from '../../../../test/sinks/http.ts'
import { virtualClock } from '../../../lib/clock.ts'
import { newId } from '../../../lib/ids.ts'
import { createLog } from '../../../lib/log.ts'
import { certificateFor, type ServerCertificate } from '../../../sink/certificate.ts'
import { sql } from '../../../storage/sql.ts'
import { deleteExpiredReceipts } from './receive-events.ts'

const HOST = 'sns.eu-west-1.amazonaws.com'
const CERT_URL = `https://${HOST}/SimpleNotificationService-0123abcd.pem`
const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:mail'
const SIGNING_KEY = 'key-0123456789abcdef'
const PATH_SECRET = 'an-address-that-nobody-knows'
const BASIC = { username: 'postmark', password: 'a long password' }

let app: TestApp
let sns: HttpSink
let certificate: ServerCertificate
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const clock = virtualClock('2030-03-15T09:00:00Z')
let isSnsUp = true
beforeAll(async () => {
  certificate = certificateFor(HOST)
  sns = await startHttpSink(
    ({ path }) =>
      isSnsUp ? { status: 200, body: path.endsWith('.pem') ? certificate.cert : '<ok/>' } : { status: 500 },
    { tls: certificate },
  )
  const route = { ca: certificate.cert, connect: { 'https://*': { host: '127.0.0.1', port: sns.port } } }
  app = await testApp({
    clock,
    publicUrl: 'https://bell.example',
    providers: { outbound: { route } },
    log: createLog('silent'),
  })
  const answer = await app.app('/email/event_sources', {
    method: 'PUT',
    body: {
      ses: { topic_arn: TOPIC },
      mailgun: { signing_key: SIGNING_KEY },
      sendgrid: { public_key: ec.publicKey.export({ type: 'spki', format: 'der' }).toString('base64') },
      postmark: { ...BASIC, path_secret: PATH_SECRET },
    },
  })
  expect(answer.status).toBe(200)
})
afterAll(async () => {
  await app.close()
  await sns.stop()
})
beforeEach(() => clock.advance({ minutes: 1 }))

const sent = (more: Partial<Parameters<typeof aSentEmail>[1]> = {}) => aSentEmail(app, { at: clock.now(), ...more })
const OK = { status: 200, body: { success: true } }
const REFUSED = { status: 403, body: { errors: ['Invalid signature or credentials'] } }
const seconds = () => Math.floor(clock.now().getTime() / 1_000)

async function post(path: string, body: string, headers: Record<string, string> = {}, appId = app.tenant.id) {
  const response = await fetch(`${app.url}/apps/${appId}/email/events/${path}`, { method: 'POST', body, headers })
  return { status: response.status, body: await response.json() }
}

type Kind = 'delivered' | 'opened' | 'clicked' | 'complained' | 'unsubscribed' | 'hard' | 'full' | 'block' | 'nothing'
/** How each provider says the same, with what names the email in it. */
type Provider = {
  name: string
  tell(email: SentEmail, kind: Kind, more?: Tell): Promise<{ status: number; body: unknown }>
}
type Tell = {
  id?: string
  by?: 'reference' | 'message id' | 'nothing'
  recipient?: string
  appId?: string
  agent?: string
  /** When it happened; now unless told. */
  at?: Date
}

const GONE = '550 5.1.1 The email account that you tried to reach does not exist'
const FULL = '552 5.2.2 mailbox is over quota'
const SPAM = '554 5.7.1 blocked for spam'
const textOf: Partial<Record<Kind, string>> = { hard: GONE, full: FULL, block: SPAM }

// ---- SES

function snsMessage(
  fields: Record<string, string>,
  { version = '2', key = certificate.key as string | KeyObject } = {},
) {
  const message: Record<string, string> = {
    Type: 'Notification',
    MessageId: newId(),
    TopicArn: TOPIC,
    Timestamp: clock.now().toISOString(),
    SignatureVersion: version,
    SigningCertURL: CERT_URL,
    ...fields,
  }
  const isNotification = message.Type === 'Notification'
  const names = isNotification
    ? ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
    : ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
  const text = names.flatMap((name) => (name in message ? [`${name}\n${message[name]}\n`] : [])).join('')
  const signature = sign(version === '1' ? 'sha1' : 'sha256', Buffer.from(text), key).toString('base64')
  return { Signature: signature, ...message }
}
const postSes = (message: object) =>
  post('ses', JSON.stringify(message), { 'content-type': 'text/plain; charset=UTF-8' })

function sesEvent(
  email: SentEmail,
  kind: Kind,
  { by = 'reference', recipient = email.address, agent = 'x', at = clock.now() }: Tell = {},
) {
  const headers = [
    { name: 'From', value: 'news@news.example' },
    ...(by === 'reference' ? [{ name: 'X-Carillon-Ref', value: email.references.report }] : []),
    ...(by === 'message id' ? [{ name: 'Message-ID', value: email.messageIdHeader }] : []),
  ]
  const mail = {
    timestamp: clock.now().toISOString(),
    messageId: '0102018f-ses',
    headers,
    headersTruncated: false,
    tags: {},
  }
  const bounce = (bounceType: string, bounceSubType: string) => ({
    eventType: 'Bounce',
    mail,
    bounce: {
      bounceType,
      bounceSubType,
      timestamp: at.toISOString(),
      bouncedRecipients: [
        {
          emailAddress: recipient,
          action: 'failed',
          status: textOf[kind]?.slice(4, 9),
          diagnosticCode: `smtp; ${textOf[kind]}`,
        },
      ],
    },
  })
  const events: Record<Kind, object> = {
    delivered: {
      eventType: 'Delivery',
      mail,
      delivery: { recipients: [recipient], timestamp: at.toISOString() },
    },
    opened: { eventType: 'Open', mail, open: { timestamp: at.toISOString(), userAgent: agent } },
    clicked: {
      eventType: 'Click',
      mail,
      click: { timestamp: at.toISOString(), link: 'https://x.example', userAgent: agent },
    },
    complained: {
      notificationType: 'Complaint',
      mail,
      complaint: { complainedRecipients: [{ emailAddress: recipient }], timestamp: at.toISOString() },
    },
    unsubscribed: { eventType: 'Subscription', mail, subscription: { timestamp: at.toISOString() } },
    hard: bounce('Permanent', 'General'),
    full: bounce('Transient', 'MailboxFull'),
    block: bounce('Transient', 'ContentRejected'),
    nothing: { eventType: 'DeliveryDelay', mail, deliveryDelay: {} },
  }
  return JSON.stringify(events[kind])
}

const ses: Provider = {
  name: 'SES',
  tell: (email, kind, more = {}) =>
    postSes(snsMessage({ Message: sesEvent(email, kind, more), ...(more.id && { MessageId: more.id }) })),
}

// ---- Mailgun

function mailgunCall(data: object, { token = newId(), timestamp = String(seconds()), key = SIGNING_KEY } = {}) {
  const signature = createHmac('sha256', key).update(`${timestamp}${token}`).digest('hex')
  return JSON.stringify({ signature: { timestamp, token, signature }, 'event-data': data })
}
const postMailgun = (body: string) => post('mailgun', body, { 'content-type': 'application/json' })

function mailgunData(
  email: SentEmail,
  kind: Kind,
  { id = newId(), by = 'reference', recipient = email.address, agent, at }: Tell = {},
) {
  const common = {
    id,
    timestamp: at ? at.getTime() / 1_000 : seconds() + 0.25,
    'client-info': { 'user-agent': agent },
    recipient,
    'user-variables': by === 'reference' ? { carillon_ref: email.references.report } : {},
    message: { headers: by === 'message id' ? { 'message-id': email.messageIdHeader.slice(1, -1) } : {} },
  }
  if (kind === 'nothing')
    return { ...common, event: 'failed', severity: 'temporary', 'delivery-status': { message: GONE } }
  const text = textOf[kind]
  if (text === undefined) return { ...common, event: kind }
  return {
    ...common,
    event: 'failed',
    severity: 'permanent',
    'delivery-status': { code: Number(text.slice(0, 3)), message: text.slice(4) },
  }
}
const mailgun: Provider = {
  name: 'Mailgun',
  tell: (email, kind, more) => postMailgun(mailgunCall(mailgunData(email, kind, more))),
}

// ---- SendGrid

type Signed = { timestamp?: string; key?: KeyObject; signed?: string }
function postSendgrid(
  body: string,
  { timestamp = String(seconds()), key = ec.privateKey, signed = body }: Signed = {},
) {
  const signature = sign('sha256', Buffer.from(`${timestamp}${signed}`), key).toString('base64')
  return post('sendgrid', body, {
    'content-type': 'application/json',
    'x-twilio-email-event-webhook-signature': signature,
    'x-twilio-email-event-webhook-timestamp': timestamp,
  })
}
function sendgridEvent(
  email: SentEmail,
  kind: Kind,
  { id = newId(), by = 'reference', recipient = email.address, agent, at = clock.now() }: Tell = {},
) {
  const names: Record<Kind, object> = {
    delivered: { event: 'delivered', response: '250 OK' },
    opened: { event: 'open', sg_machine_open: false },
    clicked: { event: 'click', url: 'https://x.example' },
    complained: { event: 'spamreport' },
    unsubscribed: { event: 'unsubscribe' },
    hard: { event: 'bounce', type: 'bounce', status: '5.1.1', reason: GONE },
    full: { event: 'bounce', type: 'bounce', status: '5.2.2', reason: FULL },
    block: { event: 'bounce', type: 'blocked', status: '5.7.1', reason: SPAM },
    nothing: { event: 'deferred', response: '451 later' },
  }
  return {
    email: recipient,
    timestamp: Math.floor(at.getTime() / 1_000),
    sg_event_id: id,
    useragent: agent,
    sg_message_id: 'x.filter',
    ...(by === 'reference' && { carillon_ref: email.references.report }),
    ...(by === 'message id' && { 'smtp-id': email.messageIdHeader }),
    ...names[kind],
  }
}
const sendgrid: Provider = {
  name: 'SendGrid',
  tell: (email, kind, more) => postSendgrid(`${JSON.stringify([sendgridEvent(email, kind, more)])}\r\n`),
}

// ---- Postmark

const basic = (username = BASIC.username, password = BASIC.password) => ({
  authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
})
function postmarkEvent(
  email: SentEmail,
  kind: Kind,
  { id = newId(), by = 'reference', recipient = email.address, agent, at: when = clock.now() }: Tell = {},
) {
  const at = when.toISOString()
  const kinds: Record<Kind, object> = {
    delivered: { RecordType: 'Delivery', DeliveredAt: at, Recipient: recipient },
    opened: { RecordType: 'Open', ReceivedAt: at, FirstOpen: true, UserAgent: agent, Recipient: recipient },
    clicked: {
      RecordType: 'Click',
      ReceivedAt: at,
      OriginalLink: 'https://x.example',
      UserAgent: agent,
      Recipient: recipient,
    },
    complained: { RecordType: 'SpamComplaint', Type: 'SpamComplaint', BouncedAt: at, Email: recipient },
    unsubscribed: {
      RecordType: 'SubscriptionChange',
      ChangedAt: at,
      SuppressSending: true,
      SuppressionReason: 'ManualSuppression',
      Recipient: recipient,
    },
    hard: { RecordType: 'Bounce', Type: 'HardBounce', BouncedAt: at, Email: recipient, Details: `smtp;${GONE}` },
    full: { RecordType: 'Bounce', Type: 'SoftBounce', BouncedAt: at, Email: recipient, Details: `smtp;${FULL}` },
    block: { RecordType: 'Bounce', Type: 'Blocked', BouncedAt: at, Email: recipient, Details: SPAM },
    nothing: { RecordType: 'Bounce', Type: 'AutoResponder', BouncedAt: at, Email: recipient },
  }
  return {
    MessageID: id,
    Metadata: by === 'reference' ? { carillon_ref: email.references.report } : {},
    ...kinds[kind],
  }
}
const postmark: Provider = {
  name: 'Postmark',
  tell: (email, kind, more) => post('postmark', JSON.stringify(postmarkEvent(email, kind, more)), basic()),
}

const providers = [ses, mailgun, sendgrid, postmark]

async function openedAt({ message }: SentEmail): Promise<Date | undefined> {
  const [row] = await app.db.query<{ openedAt: Date }>(sql`
    select opened_at from deliveries where app_id = ${app.tenant.id} and message_id = ${message.id}`)
  return row?.openedAt
}
/** How many opens were counted at that very time. */
async function openedIn(at: Date): Promise<number> {
  const [row] = await app.db.query<{ opened: number }>(sql`
    select coalesce(sum(opened), 0) as opened from email_instants where app_id = ${app.tenant.id} and at = ${at}`)
  return row?.opened ?? 0
}

describe.each(providers)('$name', ({ tell }) => {
  test.each<[Kind, object]>([
    // The engine has noted that it was delivered; so this is no news.
    ['delivered', UNTOUCHED],
    ['opened', { ...UNTOUCHED, facts: { opens: 1, opened: 1 } }],
    ['clicked', { ...UNTOUCHED, facts: { clicks: 1, clicked: 1 } }],
    ['complained', { facts: { complained: 1 }, types: -2, suppressed: 'complaint' }],
    ['unsubscribed', { facts: { unsubscribed: 1 }, types: -2, suppressed: undefined }],
    ['hard', { facts: { bounced: 1 }, types: -10, suppressed: 'hard_bounce' }],
    ['full', { ...UNTOUCHED, facts: { bounced: 1 } }],
    ['block', { ...UNTOUCHED, facts: { bounced: 1 } }],
    ['nothing', UNTOUCHED],
  ])('tells: %s', async (kind, standing) => {
    const email = await sent()
    expect(await tell(email, kind)).toEqual(OK)
    expect(await standingOf(app, email)).toEqual(standing)
  })

  test('tells that a mail was delivered, once', async () => {
    const email = await sent({ deliveredAt: null })
    expect([await tell(email, 'delivered'), await tell(email, 'delivered')]).toEqual([OK, OK])
    expect(await emailFactsOf(app, email)).toEqual({ delivered: 1 })
  })

  test('tells the same event again, and it counts once', async () => {
    const email = await sent()
    const id = newId()
    for (let i = 0; i < 3; i++) expect(await tell(email, 'opened', { id })).toEqual(OK)
    expect(await emailFactsOf(app, email)).toEqual({ opens: 1, opened: 1 })
    await tell(email, 'opened', { id: newId() })
    expect(await emailFactsOf(app, email)).toEqual({ opens: 2, opened: 1 })
  })

  test('tells of a complaint 20 times at once, and it counts once', async () => {
    const email = await sent()
    const id = newId()
    const answers = await Promise.all(Array.from({ length: 20 }, () => tell(email, 'complained', { id })))
    // Whoever comes while another is at it is asked to come again.
    for (const { status } of answers) expect([200, 503]).toContain(status)
    expect(answers.map(({ status }) => status)).toContain(200)
    expect(await tell(email, 'complained', { id })).toEqual(OK)
    expect(await standingOf(app, email)).toEqual({ facts: { complained: 1 }, types: -2, suppressed: 'complaint' })
  })

  test('tells when it happened, which counts unless it lies more than 31 days back, or ahead', async () => {
    const DAY_MS = 86_400_000
    const now = clock.now()
    for (const [agoMs, isKept] of [
      [3 * DAY_MS, true],
      [31 * DAY_MS, true],
      [31 * DAY_MS + 1_000, false],
      [-5_000, false],
    ] as const) {
      const email = await sent()
      const at = new Date(now.getTime() - agoMs)
      expect(await tell(email, 'opened', { at })).toEqual(OK)
      expect([agoMs, await openedAt(email), await openedIn(at)]).toEqual([agoMs, isKept ? at : now, isKept ? 1 : 0])
    }
    expect(await openedIn(now)).toBe(2)
  })

  test('of a mail that nobody can name, or of a copy, is heard without effect', async () => {
    const email = await sent({ content: { email_bcc: ['archive@example.com'] } })
    expect(await tell(email, 'hard', { by: 'nothing' })).toEqual(OK)
    expect(await tell(email, 'hard', { recipient: 'Archive@example.com' })).toEqual(OK)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })
})

const PROXY = 'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)'

test.each(providers)('$name says what program opened or clicked: machines are told from people', async ({ tell }) => {
  const email = await sent()
  await tell(email, 'opened', { agent: PROXY })
  await tell(email, 'clicked', { agent: PROXY })
  for (const kind of ['opened', 'clicked'] as const) await tell(email, kind, { agent: 'Thunderbird/140.0' })
  const counts = await app.db.query(sql`
    select state, sum(count)::integer as count from message_counts
    where app_id = ${app.tenant.id} and message_id = ${email.message.id} and state like 'machine%' group by state order by state`)
  expect(counts).toEqual([
    { state: 'machine_clicks', count: 1 },
    { state: 'machine_opens', count: 1 },
  ])
  expect(await emailFactsOf(app, email)).toEqual({ opens: 2, opened: 1, clicks: 2, clicked: 1 })
})

test('words that JavaScript has for its own are no types of anything', async () => {
  const email = await sent()
  for (const word of ['constructor', 'toString', '__proto__']) {
    expect(await postSes({ ...snsMessage({ Message: sesEvent(email, 'hard') }), Type: word })).toEqual(REFUSED)
    expect(await postSes({ ...snsMessage({ Message: sesEvent(email, 'hard') }), SignatureVersion: word })).toEqual(
      REFUSED,
    )
    const bounce = { ...postmarkEvent(email, 'hard'), Type: word }
    expect(await post('postmark', JSON.stringify(bounce), basic())).toEqual(OK)
  }
  expect(await standingOf(app, email)).toEqual(UNTOUCHED)
})

test('of several events of which one could not be written down, only that one counts when they are told again', async () => {
  const [opened, bounced] = [await sent(), await sent()]
  const body = JSON.stringify([sendgridEvent(opened, 'opened'), sendgridEvent(bounced, 'hard')])
  await app.db.query(sql`
    create function refuse() returns trigger language plpgsql as 'begin raise exception ''full''; end'`)
  await app.db.query(sql`create trigger refusing before insert on suppressions execute function refuse()`)
  expect((await postSendgrid(body)).status).toBe(500)
  await app.db.query(sql`drop trigger refusing on suppressions`)
  expect(await postSendgrid(body)).toEqual(OK)
  expect(await emailFactsOf(app, opened)).toEqual({ opens: 1, opened: 1 })
  expect(await standingOf(app, bounced)).toEqual({ facts: { bounced: 1 }, types: -10, suppressed: 'hard_bounce' })
})

/** Postmark gives every mail an id of its own, and tells no other. */
test.each([ses, mailgun, sendgrid])('$name is believed when it names the Message-ID that we gave', async ({ tell }) => {
  const email = await sent()
  expect(await tell(email, 'hard', { by: 'message id' })).toEqual(OK)
  expect(await suppressionOf(app, email)).toBe('hard_bounce')
})

test('a provider of one app is not believed about the mail of another', async () => {
  const email = await sent()
  const { id, key } = await app.anotherTenant()
  const headers = { authorization: `Key ${key}` }
  const body = { mailgun: { signing_key: 'the-key-of-a-stranger' } }
  expect((await app.request(`/apps/${id}/email/event_sources`, { method: 'PUT', body, headers })).status).toBe(200)
  for (const by of ['reference', 'message id'] as const) {
    const call = mailgunCall(mailgunData(email, 'hard', { by }), { key: 'the-key-of-a-stranger' })
    expect(await post('mailgun', call, {}, id)).toEqual(OK)
  }
  expect(await standingOf(app, email)).toEqual(UNTOUCHED)
})

describe('SES is believed', () => {
  test('with signatures of both versions', async () => {
    for (const version of ['1', '2']) {
      const email = await sent()
      const message = snsMessage({ Message: sesEvent(email, 'hard'), Subject: 'Amazon SES' }, { version })
      expect(await postSes(message)).toEqual(OK)
      expect(await suppressionOf(app, email)).toBe('hard_bounce')
    }
  })

  test('not when anything about it is wrong', async () => {
    const email = await sent()
    const Message = sesEvent(email, 'hard')
    const good = snsMessage({ Message })
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const fetched = sns.received.length
    for (const message of [
      { ...good, Message: sesEvent(email, 'complained') },
      { ...good, MessageId: newId() },
      { ...good, Timestamp: new Date(clock.now().getTime() + 1).toISOString() },
      { ...good, Signature: 'AAAA' },
      { ...good, Signature: undefined },
      { ...good, SignatureVersion: '1' },
      { ...good, SignatureVersion: '3' },
      { ...good, Type: 'Something' },
      snsMessage({ Message }, { key: other }),
      snsMessage({ Message, TopicArn: 'arn:aws:sns:eu-west-1:123456789012:other' }),
      snsMessage({ Message, Timestamp: new Date(clock.now().getTime() - 8 * 86_400_000).toISOString() }),
      {},
      [],
    ])
      expect(await postSes(message)).toEqual(REFUSED)
    expect((await post('ses', 'no json')).status).toBe(403)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
    // The certificate was at hand.
    expect(sns.received.length - fetched).toBe(0)
  })

  test('not with a certificate from elsewhere, which is not even fetched', async () => {
    const email = await sent()
    const fetched = sns.received.length
    for (const url of [
      `https://evil.example/SimpleNotificationService.pem`,
      `https://sns.eu-west-1.amazonaws.com.evil.example/x.pem`,
      `https://sns.eu-west-1.amazonaws.com@evil.example/x.pem`,
      `https://evil.example/sns.eu-west-1.amazonaws.com/x.pem`,
      `https://s3.eu-west-1.amazonaws.com/x.pem`,
      `https://sns.eu-west-1.amazonaws.com:8443/x.pem`,
      `http://${HOST}/SimpleNotificationService.pem`,
      `https://${HOST}/x.pem?y=.pem`,
      `https://${HOST}/x`,
      'file:///etc/x.pem',
      '',
    ])
      expect([url, await postSes(snsMessage({ Message: sesEvent(email, 'hard'), SigningCertURL: url }))]).toEqual([
        url,
        REFUSED,
      ])
    expect(sns.received.length - fetched).toBe(0)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('later, when its certificate cannot be fetched now', async () => {
    const email = await sent()
    const message = snsMessage({
      Message: sesEvent(email, 'hard'),
      SigningCertURL: `https://${HOST}/SimpleNotificationService-new.pem`,
    })
    isSnsUp = false
    expect((await postSes(message)).status).toBe(503)
    isSnsUp = true
    expect(await postSes(message)).toEqual(OK)
    expect(await suppressionOf(app, email)).toBe('hard_bounce')
  })

  test('and its subscription confirmed, on its own host alone', async () => {
    const confirmation = (url: string) =>
      snsMessage({ Type: 'SubscriptionConfirmation', Message: 'You have chosen', Token: 'abc', SubscribeURL: url })
    const url = `https://${HOST}/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=abc`
    expect(await postSes(confirmation(url))).toEqual(OK)
    expect(sns.received.at(-1)).toMatchObject({ method: 'GET', path: url.slice(`https://${HOST}`.length) })
    const fetched = sns.received.length
    for (const elsewhere of ['https://evil.example/?Action=ConfirmSubscription', 'http://127.0.0.1/', ''])
      expect(await postSes(confirmation(elsewhere))).toEqual(REFUSED)
    const unsigned = { ...confirmation(url), SubscribeURL: `${url}&x` }
    expect(await postSes(unsigned)).toEqual(REFUSED)
    expect(sns.received.length - fetched).toBe(0)
    isSnsUp = false
    expect((await postSes(confirmation(url))).status).toBe(503)
    isSnsUp = true
  })

  test('about a bounce by its own words where the other server said nothing', async () => {
    const [hard, full] = [await sent(), await sent()]
    const bounced = (email: SentEmail, kind: Kind, type: object) => {
      const event = JSON.parse(sesEvent(email, kind))
      event.bounce = { ...event.bounce, ...type, bouncedRecipients: [{ emailAddress: email.address }] }
      return postSes(snsMessage({ Message: JSON.stringify(event) }))
    }
    await bounced(hard, 'hard', { bounceType: 'Permanent', bounceSubType: 'NoEmail' })
    await bounced(full, 'full', { bounceType: 'Transient', bounceSubType: 'MailboxFull' })
    expect([await suppressionOf(app, hard), await suppressionOf(app, full)]).toEqual(['hard_bounce', undefined])
  })
})

describe('SES names several recipients at once, the mail and its copies', () => {
  const COPY = 'archive@example.com'
  const bccd = () => sent({ content: { email_bcc: ['Archive@example.com', 'second@example.com'] } })
  const bounced = (email: SentEmail, list: [address: string, said: string][]) => {
    const event = JSON.parse(sesEvent(email, 'hard'))
    event.bounce.bouncedRecipients = list.map(([emailAddress, said]) => ({
      emailAddress,
      status: said.slice(4, 9),
      diagnosticCode: `smtp; ${said}`,
    }))
    return postSes(snsMessage({ Message: JSON.stringify(event) }))
  }

  test('and what became of the mail is heard, wherever it stands', async () => {
    const [first, last] = [await bccd(), await bccd()]
    expect(
      await bounced(first, [
        [first.address, GONE],
        [COPY, FULL],
      ]),
    ).toEqual(OK)
    expect(
      await bounced(last, [
        [COPY, FULL],
        [last.address, GONE],
      ]),
    ).toEqual(OK)
    for (const email of [first, last])
      expect(await standingOf(app, email)).toEqual({ facts: { bounced: 1 }, types: -10, suppressed: 'hard_bounce' })
  })

  test('and what was said to a copy is not held against the recipient', async () => {
    const email = await bccd()
    expect(
      await bounced(email, [
        [COPY, GONE],
        [email.address, FULL],
      ]),
    ).toEqual(OK)
    expect(await standingOf(app, email)).toEqual({ ...UNTOUCHED, facts: { bounced: 1 } })
  })

  test('and where all are copies nothing is', async () => {
    const email = await bccd()
    expect(
      await bounced(email, [
        [COPY, GONE],
        ['second@example.com', GONE],
      ]),
    ).toEqual(OK)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('of whom one may have complained', async () => {
    const email = await bccd()
    const event = JSON.parse(sesEvent(email, 'complained'))
    event.complaint.complainedRecipients.unshift({ emailAddress: COPY })
    expect(await postSes(snsMessage({ Message: JSON.stringify(event) }))).toEqual(OK)
    expect(await standingOf(app, email)).toEqual({ facts: { complained: 1 }, types: -2, suppressed: 'complaint' })
  })
})

describe('Mailgun is believed', () => {
  test('not with a wrong key, a changed token, or out of its time', async () => {
    const email = await sent()
    const data = mailgunData(email, 'hard')
    const call = JSON.parse(mailgunCall(data))
    for (const body of [
      mailgunCall(data, { key: 'another key' }),
      mailgunCall(data, { timestamp: String(seconds() - 901) }),
      mailgunCall(data, { timestamp: String(seconds() + 901) }),
      mailgunCall(data, { timestamp: 'x' }),
      JSON.stringify({ ...call, signature: { ...call.signature, token: newId() } }),
      JSON.stringify({ ...call, signature: { ...call.signature, timestamp: String(seconds() - 1) } }),
      JSON.stringify({ ...call, signature: { ...call.signature, signature: '' } }),
      JSON.stringify({ 'event-data': data }),
      '[]',
      'x',
      '',
    ])
      expect(await postMailgun(body)).toEqual(REFUSED)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('once for each token, whatever is said under it', async () => {
    const [email, victim] = [await sent(), await sent()]
    const token = newId()
    expect(await postMailgun(mailgunCall(mailgunData(email, 'opened'), { token }))).toEqual(OK)
    expect(await postMailgun(mailgunCall(mailgunData(victim, 'hard'), { token }))).toEqual(OK)
    expect(await standingOf(app, victim)).toEqual(UNTOUCHED)
  })

  test('also within the quarter of an hour around its time', async () => {
    const email = await sent()
    await postMailgun(mailgunCall(mailgunData(email, 'opened'), { timestamp: String(seconds() - 899) }))
    expect(await emailFactsOf(app, email)).toEqual({ opens: 1, opened: 1 })
  })
})

describe('SendGrid is believed', () => {
  test('not with a wrong key, a changed body, or out of its time', async () => {
    const email = await sent()
    const body = JSON.stringify([sendgridEvent(email, 'hard')])
    const another = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    for (const options of [
      { key: another },
      { signed: `${body} ` },
      { timestamp: String(seconds() - 26 * 3_600) },
      { timestamp: String(seconds() + 600) },
      { timestamp: '' },
      { timestamp: 'x' },
    ])
      expect(await postSendgrid(body, options)).toEqual(REFUSED)
    expect(await post('sendgrid', body)).toEqual(REFUSED)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('about many events at once, each of which counts once', async () => {
    const emails = await Promise.all(Array.from({ length: 5 }, () => sent()))
    const events = emails.flatMap((email) => [sendgridEvent(email, 'opened'), sendgridEvent(email, 'clicked')])
    const body = JSON.stringify([...events, ...events, { event: 'open' }, null, 'x', 7])
    expect(await postSendgrid(body)).toEqual(OK)
    expect(await postSendgrid(JSON.stringify([...events, sendgridEvent(emails[0] as SentEmail, 'opened')]))).toEqual(OK)
    for (const [i, email] of emails.entries())
      expect(await emailFactsOf(app, email)).toEqual({ opens: i === 0 ? 2 : 1, opened: 1, clicks: 1, clicked: 1 })
    for (const nothing of ['{}', 'x', '[]', 'null']) expect(await postSendgrid(nothing)).toEqual(OK)
  })

  test('to have dropped what it would not even try', async () => {
    const [bounced, unwanted] = [await sent(), await sent()]
    const dropped = (email: SentEmail, reason: string) => ({
      ...sendgridEvent(email, 'nothing'),
      event: 'dropped',
      reason,
    })
    await postSendgrid(JSON.stringify([dropped(bounced, 'Bounced Address'), dropped(unwanted, 'Spam Content')]))
    expect(await suppressionOf(app, bounced)).toBe('hard_bounce')
    expect(await standingOf(app, unwanted)).toEqual({ ...UNTOUCHED, facts: { bounced: 1 } })
  })
})

describe('Postmark is believed', () => {
  test('by its name and password, or by an address that nobody else knows', async () => {
    const [first, second] = [await sent(), await sent()]
    expect(await post('postmark', JSON.stringify(postmarkEvent(first, 'hard')), basic())).toEqual(OK)
    expect(await post(`postmark/${PATH_SECRET}`, JSON.stringify(postmarkEvent(second, 'hard')))).toEqual(OK)
    for (const email of [first, second]) expect(await suppressionOf(app, email)).toBe('hard_bounce')
  })

  test('not without', async () => {
    const email = await sent()
    const body = JSON.stringify(postmarkEvent(email, 'hard'))
    for (const headers of [
      {},
      basic('postmark', 'wrong'),
      basic('', ''),
      basic('postmark', ''),
      basic(`${BASIC.username}:${BASIC.password}`, ''),
      { authorization: `Bearer ${BASIC.password}` },
      { authorization: `Key ${app.tenant.key}` },
      { authorization: 'Basic ????' },
    ])
      expect(await post('postmark', body, headers as Record<string, string>)).toEqual(REFUSED)
    for (const secret of ['x', PATH_SECRET.toUpperCase(), `${PATH_SECRET}x`, 'null', '%20'])
      expect(await post(`postmark/${secret}`, body, basic())).toEqual(REFUSED)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })
})

test('an app that has set no source, and one that is not there, are answered alike', async () => {
  const stranger = await app.anotherTenant()
  for (const source of ['ses', 'mailgun', 'sendgrid', 'postmark', 'postmark/x'])
    for (const appId of [stranger.id, newId(), 'x']) expect(await post(source, '{}', basic(), appId)).toEqual(REFUSED)
})

test('what could not be written down is heard when it comes again', async () => {
  const email = await sent()
  const call = () => mailgunCall(mailgunData(email, 'hard', { id: 'again' }), { token: 'a-token-that-comes-twice' })
  await app.db.query({ text: 'alter table suppressions rename to suppressions_gone', values: [] })
  try {
    expect((await postMailgun(call())).status).toBeGreaterThanOrEqual(500)
  } finally {
    await app.db.query({ text: 'alter table suppressions_gone rename to suppressions', values: [] })
  }
  expect(await postMailgun(call())).toEqual(OK)
  expect(await suppressionOf(app, email)).toBe('hard_bounce')
})

test('what a server took and died over is heard a minute later', async () => {
  const email = await sent()
  const id = newId()
  const call = () => ses.tell(email, 'opened', { id })
  await call()
  await app.db.query(sql`
    update email_event_receipts set is_done = false where app_id = ${app.tenant.id} and taken_at = ${clock.now()}`)
  expect((await call()).status).toBe(503)
  clock.advance({ seconds: 61 })
  expect(await call()).toEqual(OK)
  expect(await emailFactsOf(app, email)).toEqual({ opens: 2, opened: 1 })
})

test('what was told is remembered for eight days', async () => {
  await mailgun.tell(await sent(), 'opened')
  const remembered = async () => {
    const [row] = await app.db.query<{ n: number }>(sql`
      select count(*)::integer as n from email_event_receipts where app_id = ${app.tenant.id}`)
    return row?.n ?? 0
  }
  clock.advance({ days: 8 })
  await deleteExpiredReceipts(app.db, clock.now())
  expect(await remembered()).toBeGreaterThan(0)
  clock.advance({ ms: 1 })
  await deleteExpiredReceipts(app.db, clock.now())
  expect(await remembered()).toBe(0)
})
