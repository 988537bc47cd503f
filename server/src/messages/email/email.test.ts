import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  anEmailPort,
  anEngine,
  cancel,
  deliveriesOf,
  type FakeSender,
  recipients,
  runEngine,
  setStage,
  tally,
  testReferences,
} from '../../../test/engine.ts'
import { emailCounts, factsBeside, mailsOf } from '../../../test/mail.ts'
import { anEmail } from '../../../test/users.ts'
import { pauseForComplaints } from '../../email/pause.ts'
import { emailIdOf, emailReferenceOf, type ReferencePurpose } from '../../email/reference.ts'
import { findSuppressed, suppressAddresses } from '../../email/suppressions/store.ts'
import { insertWebhook } from '../../feedback/webhook-store.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import { SHARD_COUNT } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'
import { NO_RUN } from '../message.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let authorized: Record<string, string>

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
  authorized = { authorization: `Key ${stage.tenant.key}` }
})

const post = (fields: object) =>
  app.request('/notifications', {
    body: { app_id: appId, email_subject: 'Bells', email_body: '<p>Ring</p>', ...fields },
    headers: authorized,
  })
/** To these addresses; the id of the message. */
async function mailTo(addresses: string[], fields: object = {}): Promise<string> {
  const { body, status } = await post({ email_to: addresses, ...fields })
  expect([status, body.errors]).toEqual([200, undefined])
  return body.id
}
const view = async (id: string) =>
  (await app.request(`/notifications/${id}?app_id=${appId}`, { headers: authorized })).body
const explain = async (id: string, subscriptionId: string) =>
  (
    await app.request(`/apps/${appId}/messages/${id}/explain?subscription_id=${subscriptionId}`, {
      headers: authorized,
    })
  ).body
const settings = (body: object) =>
  app.request(`/apps/${appId}/delivery_settings`, { method: 'PUT', body, headers: authorized })
const subscriptionOf = async (address: string) => {
  const [found] = await app.db.query<{ id: string; userId: string; notificationTypes: number | null }>(sql`
    select id, user_id, notification_types from subscriptions where app_id = ${appId} and lower(token) = ${address.toLowerCase()}`)
  return found as { id: string; userId: string; notificationTypes: number | null }
}

test('a mail is brought with all that it needs to come back', async () => {
  const address = anEmail()
  const id = await mailTo([address], {
    email_subject: 'Bells ring',
    email_body:
      '<body><p>Ring <a href="https://shop.example/?a=1&amp;b=2">here</a>, <a href="[unsubscribe_url]">stop</a></p></body>',
    email_preheader: 'Listen',
    email_from_name: 'The tower',
    email_from_address: 'tower@News.Example.com',
    email_reply_to_address: 'keeper@example.com',
    email_bcc: ['archive@example.com'],
  })
  await runEngine(engine)
  const [mail] = mailsOf(sender)
  const { id: subscriptionId } = await subscriptionOf(address)
  const key = { messageId: id, subscriptionId, runId: NO_RUN }
  const references = testReferences
  const writtenFor = (purpose: ReferencePurpose) =>
    references.write(emailReferenceOf({ ...key, appId, expandAt: clock.now() }), purpose)
  const signature = references.sign(appId, 'https://shop.example/?a=1&b=2')
  expect(mail).toMatchObject({
    to: address,
    reference: writtenFor('report'),
    envelopeFrom: `b-${writtenFor('report')}@bounces.news.example.com`,
    messageIdHeader: `<${emailIdOf(key)}.3001@news.example.com>`,
    date: clock.now(),
    bcc: ['archive@example.com'],
    inboxProvider: 'other',
    content: {
      from: { name: 'The tower', address: 'tower@News.Example.com' },
      replyTo: 'keeper@example.com',
      subject: 'Bells ring',
    },
    headers: {
      'List-Unsubscribe': `<https://track.example.com/e/u/${writtenFor('unsubscribe')}>, <mailto:u-${writtenFor('unsubscribe')}@bounces.news.example.com>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      'Feedback-ID': `${id}:${appId}:direct:carillon`,
      'X-Message-Id': id,
    },
    text: `Ring here (https://shop.example/?a=1&b=2), stop (https://track.example.com/e/u/${writtenFor('unsubscribe')})`,
  })
  expect(mail?.html).toBe(
    `<body><div style="display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all">Listen</div><p>Ring <a href="https://track.example.com/e/c/${writtenFor('click')}/${signature}?u=https%3A%2F%2Fshop.example%2F%3Fa%3D1%26b%3D2">here</a>, <a href="https://track.example.com/e/u/${writtenFor('unsubscribe')}">stop</a></p><img src="https://track.example.com/e/o/${writtenFor('open')}.gif" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0"></body>`,
  )
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  expect(await view(id)).toMatchObject({ successful: 1, bcc_sent: 1, email_bcc: ['archive@example.com'] })
  const [row] = await app.db.query(sql`
    select provider_ref, sending_domain, inbox_provider, delivered_at, bounced_at from deliveries
    where app_id = ${appId} and message_id = ${id}`)
  expect(row).toEqual({
    providerRef: emailIdOf(key),
    sendingDomain: 'news.example.com',
    inboxProvider: 'other',
    deliveredAt: clock.now(),
    bouncedAt: null,
  })
})

test('what is the same for all is put together once; Liquid is rendered for each, with a token to unsubscribe with', async () => {
  const addresses = Array.from({ length: 20 }, anEmail)
  await mailTo(addresses)
  await mailTo(addresses, {
    email_subject: 'For {{ subscription.email }}',
    email_body: '<a href="https://shop.example/?t={{ subscription.unsubscribe_token }}">x</a>',
  })
  await runEngine(engine)
  const mails = mailsOf(sender)
  const plain = mails.filter(({ content }) => content.subject === 'Bells')
  expect(plain).toHaveLength(20)
  // Once for each part of a line, which is worked through by itself.
  expect(new Set(plain.map(({ content }) => content)).size).toBeLessThanOrEqual(SHARD_COUNT)
  expect(new Set(plain.map(({ reference }) => reference)).size).toBe(20)
  const rendered = mails.filter(({ content }) => content.subject !== 'Bells')
  expect(rendered.map(({ content }) => content.subject).sort()).toEqual(addresses.map((it) => `For ${it}`).sort())
  for (const { html, text, referenceFor } of rendered) {
    const token = referenceFor('unsubscribe')
    expect(html).toContain(encodeURIComponent(`https://shop.example/?t=${token}`))
    expect(text).toContain(`https://shop.example/?t=${token}`)
  }
})

test('clicks are not followed where the message says so', async () => {
  await mailTo([anEmail()], {
    email_body: '<a href="https://shop.example/">x</a>',
    disable_email_click_tracking: true,
  })
  await runEngine(engine)
  expect(mailsOf(sender)[0]?.html).toMatch(/^<a href="https:\/\/shop\.example\/">x<\/a><img src=/)
})

test('a mail has no picture that tells when it is opened where the message, or its template, says so', async () => {
  const body = '<p>Ring <a href="https://shop.example/">here</a></p>'
  await mailTo([anEmail()], { email_body: body, disable_email_open_tracking: true })
  await runEngine(engine)
  await mailTo([anEmail()], { email_body: body, disable_email_open_tracking: true, disable_email_click_tracking: true })
  await runEngine(engine)
  const template = { name: 'Quiet', isEmail: true, email_subject: 'Bells', email_body: body, contents: { en: 'x' } }
  const { body: made } = await app.request(`/templates?app_id=${appId}`, {
    body: { app_id: appId, ...template, disable_email_open_tracking: true },
    headers: authorized,
  })
  await app.request('/notifications', {
    body: { app_id: appId, template_id: made.id, email_to: [anEmail()] },
    headers: authorized,
  })
  await runEngine(engine)
  const found = mailsOf(sender).map(({ html }) => [html.includes('/e/o/'), html.includes('/e/c/')])
  expect(found).toEqual([
    [false, true],
    [false, false],
    [false, true],
  ])
})

test('who can unsubscribe in the HTML can do so in the text', async () => {
  await mailTo([anEmail()], { email_body: '<p>Ring</p><a href="%5Bunsubscribe_url%5D"><img src="x"></a>' })
  await runEngine(engine)
  const [mail] = mailsOf(sender)
  expect(mail?.text).toMatch(/https:\/\/track\.example\.com\/e\/u\/[a-z2-7]{55}/)
})

test('a mail without an address of its own is from the app; one that is caught needs none', async () => {
  await mailTo([anEmail()])
  await runEngine(engine)
  expect(mailsOf(sender)[0]?.content.from).toEqual({ name: 'Bells', address: 'bells@example.com' })

  const port = { ...anEmailPort(), defaultFrom: async () => undefined }
  const nameless = anEngine({ db: app.db, clock, sender, email: port })
  const id = await mailTo([anEmail()])
  await runEngine(nameless)
  expect(await tally(app.db, appId, id)).toEqual({ 'skipped no_from_address': 1 })

  const catching = { ...port, findDevelopmentMailbox: async () => ({ appName: 'Tower' }) }
  await mailTo([anEmail()], { email_subject: 'Caught' })
  await runEngine(anEngine({ db: app.db, clock, sender, email: catching }))
  expect(mailsOf(sender).at(-1)?.content.from).toEqual({ name: 'Tower', address: 'no-reply@localhost.localdomain' })
  await mailTo([anEmail()], { email_sender_domain: 'mail.example.org', email_from_name: 'Ann' })
  await runEngine(anEngine({ db: app.db, clock, sender, email: catching }))
  expect(mailsOf(sender).at(-1)?.content.from).toEqual({ name: 'Ann', address: 'no-reply@mail.example.org' })
})

test('a mail is sent by a domain that the app may send from, its own or one above it', async () => {
  const active = ['example.com', 'other.example']
  const port = anEmailPort()
  const email = {
    ...port,
    findSendingDomain: async (of: AppId, domain: string) =>
      active.includes(domain) ? port.findSendingDomain(of, domain) : undefined,
  }
  const choosy = anEngine({ db: app.db, clock, sender, email })
  const sentFrom = async (fields: object) => {
    const id = await mailTo([anEmail()], fields)
    await runEngine(choosy)
    const [row] = await app.db.query<{ sendingDomain: string | null; state: string; reason: string | null }>(
      sql`select sending_domain, state, reason from deliveries where app_id = ${appId} and message_id = ${id}`,
    )
    return row?.sendingDomain ?? `${row?.state} ${row?.reason}`
  }
  expect(await sentFrom({ email_from_address: 'a@example.com' })).toBe('example.com')
  expect(await sentFrom({ email_from_address: 'a@deep.news.example.com' })).toBe('example.com')
  expect(await sentFrom({ email_from_address: 'a@EXAMPLE.com', email_sender_domain: 'Other.Example' })).toBe(
    'other.example',
  )
  expect(await sentFrom({ email_from_address: 'a@example.org' })).toBe('skipped domain_inactive')
  expect(await sentFrom({ email_from_address: 'a@example.com', email_sender_domain: 'example.org' })).toBe(
    'skipped domain_inactive',
  )
  // Nobody else's name, under a domain of one's own.
  for (const address of ['ceo@bank.example', 'a@notexample.com'])
    expect(await sentFrom({ email_from_address: address, email_sender_domain: 'example.com' })).toBe(
      'skipped domain_inactive',
    )
  active.push('mg.shop.example')
  for (const address of ['a@shop.example', 'a@eu.mg.shop.example'])
    expect(await sentFrom({ email_from_address: address, email_sender_domain: 'mg.shop.example' })).toBe(
      'mg.shop.example',
    )
})

test('addresses that are suppressed get nothing; those that only unsubscribed get what goes to everybody', async () => {
  const [bounced, out, fine] = [anEmail(), anEmail(), anEmail()]
  await suppressAddresses(
    app.db,
    appId,
    [
      { address: bounced.toLowerCase(), reason: 'hard_bounce' },
      { address: out.toLowerCase(), reason: 'unsubscribed' },
    ],
    clock.now(),
  )
  const id = await mailTo([bounced, out, fine])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, 'skipped suppressed': 2 })
  expect((await explain(id, (await subscriptionOf(bounced)).id)).subscriptions[0].explanation).toBe(
    'It was decided not to send it: the address is on the suppression list.',
  )
  const toAll = await mailTo([bounced, out, fine], { include_unsubscribed: true })
  await runEngine(engine)
  expect(await tally(app.db, appId, toAll)).toEqual({ sent: 2, 'skipped suppressed': 1 })
})

test('who does not want mail gets what goes to everybody, and nothing else', async () => {
  const address = anEmail()
  await mailTo([address])
  await app.db.query(
    sql`update subscriptions set notification_types = -2 where app_id = ${appId} and token = ${address}`,
  )
  await runEngine(engine)
  expect(mailsOf(sender)).toEqual([])
  const id = await mailTo([address], { include_unsubscribed: true })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('what becomes of mail is counted by domain and inbox provider, and told', async () => {
  await insertWebhook(app.db, appId, {
    id: newId(),
    url: 'https://hook.example/',
    kinds: ['sent', 'delivered', 'bounced', 'failed'],
    secret: '',
    createdAt: clock.now(),
    updatedAt: clock.now(),
  })
  const [good, gmail, gone, full, blocked] = [anEmail(), 'ann@gmail.com', anEmail(), anEmail(), anEmail()]
  const [refused, lost, later] = [anEmail(), anEmail(), anEmail()]
  sender.script(gone, { kind: 'gone', reason: 'hard_bounce' })
  sender.script(full, { kind: 'failed', reason: 'mailbox_full' })
  sender.script(blocked, { kind: 'failed', reason: 'blocked' })
  sender.script(refused, { kind: 'failed', reason: 'message too large' })
  sender.script(lost, { kind: 'unknown', reason: 'no answer' })
  sender.script(later, { kind: 'retry', reason: 'greylisted' })
  const id = await mailTo([good, gmail, gone, full, blocked, refused, lost, later])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({
    sent: 2,
    'failed gone: hard_bounce': 1,
    'failed mailbox_full': 1,
    'failed blocked': 1,
    'failed message too large': 1,
    'unknown no answer': 1,
    pending: 1,
  })
  expect(await emailCounts(app.db, appId)).toEqual({
    'example.com gmail': { sent: 1, delivered: 1 },
    'example.com other': { sent: 4, delivered: 1, bounced: 3, failed: 1 },
  })
  expect(await factsBeside(app.db, appId, id)).toEqual({ delivered: 2, bounced: 3 })
  const told = await app.db.query<{ kind: string; reason: string | null; count: number }>(sql`
    select kind, reason, count(*) as count from delivery_events where app_id = ${appId}
    group by kind, reason order by kind, reason collate "C"`)
  expect(told).toEqual([
    { kind: 'bounced', reason: 'blocked', count: 1 },
    { kind: 'bounced', reason: 'hard_bounce', count: 1 },
    { kind: 'bounced', reason: 'mailbox_full', count: 1 },
    { kind: 'delivered', reason: null, count: 2 },
    { kind: 'failed', reason: 'message too large', count: 1 },
    { kind: 'sent', reason: null, count: 2 },
  ])
  const { platform_delivery_stats: stats, delivery } = await view(id)
  expect(stats.email).toMatchObject({ successful: 2, bounced: 3, delivered: 2 })
  expect(Object.values(delivery.states).reduce((a, b) => Number(a) + Number(b), 0)).toBe(8)
  // The address leads nowhere; a full mailbox and a bad day of ours say nothing about it yet.
  expect((await subscriptionOf(gone)).notificationTypes).toBe(-10)
  expect((await subscriptionOf(full)).notificationTypes).toBeNull()
  const asked = [gone, full, blocked].map((it) => it.toLowerCase())
  expect(await findSuppressed(app.db, appId, asked)).toEqual(new Map([[gone.toLowerCase(), 'hard_bounce']]))
})

test('an address that is full too often is suppressed', async () => {
  const address = anEmail()
  for (let i = 0; i < 5; i++) {
    sender.script(address, { kind: 'failed', reason: i % 2 ? 'soft_bounce' : 'mailbox_full' })
    await mailTo([address])
    await runEngine(engine)
  }
  expect(await findSuppressed(app.db, appId, [address.toLowerCase()])).toEqual(
    new Map([[address.toLowerCase(), 'soft_bounces']]),
  )
})

test('an address that was full for as long as it was tried counts as one that refused, once for each mail', async () => {
  const [tried, held, shortly] = [anEmail(), anEmail(), anEmail()] as const
  const softBouncesOf = (address: string) =>
    app.db.query(sql`
      select cardinality(times) as count from soft_bounces where app_id = ${appId} and address = ${address.toLowerCase()}`)
  const wait = async (hours: number) => {
    for (let passed = 0; passed < hours; passed += 4) {
      clock.advance({ hours: 4 })
      await runEngine(engine)
    }
  }
  sender.otherwise = () => ({ kind: 'retry', reason: 'mailbox_full' })
  // Until it lives no longer, and, living longer, until it was tried often enough.
  const first = await mailTo([tried])
  const second = await mailTo([tried], { ttl: 2_419_200 })
  await runEngine(engine)
  await wait(84)
  expect(await tally(app.db, appId, first)).toEqual({ 'expired mailbox_full': 1 })
  await wait(60)
  expect(await tally(app.db, appId, second)).toEqual({ 'failed mailbox_full': 1 })
  expect(await softBouncesOf(tried)).toEqual([{ count: 2 }])
  // One that had room again in time.
  const third = await mailTo([shortly])
  await runEngine(engine)
  sender.otherwise = () => ({ kind: 'sent' })
  await wait(4)
  expect(await tally(app.db, appId, third)).toEqual({ sent: 1 })
  expect(await softBouncesOf(shortly)).toEqual([])
  // Given up while sending is held.
  sender.otherwise = () => ({ kind: 'retry', reason: 'mailbox_full' })
  const fourth = await mailTo([held])
  await runEngine(engine)
  await pauseForComplaints(app.db, appId, async () => ({ delivered: 1_000, complained: 10 }), clock.now())
  await wait(84)
  expect(await tally(app.db, appId, fourth)).toEqual({ 'expired mailbox_full': 1 })
  expect(await softBouncesOf(held)).toEqual([{ count: 1 }])
})

test('what a server of mail puts off is tried after five minutes, then later each time, and fails when its time is over', async () => {
  const address = anEmail()
  sender.otherwise = () => ({ kind: 'retry', reason: 'greylisted' })
  const id = await mailTo([address])
  await runEngine(engine)
  const start = clock.now().getTime()
  const dueAfter = async () => ((await deliveriesOf(app.db, appId, id))[0]?.dueAt.getTime() ?? 0) - start
  expect(await dueAfter()).toBe(300_000)
  clock.advance({ minutes: 5 })
  await runEngine(engine)
  expect(await dueAfter()).toBe(900_000)
  for (let hours = 0; hours < 80; hours += 4) {
    clock.advance({ hours: 4 })
    await runEngine(engine)
  }
  expect(await tally(app.db, appId, id)).toEqual({ 'expired greylisted': 1 })
  expect(await emailCounts(app.db, appId)).toEqual({ 'example.com other': { failed: 1 } })
})

test('what was never offered is no attempt', async () => {
  const address = anEmail()
  sender.otherwise = () => ({ kind: 'retry', reason: 'slowed', afterMs: 60_000, wasNotAttempted: true })
  const id = await mailTo([address])
  for (let i = 0; i < 40; i++) {
    await runEngine(engine)
    clock.advance({ minutes: 1 })
  }
  expect(await deliveriesOf(app.db, appId, id)).toMatchObject([{ state: 'pending', reason: 'slowed', attempts: 0 }])
  sender.otherwise = () => ({ kind: 'sent' })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('while email of the app is paused nothing of it is sent, and everything else is', async () => {
  await pauseForComplaints(app.db, appId, async () => ({ delivered: 1_000, complained: 100 }), clock.now())
  const id = await mailTo([anEmail()])
  const [phone] = await recipients(engine, appId, 1)
  const push = await app.request('/notifications', {
    body: { app_id: appId, contents: { en: 'Ring' }, include_subscription_ids: [phone?.id] },
    headers: authorized,
  })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ pending: 1 })
  expect(await tally(app.db, appId, push.body.id)).toEqual({ sent: 1 })
  const [row] = await deliveriesOf(app.db, appId, id)
  expect((await explain(id, row?.subscriptionId ?? '')).holds).toEqual([
    expect.stringMatching(/^No email of this app is sent: too many/),
  ])
})

test('a test goes to test users alone, and is counted nowhere', async () => {
  const [tester, other] = [anEmail(), anEmail()]
  await mailTo([tester, other])
  await runEngine(engine)
  const before = await emailCounts(app.db, appId)
  const { userId } = await subscriptionOf(tester)
  await app.db.query(sql`update users set test_user_name = 'Ann' where app_id = ${appId} and id = ${userId}`)
  const id = await mailTo([tester, other], { is_test: true })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, 'skipped no_test_user': 1 })
  expect(await emailCounts(app.db, appId)).toEqual(before)
})

test('quiet hours and caps hold for email, and suppression is decided before both', async () => {
  const [address, suppressed] = [anEmail(), anEmail()]
  await suppressAddresses(app.db, appId, [{ address: suppressed.toLowerCase(), reason: 'complaint' }], clock.now())
  const at = (ms: number) => new Date(clock.now().getTime() + ms).toISOString().slice(11, 16)
  expect((await settings({ quiet_hours: { start: at(0), end: at(3_600_000), channels: ['email'] } })).status).toBe(200)
  const quiet = await mailTo([address, suppressed])
  await runEngine(engine)
  expect(await tally(app.db, appId, quiet)).toEqual({ pending: 1, 'skipped suppressed': 1 })
  await settings({
    quiet_hours: null,
    frequency_caps: [{ channel: 'email', count: 1, window: 1, unit: 'days' }],
  })
  const capped = anEmail()
  const first = await mailTo([capped])
  await runEngine(engine)
  const second = await mailTo([capped])
  await runEngine(engine)
  expect(await tally(app.db, appId, first)).toEqual({ sent: 1 })
  expect(await tally(app.db, appId, second)).toEqual({ 'skipped frequency_cap': 1 })
})

test('a mail that is put off is not sent after its message was canceled', async () => {
  const address = anEmail()
  sender.script(address, { kind: 'retry', reason: 'greylisted' })
  const id = await mailTo([address])
  await runEngine(engine)
  await cancel(engine, appId, id)
  clock.advance({ hours: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ canceled: 1 })
  expect(mailsOf(sender).filter(({ to }) => to === address)).toHaveLength(1)
})

test('mail whose Liquid cannot be rendered failed, and is counted so', async () => {
  const id = await mailTo([anEmail()], { email_reply_to_address: 'nobody{{ subscription.phone_number }}' })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ 'failed render_failed': 1 })
  expect(await emailCounts(app.db, appId)).toEqual({ 'example.com other': { failed: 1 } })
})

test('hosts of mailboxes are looked up when a message is expanded, each domain once, and for mail alone', async () => {
  const asked: string[][] = []
  const email = {
    ...anEmailPort(),
    lookUpMailHosts: async (domains: readonly string[]) => void asked.push([...domains]),
  }
  const looking = anEngine({ db: app.db, clock, sender, email })
  await mailTo(['ann@One.example', 'bob@one.example', 'cas@two.example'])
  await runEngine(looking)
  expect(asked.map((it) => it.sort())).toEqual([['one.example', 'two.example']])
  asked.length = 0
  await recipients(looking, appId, 3)
  await post({ included_segments: ['Total Subscriptions'], isEmail: true })
  await post({
    included_segments: ['Total Subscriptions'],
    email_subject: null,
    email_body: null,
    contents: { en: 'Ring' },
  })
  await runEngine(looking)
  expect(asked.map((it) => it.sort())).toEqual([['one.example', 'two.example']])
  // What cannot be looked up holds up nothing.
  email.lookUpMailHosts = () => Promise.reject(new Error('no network'))
  const id = await mailTo([anEmail()])
  await runEngine(looking)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})
