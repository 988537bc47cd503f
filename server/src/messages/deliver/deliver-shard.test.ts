import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  aMessage,
  deliveriesOf,
  type FakeSender,
  type MessageDraft,
  messageRow,
  only,
  type Recipient,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../../test/engine.ts'
import { insertWebhook } from '../../feedback/webhook-store.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import { pauseServer, resumeServer } from '../../sending/control-server.ts'
import { sql } from '../../storage/sql.ts'
import type { Engine } from '../engine/types.ts'
import type { EventKind } from '../feedback/delivery-event.ts'
import { resumeMisconfigured } from '../release/resume.ts'
import { findPauses } from './provider-pause-store.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
  organizationKey = stage.tenant.organizationKey
  authorized = { authorization: `Key ${stage.tenant.key}` }
})

const toOne = async (draft: MessageDraft = {}, person: Parameters<typeof recipients>[3] = {}) => {
  const [to] = (await recipients(engine, appId, 1, person)) as [Recipient]
  return { to, id: await aMessage(engine, appId, { lane: 'direct', audience: only(to.id), ...draft }) }
}
const subscription = async (id: string) =>
  (
    await app.db.query<{ notificationTypes: number | null }>(
      sql`select notification_types from subscriptions where app_id = ${appId} and id = ${id}`,
    )
  )[0]?.notificationTypes
const settings = (body: object) =>
  app.request(`/apps/${appId}/delivery_settings`, { method: 'PUT', body, headers: authorized })
let authorized: Record<string, string>
let organizationKey: string

test.each([
  ['cannot be stored', 'SM\0', null],
  ['is half a character', '\ud800', null],
  ['is too long for an index', Array.from({ length: 1_000 }, newId).join(''), null],
  ['is as it should be', 'SM123', 'SM123'],
])('what a provider calls by a name that %s was sent', async (_, name, kept) => {
  const { to, id } = await toOne({ channel: 'sms', content: { contents: { en: 'Bells' } } }, { type: 'SMS' })
  sender.script(to.token, { kind: 'sent', id: name })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  const found = await app.db.query(
    sql`select provider_ref from deliveries where app_id = ${appId} and message_id = ${id}`,
  )
  expect(found).toEqual([{ providerRef: kept }])
})

test('a direct message is expanded, sent and done', async () => {
  const { to, id } = await toOne()
  await runEngine(engine)
  expect(sender.calls.map(({ provider, outgoing }) => [provider, outgoing.token])).toEqual([['apns', to.token]])
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done', completedAt: clock.now() })
  expect(await deliveriesOf(app.db, appId, id)).toMatchObject([{ attempts: 1 }])
})

test('what is refused for now is tried again, later each time, and not before the provider wants it', async () => {
  const { to, id } = await toOne()
  sender.script(to.token, { kind: 'retry', reason: 'busy' }, { kind: 'retry', reason: 'busy', afterMs: 90_000 })
  await runEngine(engine)
  const start = clock.now().getTime()
  expect(await tally(app.db, appId, id)).toEqual({ pending: 1 })
  expect(await deliveriesOf(app.db, appId, id)).toMatchObject([
    { reason: 'busy', attempts: 1, dueAt: new Date(start + 10_000) },
  ])
  clock.advance({ ms: 9_999 })
  await runEngine(engine)
  expect(sender.calls).toHaveLength(1)
  clock.advance({ ms: 1 })
  await runEngine(engine)
  expect(await deliveriesOf(app.db, appId, id)).toMatchObject([{ attempts: 2, dueAt: new Date(start + 100_000) }])
  clock.advance({ seconds: 90 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  expect(sender.calls).toHaveLength(3)
})

test.each([
  ['as long as they can be', 1],
  ['as short as they can be', 0],
  ['in between', 0.5],
])('pauses between tries double from ten seconds to an hour: %s', async (_, chance) => {
  await toOne({ options: { ttl: 2_419_200 } })
  sender.otherwise = () => ({ kind: 'retry', reason: 'busy' })
  const at: number[] = []
  while (at.length < 20) {
    await runEngine({ ...engine, random: () => chance })
    at.push(clock.now().getTime())
    expect(sender.calls).toHaveLength(at.length)
    const [next] = await app.db.query<{ dueAt: Date }>(
      sql`select due_at from deliveries where app_id = ${appId} and state = 'pending'`,
    )
    clock.advance({ ms: next ? next.dueAt.getTime() - clock.now().getTime() : 86_400_000 })
  }
  const doubling = [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, ...Array(10).fill(3_600)]
  expect(at.slice(1).map((time, n) => (time - (at[n] as number)) / 1_000)).toEqual(
    doubling.map((seconds) => seconds * (0.5 + chance / 2)),
  )
  await runEngine(engine)
  expect(sender.calls).toHaveLength(20)
})

test('what is refused until its time is over has expired, with the last reason', async () => {
  const { id } = await toOne({ options: { ttl: 120 } })
  sender.otherwise = () => ({ kind: 'retry', reason: 'busy' })
  for (let minute = 0; minute < 4; minute++) {
    await runEngine(engine)
    clock.advance({ minutes: 1 })
  }
  expect(await tally(app.db, appId, id)).toEqual({ 'expired busy': 1 })
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' })
})

test.each([
  [30, 29, { sent: 1 }],
  [30, 30, { expired: 1 }],
  [1, 2, { expired: 1 }],
  // Providers do not store it; the server may still take a moment to come to it.
  [0, 59, { sent: 1 }],
  [0, 60, { expired: 1 }],
])('a ttl of %i seconds holds here too: after %i it ends as %j', async (ttl, seconds, end) => {
  await app.request(`/apps/${appId}/sending/pause`, { method: 'POST', body: {}, headers: authorized })
  const { id } = await toOne({ options: { ttl } })
  await runEngine(engine)
  clock.advance({ seconds })
  await app.request(`/apps/${appId}/sending/resume`, { method: 'POST', body: {}, headers: authorized })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual(end)
})

test('what is refused too often has failed', async () => {
  const { id } = await toOne({ options: { ttl: 2_419_200 } })
  sender.otherwise = () => ({ kind: 'retry', reason: 'busy' })
  for (let hour = 0; hour < 30; hour++) {
    await runEngine(engine)
    clock.advance({ hours: 1 })
  }
  expect(await tally(app.db, appId, id)).toEqual({ 'failed busy': 1 })
  expect(sender.calls).toHaveLength(20)
})

const tellMeOf = (...kinds: EventKind[]) =>
  insertWebhook(app.db, appId, {
    ...{ id: newId(), url: 'https://hook.example/', kinds, secret: '' },
    ...{ createdAt: clock.now(), updatedAt: clock.now() },
  })
const told = () =>
  app.db.query(sql`
    select kind, message_id, subscription_id, reason from delivery_events where app_id = ${appId} order by kind`)

test('who asked to be told of what is sent and what fails is told, in the transaction that decides it', async () => {
  const [fine, bad, slow] = (await recipients(engine, appId, 3)) as [Recipient, Recipient, Recipient]
  await tellMeOf('sent', 'failed')
  sender.script(bad.token, { kind: 'failed', reason: 'too large' })
  sender.script(slow.token, { kind: 'retry', reason: 'busy' })
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await told()).toEqual([
    { kind: 'failed', messageId: id, subscriptionId: bad.id, reason: 'too large' },
    { kind: 'sent', messageId: id, subscriptionId: fine.id, reason: null },
  ])
})

test('an address that leads nowhere is unsubscribed, unless it was registered again since', async () => {
  const [bad, moved, again] = (await recipients(engine, appId, 3)) as [Recipient, Recipient, Recipient]
  const before = new Date(clock.now().getTime() - 1)
  sender.script(bad.token, { kind: 'gone', reason: 'Unregistered', since: clock.now() })
  sender.script(moved.token, { kind: 'gone', reason: 'BadDeviceToken' })
  sender.script(again.token, { kind: 'gone', reason: 'Unregistered', since: before })
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ 'failed gone: Unregistered': 2, 'failed gone: BadDeviceToken': 1 })
  expect(await subscription(bad.id)).toBe(-10)
  expect(await subscription(moved.id)).toBe(-14)
  expect(await subscription(again.id)).toBe(null)
})

test('who has told the provider of texts to stop has unsubscribed', async () => {
  const { to, id } = await toOne({ channel: 'sms', content: { contents: { en: 'Bells' } } }, { type: 'SMS' })
  sender.script(to.token, { kind: 'gone', reason: 'opted out' })
  await runEngine(engine)
  expect(sender.calls[0]?.outgoing.content).toMatchObject({ messageId: id, text: 'Bells' })
  expect(await subscription(to.id)).toBe(-2)
})

test('a token of another sender at Google is dropped where others of the app are known there, and failed where none is', async () => {
  // So many that some are in every line.
  const people = await recipients(engine, appId, 80, { type: 'AndroidPush' })
  const theirs = { kind: 'gone', reason: 'SENDER_ID_MISMATCH' } as const
  sender.otherwise = () => theirs
  const wrong = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, wrong)).toEqual({ 'failed SENDER_ID_MISMATCH': 80 })
  expect(await subscription(people[0]?.id as string)).toBe(null)

  sender.otherwise = () => ({ kind: 'sent' })
  const [stray] = (await recipients(engine, appId, 1, { type: 'AndroidPush' })) as [Recipient]
  sender.script(stray.token, theirs)
  const right = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, right)).toEqual({ sent: 80, 'failed gone: SENDER_ID_MISMATCH': 1 })
  expect(await subscription(stray.id)).toBe(-6)
})

test('an app of which Apple knows no token at all has the wrong environment: nobody is unsubscribed', async () => {
  // So many that every line has enough of them not to take it for chance.
  const people = await recipients(engine, appId, 80)
  sender.otherwise = () => ({ kind: 'gone', reason: 'BadDeviceToken' })
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ pending: 80 })
  expect(await subscription(people[0]?.id as string)).toBe(null)
  expect(await findPauses(app.db, appId, clock.now())).toMatchObject([{ provider: 'apns', reason: 'BadDeviceToken' }])
  // Once it has sent something, it is believed.
  await resumeMisconfigured(engine, appId)
  sender.otherwise = () => ({ kind: 'sent' })
  await toOne()
  await runEngine(engine)
  sender.otherwise = ({ outgoing }) =>
    outgoing.token < '8' ? { kind: 'sent' } : { kind: 'gone', reason: 'BadDeviceToken' }
  clock.advance({ minutes: 10 })
  await runEngine(engine)
  const counts = await tally(app.db, appId, id)
  expect((counts.sent ?? 0) + (counts['failed gone: BadDeviceToken'] ?? 0)).toBe(80)
})

test('credentials that are refused hold the provider, and nothing else, until there are others', async () => {
  const { id } = await toOne()
  const other = await toOne({}, { type: 'AndroidPush' })
  sender.otherwise = ({ provider }) =>
    provider === 'apns' ? { kind: 'misconfigured', reason: 'InvalidProviderToken' } : { kind: 'sent' }
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ pending: 1 })
  expect(await tally(app.db, appId, other.id)).toEqual({ sent: 1 })
  expect(await findPauses(app.db, appId, clock.now())).toMatchObject([
    { provider: 'apns', reason: 'InvalidProviderToken' },
  ])
  const next = await toOne()
  clock.advance({ minutes: 1 })
  await runEngine(engine)
  expect(sender.calls.filter(({ provider }) => provider === 'apns')).toHaveLength(1)

  sender.otherwise = () => ({ kind: 'sent' })
  await resumeMisconfigured(engine, appId)
  // The next one does not wait for the end of the pause; what was refused waits until then.
  await runEngine(engine)
  expect(await tally(app.db, appId, next.id)).toEqual({ sent: 1 })
  clock.advance({ minutes: 10 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('while credentials are refused, what lives no longer expires and says why', async () => {
  const { id } = await toOne({ options: { ttl: 900 } })
  sender.otherwise = () => ({ kind: 'misconfigured', reason: 'InvalidProviderToken' })
  for (let minutes = 0; minutes < 30; minutes += 5) {
    await runEngine(engine)
    clock.advance({ minutes: 5 })
  }
  expect(await tally(app.db, appId, id)).toEqual({ 'expired InvalidProviderToken': 1 })
})

test('a provider that asks for a pause gets it from all lines of the app', async () => {
  await recipients(engine, appId, 40)
  let isBusy = true
  sender.otherwise = () =>
    isBusy ? { kind: 'retry', reason: 'quota', afterMs: 60_000, pausesProvider: true } : { kind: 'sent' }
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  const asked = sender.calls.length
  clock.advance({ seconds: 59 })
  await runEngine(engine)
  expect(sender.calls).toHaveLength(asked)
  isBusy = false
  clock.advance({ seconds: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 40 })
})

test('whoever is gone, unsubscribed or moved before it is sent', async () => {
  const [gone, off, moved] = (await recipients(engine, appId, 3)) as [Recipient, Recipient, Recipient]
  const later = new Date(clock.now().getTime() + 3_600_000)
  const id = await aMessage(engine, appId, {
    options: { delayedOption: 'timezone', timeOfDay: (later.getTime() % 86_400_000) / 1_000 },
  })
  await runEngine(engine)
  const [owner] = (await recipients(engine, appId, 1, { type: 'Email', language: 'fr' })) as [Recipient]
  await app.db.query(sql`delete from subscriptions where app_id = ${appId} and id = ${gone.id}`)
  await app.db.query(sql`update subscriptions set enabled = false where app_id = ${appId} and id = ${off.id}`)
  await app.db.query(
    sql`update subscriptions set user_id = ${owner.userId} where app_id = ${appId} and id = ${moved.id}`,
  )
  clock.advance({ hours: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ 'skipped deleted': 1, 'skipped unsubscribed': 1, sent: 1 })
  expect(sender.calls.map(({ outgoing }) => outgoing.token)).toEqual([moved.token])
})

test('quiet hours put off what is due in them, and end what does not outlive them', async () => {
  const until = new Date(clock.now().getTime() + 3_600_000)
  const hours = { start: clock.now().toISOString().slice(11, 16), end: until.toISOString().slice(11, 16) }
  expect((await settings({ quiet_hours: { ...hours, fallback_timezone: 'UTC' } })).status).toBe(200)
  const { id } = await toOne({ options: { ttl: 3_700 } })
  const short = await toOne({ options: { ttl: 3_500 } })
  await runEngine(engine)
  expect(sender.calls).toEqual([])
  expect(await deliveriesOf(app.db, appId, id)).toMatchObject([{ state: 'pending', reason: 'quiet_hours' }])
  // It would wait for nothing.
  expect(await tally(app.db, appId, short.id)).toEqual({ 'expired quiet_hours': 1 })
  expect(await messageRow(app.db, appId, short.id)).toMatchObject({ state: 'done' })
  clock.advance({ hours: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('a frequency cap lets so many messages through, whatever the number of devices, and no more at the same time', async () => {
  expect((await settings({ frequency_caps: [{ channel: 'push', count: 2, window: 1, unit: 'hours' }] })).status).toBe(
    200,
  )
  const [phone, tablet] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  await app.db.query(
    sql`update subscriptions set user_id = ${phone.userId} where app_id = ${appId} and id = ${tablet.id}`,
  )
  const ids: string[] = []
  for (let i = 0; i < 5; i++)
    ids.push(await aMessage(engine, appId, { lane: i % 2 ? 'direct' : 'bulk', audience: only(phone.id, tablet.id) }))
  const free = await aMessage(engine, appId, { audience: only(phone.id), options: { frequencyCap: false } })
  await Promise.all([runEngine(engine), runEngine(engine), runEngine(engine)])
  const counts = await Promise.all(ids.map((id) => tally(app.db, appId, id)))
  expect(counts.filter((it) => it.sent === 2)).toHaveLength(2)
  expect(counts.filter((it) => it['skipped frequency_cap'] === 2)).toHaveLength(3)
  expect(await tally(app.db, appId, free)).toEqual({ sent: 1 })
  // What was refused did not reach anybody, and does not count.
  clock.advance({ hours: 1 })
  sender.script(phone.token, { kind: 'failed', reason: 'too large' })
  for (let i = 0; i < 3; i++) {
    const id = await aMessage(engine, appId, { lane: 'direct', audience: only(phone.id) })
    await runEngine(engine)
    expect(await tally(app.db, appId, id)).toEqual(i === 0 ? { 'failed too large': 1 } : { sent: 1 })
  }
})

test('the application limit is reached to the message; the rest waits, and refused ones are given back', async () => {
  const people = await recipients(engine, appId, 3)
  authorized = { authorization: `Key ${organizationKey}` }
  expect((await settings({ limit_factor: 2 })).status).toBe(200)
  sender.script(people[0]?.token as string, { kind: 'failed', reason: 'too large' })
  for (let i = 0; i < 2; i++) await aMessage(engine, appId, {})
  await runEngine(engine)
  // Six may be sent within a quarter of an hour; five were, because one was refused.
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, pending: 2 })
  clock.advance({ minutes: 15 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, pending: 2 })
  clock.advance({ seconds: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 3 })
})

test('while sending is paused nothing is sent; it goes on when it is resumed', async () => {
  await app.request(`/apps/${appId}/sending/pause`, { method: 'POST', body: {}, headers: authorized })
  const kept = await toOne()
  const late = await toOne({ options: { ttl: 60 } })
  await runEngine(engine)
  clock.advance({ minutes: 6 })
  await runEngine(engine)
  expect(sender.calls).toEqual([])
  expect(await tally(app.db, appId, late.id)).toEqual({ expired: 1 })
  await app.request(`/apps/${appId}/sending/resume`, { method: 'POST', body: {}, headers: authorized })
  await runEngine(engine)
  expect(await tally(app.db, appId, kept.id)).toEqual({ sent: 1 })
})

/** When each of them was sent, in seconds, over so many minutes in steps of two seconds. */
async function watchSends(minutes: number): Promise<number[]> {
  const began = clock.now().getTime()
  const times: number[] = []
  for (let step = 0; step < minutes * 30; step++) {
    const before = sender.calls.length
    await runEngine(engine)
    times.push(...Array(sender.calls.length - before).fill((clock.now().getTime() - began) / 1_000))
    clock.advance({ seconds: 2 })
  }
  return times
}

const mostInAMinute = (times: number[]) =>
  Math.max(...times.map((from) => times.filter((time) => time >= from && time < from + 60).length))

test('a throttle holds also for what waited while sending was paused', async () => {
  await recipients(engine, appId, 24)
  const id = await aMessage(engine, appId, { options: { throttlePerMinute: 6 } })
  await runEngine(engine)
  expect(sender.calls).toHaveLength(1)
  await app.request(`/apps/${appId}/sending/pause`, { method: 'POST', body: {}, headers: authorized })
  clock.advance({ seconds: 125 })
  await runEngine(engine)
  await app.request(`/apps/${appId}/sending/resume`, { method: 'POST', body: {}, headers: authorized })
  const times = await watchSends(5)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 24 })
  expect(mostInAMinute(times)).toBeLessThanOrEqual(7)
})

test('a throttle holds also for what waited for the end of quiet hours', async () => {
  await recipients(engine, appId, 12)
  const at = (ms: number) => new Date(clock.now().getTime() + ms).toISOString().slice(11, 16)
  const hours = { start: at(0), end: at(3_600_000), fallback_timezone: 'UTC' }
  expect((await settings({ quiet_hours: hours })).status).toBe(200)
  const id = await aMessage(engine, appId, { options: { throttlePerMinute: 6 } })
  await watchSends(3)
  expect(await deliveriesOf(app.db, appId, id)).toMatchObject(Array(12).fill({ reason: 'quiet_hours' }))
  clock.advance({ minutes: 57 })
  const times = await watchSends(3)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 12 })
  expect(mostInAMinute(times)).toBeLessThanOrEqual(7)
})

test('a throttle of the app holds for each message that does not lift it', async () => {
  expect((await settings({ throttle_per_minute: 6 })).status).toBe(200)
  await recipients(engine, appId, 5)
  const slow = await aMessage(engine, appId, {})
  const free = await aMessage(engine, appId, { options: { throttlePerMinute: 0 } })
  await runEngine(engine)
  expect(await tally(app.db, appId, slow)).toEqual({ sent: 1, pending: 4 })
  expect(await tally(app.db, appId, free)).toEqual({ sent: 5 })
  await watchSends(1)
  expect(await tally(app.db, appId, slow)).toEqual({ sent: 5 })
})

test('a server that is slower than the throttle is not held up by it', async () => {
  await recipients(engine, appId, 30)
  const id = await aMessage(engine, appId, { options: { throttlePerMinute: 600 } })
  await app.request(`/apps/${appId}/sending/pause`, { method: 'POST', body: {}, headers: authorized })
  await runEngine(engine)
  clock.advance({ minutes: 10 })
  await app.request(`/apps/${appId}/sending/resume`, { method: 'POST', body: {}, headers: authorized })
  const times = await watchSends(1)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 30 })
  expect(Math.max(...times)).toBeLessThanOrEqual(4)
})

test('while the whole server is paused nothing is sent; every app goes on at once when it is resumed', async () => {
  const control = { db: app.db, now: clock.now }
  await pauseServer(control)
  const { id } = await toOne()
  const other = (await app.anotherTenant()).id
  const [to] = (await recipients(engine, other, 1)) as [Recipient]
  const theirs = await aMessage(engine, other, { audience: only(to.id) })
  await runEngine(engine)
  expect(sender.calls).toEqual([])
  await resumeServer(control)
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  expect(await tally(app.db, other, theirs)).toEqual({ sent: 1 })
})

test('each is told in their own language and with their own words; who cannot be rendered fails alone', async () => {
  const contents = { en: 'Hi {{ name | default: "you" }}', fr: 'Salut {{ name }}' }
  const [anna] = (await recipients(engine, appId, 1, { tags: { name: 'Anna' }, language: 'fr-CA' })) as [Recipient]
  const [bob] = (await recipients(engine, appId, 1, { tags: { name: 'Bob' } })) as [Recipient]
  await aMessage(engine, appId, { content: { contents, url: 'https://example.com/{{ name }}' } })
  await runEngine(engine)
  const said = sender.calls.map(({ outgoing }) => [outgoing.token, outgoing.kind === 'push' && outgoing.content.body])
  expect(new Map(said as [string, string][])).toEqual(
    new Map([
      [anna.token, 'Salut Anna'],
      [bob.token, 'Hi Bob'],
    ]),
  )
  const poison = { contents: { en: '{% for i in (1..100000000) %}{{ i }}{% endfor %}{{ name }}' } }
  await tellMeOf('failed')
  const id = await aMessage(engine, appId, { lane: 'direct', audience: only(bob.id), content: poison })
  const fine = await aMessage(engine, appId, { lane: 'direct', audience: only(bob.id) })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ 'failed render_failed': 1 })
  expect(await tally(app.db, appId, fine)).toEqual({ sent: 1 })
  expect(await told()).toEqual([{ kind: 'failed', messageId: id, subscriptionId: bob.id, reason: 'render_failed' }])
})

test('those who get the same share one content', async () => {
  await recipients(engine, appId, 30)
  await aMessage(engine, appId, { content: { contents: { en: 'Bells' }, headings: { en: 'Hear' } } })
  await runEngine(engine)
  const contents = sender.calls.map(({ outgoing }) => outgoing.content)
  // Once for each batch of a line.
  expect(new Set(contents).size).toBeLessThanOrEqual(4)
  expect(contents[0]).toMatchObject({ title: 'Hear', body: 'Bells', priority: 10 })
})
