import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  anEngine,
  anEngineWorker,
  type FakeSender,
  fakeSender,
  runEngine,
  setStage,
  tally,
  testReferences,
} from '../../../test/engine.ts'
import { emailCounts, factsBeside, mailsOf } from '../../../test/mail.ts'
import { anEmail } from '../../../test/users.ts'
import { createReferences, type EmailReference } from '../../email/reference.ts'
import { insertWebhook } from '../../feedback/webhook-store.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import { createMerger } from '../../storage/merge.ts'
import { sql } from '../../storage/sql.ts'
import type { Engine } from '../engine/types.ts'
import { createRecordEmailFeedback, type EmailFeedback, type RecordEmailFeedback } from './record-feedback.ts'
import { findEmailDelivery } from './store.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let authorized: Record<string, string>
let note: RecordEmailFeedback

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
  authorized = { authorization: `Key ${stage.tenant.key}` }
  note = createRecordEmailFeedback({ db: app.db, clock, merger: createMerger({ slots: 2 }) })
})

const read = (text: string) => testReferences.read(text, 'report') as EmailReference

/** Sent to so many; the message and their references. */
async function mailed(count = 1, fields: object = {}) {
  const addresses = Array.from({ length: count }, anEmail)
  const { body } = await app.request('/notifications', {
    body: { app_id: appId, email_subject: 'Bells', email_body: '<p>Ring</p>', email_to: addresses, ...fields },
    headers: authorized,
  })
  await runEngine(engine)
  const mails = mailsOf(sender).filter(({ headers }) => headers['X-Message-Id'] === body.id)
  return { id: body.id as string, addresses, mails, references: mails.map(({ reference }) => read(reference)) }
}

const at = () => clock.now()
const opened = (reference: EmailReference, isMachine = false): EmailFeedback => ({
  kind: 'opened',
  reference,
  isMachine,
  at: at(),
})
const clicked = (reference: EmailReference, isMachine = false): EmailFeedback => ({
  kind: 'clicked',
  reference,
  isMachine,
  at: at(),
})
const said = (reference: EmailReference, kind: 'delivered' | 'complained' | 'unsubscribed'): EmailFeedback => ({
  kind,
  reference,
  at: at(),
})
const bounced = (reference: EmailReference, of: 'hard' | 'soft' | 'transient' = 'hard'): EmailFeedback => ({
  kind: 'bounced',
  class: of,
  reference,
  at: at(),
})

test('opens and clicks count every time, and once as the first', async () => {
  const { id, references, mails } = await mailed()
  const [reference] = references as [EmailReference]
  expect(await note(appId, opened(reference))).toMatchObject({ messageId: id, isNews: true })
  expect(await note(appId, opened(reference, true))).toMatchObject({ isNews: false })
  expect(await note(appId, clicked(reference))).toMatchObject({ isNews: true })
  expect(await note(appId, clicked(reference, true))).toMatchObject({ isNews: false })
  expect(await note(appId, clicked(reference))).toMatchObject({ isNews: false })
  expect(await factsBeside(app.db, appId, id)).toEqual({
    delivered: 1,
    opened: 1,
    opens: 2,
    clicked: 1,
    clicks: 3,
    machine_opens: 1,
    machine_clicks: 1,
  })
  expect(await emailCounts(app.db, appId)).toEqual({
    'example.com other': { sent: 1, delivered: 1, opened: 2, uniqueOpened: 1, clicked: 3, uniqueClicked: 1 },
  })
  const { body } = await app.request(`/notifications/${id}?app_id=${appId}`, { headers: authorized })
  expect(body.platform_delivery_stats.email).toMatchObject({
    opened: 2,
    unique_opens: 1,
    clicks: 3,
    unique_clicks: 1,
    machine_opens: 1,
    machine_clicks: 1,
  })
  expect(body.delivery).toEqual({ state: 'done', states: { sent: 1 }, reasons: {} })
  expect(await findEmailDelivery(app.db, read(mails[0]?.reference ?? ''))).toMatchObject({
    messageId: id,
    state: 'sent',
  })
})

test('what can be so once is noted once, and says whom it is about', async () => {
  const { id, references, addresses } = await mailed()
  const [reference] = references as [EmailReference]
  for (const isNews of [true, false]) {
    expect(await note(appId, bounced(reference))).toMatchObject({ address: addresses[0], isNews })
    expect(await note(appId, said(reference, 'complained'))).toMatchObject({ address: addresses[0], isNews })
    expect(await note(appId, said(reference, 'unsubscribed'))).toMatchObject({ address: addresses[0], isNews })
  }
  // The answer said so already.
  expect(await note(appId, said(reference, 'delivered'))).toMatchObject({ address: null, isNews: false })
  expect(await factsBeside(app.db, appId, id)).toEqual({ delivered: 1, bounced: 1, complained: 1, unsubscribed: 1 })
  expect(await emailCounts(app.db, appId)).toEqual({
    'example.com other': { sent: 1, delivered: 1, bounced: 1, complained: 1 },
  })
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('a server that will try again has not refused anything', async () => {
  const { id, references } = await mailed()
  expect(await note(appId, bounced(references[0] as EmailReference, 'transient'))).toMatchObject({ isNews: false })
  expect(await factsBeside(app.db, appId, id)).toEqual({ delivered: 1 })
})

test('somebody whose subscription was deleted has no address any more', async () => {
  const { references } = await mailed()
  await app.db.query(sql`delete from subscriptions where app_id = ${appId}`)
  expect(await note(appId, bounced(references[0] as EmailReference))).toMatchObject({ address: null, isNews: true })
})

test('a reference that names nothing changes nothing', async () => {
  const { id, references } = await mailed()
  const [reference] = references as [EmailReference]
  const stranger = { ...reference, id: 'aaaaaaaaaaaaa' }
  const other = { ...reference, month: new Date(Date.UTC(2029, 11)) }
  expect(await note(appId, opened(stranger))).toBeUndefined()
  expect(await note(appId, opened(other))).toBeUndefined()
  expect(await note(newId(), opened(reference))).toBeUndefined()
  expect(createReferences('another secret').read('a'.repeat(55), 'report')).toBeUndefined()
  expect(await factsBeside(app.db, appId, id)).toEqual({ delivered: 1 })
})

test('a report that comes before the answer is not counted again by it', async () => {
  sender.otherwise = async ({ outgoing }) => {
    if (outgoing.kind !== 'email') return { kind: 'sent' }
    const reference = read(outgoing.reference)
    await note(appId, said(reference, 'delivered'))
    if (outgoing.token.startsWith('bounce')) {
      await note(appId, bounced(reference))
      return { kind: 'gone', reason: 'hard_bounce' }
    }
    return { kind: 'sent' }
  }
  const { id } = await mailed(2, { email_to: [anEmail(), `bounce-${anEmail()}`] })
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, 'failed gone: hard_bounce': 1 })
  expect(await factsBeside(app.db, appId, id)).toEqual({ delivered: 2, bounced: 1 })
  expect(await emailCounts(app.db, appId)).toEqual({ 'example.com other': { sent: 2, delivered: 2, bounced: 1 } })
})

test('a mail that came back before its answer was written down had arrived by then', async () => {
  const cameBack = clock.now()
  sender.otherwise = async ({ outgoing }) => {
    if (outgoing.kind === 'email') await note(appId, bounced(read(outgoing.reference)))
    clock.advance({ seconds: 1 })
    return { kind: 'sent' }
  }
  const { id } = await mailed()
  const found = await app.db.query(sql`
    select d.state, d.delivered_at, d.bounced_at from deliveries d where d.app_id = ${appId} and d.message_id = ${id}`)
  expect(found).toEqual([{ state: 'sent', deliveredAt: cameBack, bouncedAt: cameBack }])
})

test('a mail came back no sooner than it arrived, also when who says so waited for its answer to be written down', async () => {
  const before = clock.now()
  clock.advance({ seconds: 1 })
  const arrived = clock.now()
  const { id, references } = await mailed()
  await note(appId, { ...bounced(references[0] as EmailReference), at: before })
  const found = await app.db.query(sql`
    select d.state, d.delivered_at, d.bounced_at from deliveries d where d.app_id = ${appId} and d.message_id = ${id}`)
  expect(found).toEqual([{ state: 'sent', deliveredAt: arrived, bouncedAt: arrived }])
})

test('of what nobody knew whether it arrived, any news says that it did', async () => {
  sender.otherwise = () => ({ kind: 'unknown', reason: 'no answer' })
  const { id, references } = await mailed(3)
  expect(await tally(app.db, appId, id)).toEqual({ 'unknown no answer': 3 })
  const [one, other, third] = references as [EmailReference, EmailReference, EmailReference]
  await note(appId, said(one, 'delivered'))
  await note(appId, bounced(other))
  await note(appId, bounced(third, 'transient'))
  await note(appId, opened(other))
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2, 'unknown no answer': 1 })
  expect(await emailCounts(app.db, appId)).toEqual({
    'example.com other': { sent: 2, delivered: 1, bounced: 1, opened: 1, uniqueOpened: 1 },
  })
})

test('a mail that a dead worker was sending is known by its name, before and after somebody took its line over', async () => {
  const asked = Promise.withResolvers<EmailReference>()
  sender.otherwise = ({ outgoing }) => {
    if (outgoing.kind === 'email') asked.resolve(read(outgoing.reference))
    return new Promise(() => {})
  }
  const { body } = await app.request('/notifications', {
    body: { app_id: appId, email_subject: 'Bells', email_body: '<p>Ring</p>', email_to: [anEmail()] },
    headers: authorized,
  })
  void anEngineWorker(engine, { timing: { heartbeatMs: 600_000 }, log: createLog('silent') })
    .runDue()
    .catch(() => {})
  const reference = await asked.promise
  expect(await note(appId, opened(reference))).toMatchObject({ messageId: body.id, isNews: true })
  clock.advanceLease({ seconds: 31 })
  await runEngine(anEngine({ db: app.db, clock, sender: fakeSender() }))
  expect(await tally(app.db, appId, body.id)).toEqual({ 'unknown interrupted': 1 })
  expect(await note(appId, said(reference, 'delivered'))).toMatchObject({ messageId: body.id, isNews: true })
  expect(await tally(app.db, appId, body.id)).toEqual({ sent: 1 })
  expect(await emailCounts(app.db, appId)).toEqual({
    'example.com other': { sent: 1, delivered: 1, opened: 1, uniqueOpened: 1 },
  })
})

test('tests are counted with their message, and nowhere else', async () => {
  const { addresses } = await mailed()
  await app.db.query(sql`update users set test_user_name = 'Ann' where app_id = ${appId}`)
  const before = await emailCounts(app.db, appId)
  const { id, references } = await mailed(1, { email_to: addresses, is_test: true })
  await note(appId, opened(references[0] as EmailReference))
  expect(await factsBeside(app.db, appId, id)).toMatchObject({ opened: 1, opens: 1 })
  expect(await emailCounts(app.db, appId)).toEqual(before)
})

test('events are told once', async () => {
  await insertWebhook(app.db, appId, {
    id: newId(),
    url: 'https://hook.example/',
    kinds: ['opened', 'clicked', 'bounced', 'complained', 'unsubscribed'],
    secret: '',
    createdAt: clock.now(),
    updatedAt: clock.now(),
  })
  const { references } = await mailed()
  const [reference] = references as [EmailReference]
  for (let i = 0; i < 2; i++)
    await Promise.all([
      note(appId, opened(reference)),
      note(appId, clicked(reference)),
      note(appId, bounced(reference, 'soft')),
      note(appId, said(reference, 'complained')),
      note(appId, said(reference, 'unsubscribed')),
    ])
  const told = await app.db.query<{ kind: string; reason: string | null }>(
    sql`select kind, reason from delivery_events where app_id = ${appId} order by kind`,
  )
  expect(told).toEqual([
    { kind: 'bounced', reason: 'soft' },
    { kind: 'clicked', reason: null },
    { kind: 'complained', reason: null },
    { kind: 'opened', reason: null },
    { kind: 'unsubscribed', reason: null },
  ])
})

test('any interleaving, repeated and at once, gives the counts of a plain model', async () => {
  const KINDS = ['opened', 'clicked', 'delivered', 'bounced', 'complained', 'unsubscribed'] as const
  const step = fc.record({
    who: fc.nat(3),
    kind: fc.constantFrom(...KINDS),
    isMachine: fc.boolean(),
    server: fc.nat(1),
  })
  /** Of all runs: they send from the same domain. */
  const metrics: Record<string, number> = {}
  const notes = [note, createRecordEmailFeedback({ db: app.db, clock, merger: createMerger({ slots: 2 }) })]
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { id, references } = await mailed(4)
      const newsOf = ({ who, kind, isMachine }: (typeof steps)[number]): EmailFeedback => {
        const reference = references[who] as EmailReference
        if (kind === 'opened') return opened(reference, isMachine)
        if (kind === 'clicked') return clicked(reference, isMachine)
        return kind === 'bounced' ? bounced(reference) : said(reference, kind)
      }
      await Promise.all(steps.map((it) => notes[it.server]?.(appId, newsOf(it))))
      const seen = (kind: string) => new Set(steps.filter((it) => it.kind === kind).map(({ who }) => who)).size
      const every = (kind: string, isMachine?: boolean) =>
        steps.filter((it) => it.kind === kind && (isMachine === undefined || it.isMachine === isMachine)).length
      const expected = {
        delivered: 4,
        opened: seen('opened'),
        opens: every('opened'),
        machine_opens: every('opened', true),
        clicked: seen('clicked'),
        clicks: every('clicked'),
        machine_clicks: every('clicked', true),
        bounced: seen('bounced'),
        complained: seen('complained'),
        unsubscribed: seen('unsubscribed'),
      }
      const present = (counts: Record<string, number>) =>
        Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
      expect(await factsBeside(app.db, appId, id)).toEqual(present(expected))
      for (const [name, count] of Object.entries({
        sent: 4,
        delivered: 4,
        opened: expected.opens,
        uniqueOpened: expected.opened,
        clicked: expected.clicks,
        uniqueClicked: expected.clicked,
        bounced: expected.bounced,
        complained: expected.complained,
      }))
        metrics[name] = (metrics[name] ?? 0) + count
      expect(await emailCounts(app.db, appId)).toEqual({ 'example.com other': present(metrics) })
    }),
    { numRuns: 15 },
  )
})
