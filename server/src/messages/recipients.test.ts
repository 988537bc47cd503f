import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../test/app.ts'
import {
  type FakeSender,
  messageRow,
  type Recipient,
  recipients,
  runEngine,
  setStage,
  tally,
  testReferences,
} from '../../test/engine.ts'
import { factsBeside, mailsOf } from '../../test/mail.ts'
import { add, anOpenMessage, runDeliveries } from '../../test/recipients.ts'
import { anEmailTemplate, anSms, aPush } from '../../test/templates.ts'
import { NOBODY } from '../../test/users.ts'
import type { EmailReference } from '../email/reference.ts'
import type { VirtualClock } from '../lib/clock.ts'
import { type AppId, newId } from '../lib/ids.ts'
import { createMerger } from '../storage/merge.ts'
import { sql } from '../storage/sql.ts'
import { createFindTemplate } from '../templates/find-template.ts'
import { createRecordEmailFeedback } from './email/record-feedback.ts'
import type { Engine } from './engine/types.ts'
import { recordReceipts } from './feedback/record-receipts.ts'
import { createRecordReport, type RecordReport } from './feedback/record-reports.ts'
import type { RecordRunActions, RunAction } from './feedback/run-actions.ts'
import type { Message } from './message.ts'
import { openMessage, prepareFromTemplate } from './recipients.ts'
import { listUnknown } from './settle/unknowns.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let headers: Record<string, string>

/** What whoever leads runs was told. */
let actions: RunAction[]
const recordRunActions: RecordRunActions = async (_db, _appId, told) => void actions.push(...told)
let note: RecordReport

setStage((stage) => {
  ;({ app, clock, sender, appId } = stage)
  engine = { ...stage.engine, recordRunActions }
  headers = { authorization: `Key ${stage.tenant.key}` }
  actions = []
  note = createRecordReport({ db: app.db, clock, merger: createMerger({ slots: 2 }), recordRunActions })
})

const prepare = (templateId: string) => {
  const findTemplate = createFindTemplate({ db: app.db, merger: createMerger({ slots: 2 }) })
  return prepareFromTemplate({ findTemplate, renderer: engine.renderer }, appId, templateId, clock.now())
}

const said = async (id: string) => {
  const [row] = await app.db.query<Message>(sql`
    select channel, kind, is_listed, lane, state, name, template_id, audience, content, email_html, options
    from messages where app_id = ${appId} and id = ${id}`)
  return row as Message
}

const MJML = '<mjml><mj-body><mj-section><mj-column><mj-text>Hi</mj-text></mj-column></mj-section></mj-body></mjml>'

describe('made from a template', () => {
  test.each<[string, object]>([
    [
      'push',
      aPush({ contents: { en: 'Hi {{ name }}' }, headings: { en: 'Bells' }, isIos: true, ttl: 60, priority: 5 }),
    ],
    ['email', anEmailTemplate({ email_body: MJML })],
    ['sms', anSms()],
  ])('%s says what a request with that template alone would send', async (channel, fields) => {
    const { body: template } = await app.request('/templates', { body: { app_id: appId, ...fields }, headers })
    const request = { app_id: appId, template_id: template.id, included_segments: ['Total Subscriptions'] }
    const { body: sent } = await app.request('/notifications', { body: request, headers })
    const prepared = await prepare(template.id)
    const until = new Date(clock.now().getTime() + 3_600_000)
    const id = await app.db.transaction((db) =>
      openMessage({ newId }, db, appId, prepared as never, { name: 'Welcome', lane: 'direct', until }, clock.now()),
    )
    const [own, other] = [await said(id), await said(sent.id)]
    const { content, emailHtml, options, templateId } = other
    expect(own).toEqual({
      ...{ channel, content, emailHtml, options, templateId },
      ...{ kind: 3, isListed: false, lane: 'direct', state: 'expanding', name: 'Welcome' },
      audience: { kind: 'recipients', until: until.toISOString() },
    })
  })

  test('that is gone is none, and none is open for longer than it can be', async () => {
    expect(await prepare(NOBODY)).toBeUndefined()
    const { body: template } = await app.request('/templates', { body: { app_id: appId, ...aPush() }, headers })
    const prepared = (await prepare(template.id)) as never
    const until = new Date(clock.now().getTime() + 3 * 86_400_000)
    const opening = { name: null, lane: 'bulk', until } as const
    await expect(openMessage({ newId }, app.db, appId, prepared, opening, clock.now())).rejects.toThrow(
      'at most two days',
    )
  })
})

test('is read by its id, stands in no list, and belongs to who made it', async () => {
  const [one] = (await recipients(engine, appId, 1)) as [Recipient]
  const id = await anOpenMessage(engine, appId)
  const path = `/notifications/${id}?app_id=${appId}`
  expect(await app.request(path, { headers })).toMatchObject({
    status: 200,
    body: { id, successful: 0, remaining: null },
  })
  await add(engine, appId, id, [one])
  await runEngine(engine)
  expect(await app.request(path, { headers })).toMatchObject({
    status: 200,
    body: { id, successful: 1, remaining: null, included_segments: null, include_aliases: null, canceled: false },
  })
  expect((await app.request(`/notifications?app_id=${appId}`, { headers })).body.total_count).toBe(0)
  expect((await app.request(path, { method: 'DELETE', headers })).status).toBe(404)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'expanding' })
})

test('is explained: who waits, who was sent it in which run, and who was never added', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  const id = await anOpenMessage(engine, appId)
  const explain = async ({ userId }: Recipient) =>
    (await app.request(`/apps/${appId}/messages/${id}/explain?onesignal_id=${userId}`, { headers })).body
  expect((await explain(one)).subscriptions).toMatchObject([{ absence: 'not_in_audience', matches_now: false }])
  await add(engine, appId, id, [one])
  expect((await explain(one)).subscriptions).toMatchObject([{ absence: null, delivery: { state: 'pending' } }])
  await add(engine, appId, id, [one])
  await runEngine(engine)
  const explained = await explain(one)
  expect(explained.explanation).toBe('It was sent to 1 subscription of this user.')
  expect(explained.subscriptions).toMatchObject([{ delivery: { state: 'sent' } }, { delivery: { state: 'sent' } }])
  expect((await explain(two)).subscriptions).toMatchObject([{ absence: 'not_in_audience', delivery: null }])
})

/** Sent in so many runs, the first one first. */
async function sentInRuns(count: number, fields: Parameters<typeof anOpenMessage>[2] = {}, one?: Recipient) {
  const [user] = one ? [one] : ((await recipients(engine, appId, 1)) as [Recipient])
  const id = await anOpenMessage(engine, appId, fields)
  const runs = Array.from({ length: count }, () => newId())
  for (const runId of runs) {
    clock.advance({ minutes: 1 })
    await add(engine, appId, id, [{ ...user, runId }])
    await runEngine(engine)
  }
  return { id, user, runs }
}

describe('what a device tells', () => {
  test('is of the newest run of which it is not known yet', async () => {
    const { id, user, runs } = await sentInRuns(3)
    const tell = (kind: 'received' | 'clicked') => note(appId, { kind, messageId: id, subscriptionId: user.id })
    const known = async (name: 'receivedAt' | 'clickedAt') =>
      (await runDeliveries(app.db, appId, id)).filter((it) => it[name] !== null).map(({ runId }) => runId)
    await tell('received')
    await tell('clicked')
    expect([await known('receivedAt'), await known('clickedAt')]).toEqual([[runs[2]], [runs[2]]])
    await tell('received')
    expect(await known('receivedAt')).toEqual([runs[1], runs[2]])
    await Promise.all([tell('received'), tell('received'), tell('clicked')])
    expect([await known('receivedAt'), await known('clickedAt')]).toEqual([runs, [runs[1], runs[2]]])
    expect(await factsBeside(app.db, appId, id)).toEqual({ received: 3, clicked: 2, clicks: 2 })
    await Promise.all([tell('clicked'), tell('clicked'), tell('clicked')])
    expect(await factsBeside(app.db, appId, id)).toEqual({ received: 3, clicked: 3, clicks: 5 })
  })

  test('is not of a run in which it was never tried', async () => {
    const { id, user, runs } = await sentInRuns(1)
    await app.db.query(sql`
      insert into deliveries (app_id, expand_at, message_id, subscription_id, run_id, user_id, platform, line, state, due_at,
        expires_at)
      select app_id, expand_at, message_id, subscription_id, ${newId()}::uuid, user_id, platform, line, 'pending',
        due_at + interval '1 hour', expires_at
      from deliveries where app_id = ${appId} and message_id = ${id}`)
    await note(appId, { kind: 'clicked', messageId: id, subscriptionId: user.id })
    const clicked = (await runDeliveries(app.db, appId, id)).filter(({ clickedAt }) => clickedAt !== null)
    expect(clicked.map(({ runId }) => runId)).toEqual(runs)
  })
})

describe('whoever leads runs learns', () => {
  test('that a push was received or clicked, once each', async () => {
    const { id, user, runs } = await sentInRuns(1)
    const tell = (kind: 'received' | 'clicked') => note(appId, { kind, messageId: id, subscriptionId: user.id })
    const action = { userId: user.userId, runId: runs[0] }
    await tell('received')
    await tell('received')
    expect(actions).toEqual([action])
    await tell('clicked')
    expect(actions).toEqual([action, action])
  })

  test('that a text arrived, and not that it did not', async () => {
    const [user] = (await recipients(engine, appId, 1, { type: 'SMS' })) as [Recipient]
    let texts = 0
    sender.otherwise = () => ({ kind: 'sent', id: `text ${++texts}` })
    const content = { isSMS: true, contents: { en: 'Bells' } }
    const { runs } = await sentInRuns(2, { channel: 'sms', content }, user)
    const receive = (reference: string, state: 'delivered' | 'failed') =>
      recordReceipts(app.db, appId, [{ reference, state }], clock.now(), recordRunActions)
    await receive('text 2', 'failed')
    expect(actions).toEqual([])
    await receive('text 2', 'delivered')
    await receive('text 2', 'delivered')
    expect(actions).toEqual([{ userId: user.userId, runId: runs[1] }])
  })

  test('that a mail was delivered, opened and clicked, each in its own run', async () => {
    const [user] = (await recipients(engine, appId, 1, { type: 'Email' })) as [Recipient]
    await app.db.query(
      sql`update subscriptions set token = 'a@bell.example' where app_id = ${appId} and id = ${user.id}`,
    )
    const content = { isEmail: true, email_subject: 'Bells', email_body: '<p>Ring</p>' }
    const { id, runs } = await sentInRuns(2, { channel: 'email', content }, user)
    const [first, second] = runs.map((runId) => ({ userId: user.userId, runId }))
    expect(actions.splice(0)).toEqual([first, second])
    const noteEmail = createRecordEmailFeedback({
      db: app.db,
      clock,
      merger: createMerger({ slots: 2 }),
      recordRunActions,
    })
    const mail = mailsOf(sender)[0] as { reference: string }
    const reference = testReferences.read(mail.reference, 'report') as EmailReference
    await noteEmail(appId, { kind: 'opened', isMachine: false, reference, at: clock.now() })
    await noteEmail(appId, { kind: 'opened', isMachine: false, reference, at: clock.now() })
    await noteEmail(appId, { kind: 'clicked', isMachine: false, reference, at: clock.now() })
    await noteEmail(appId, { kind: 'complained', reference, at: clock.now() })
    await noteEmail(appId, { kind: 'unsubscribed', reference, at: clock.now() })
    expect(actions).toEqual([first, first])
    expect(await factsBeside(app.db, appId, id)).toMatchObject({ delivered: 2, opened: 1, clicked: 1 })
  })

  test('nothing of what is in no run', async () => {
    const [user] = (await recipients(engine, appId, 1)) as [Recipient]
    const request = { app_id: appId, contents: { en: 'Bells' }, include_subscription_ids: [user.id] }
    const { body } = await app.request('/notifications', { body: request, headers })
    await runEngine(engine)
    await note(appId, { kind: 'received', messageId: body.id, subscriptionId: user.id })
    expect(await factsBeside(app.db, appId, body.id)).toEqual({ received: 1 })
    expect(actions).toEqual([])
  })
})

test('Liquid sees what is known of the run, asked for once for all that go out together', async () => {
  const [user] = (await recipients(engine, appId, 1)) as [Recipient]
  const runs = [newId(), newId(), newId()].sort()
  const inRuns = runs.map((runId) => ({ ...user, runId }))
  const asked: string[][] = []
  engine.readRunData = async (_appId, runIds) => {
    asked.push([...runIds].sort())
    // The last one is gone.
    return new Map(runs.slice(0, 2).map((runId, n) => [runId, { name: 'Welcome', first_event: { properties: { n } } }]))
  }
  await add(engine, appId, await anOpenMessage(engine, appId), inRuns)
  await runEngine(engine)
  expect(asked).toEqual([])
  sender.calls.length = 0
  const content = { contents: { en: '{{ journey.name | default: "?" }} {{ journey.first_event.properties.n }}' } }
  await add(engine, appId, await anOpenMessage(engine, appId, { content }), inRuns)
  await runEngine(engine)
  const texts = sender.calls.map(({ outgoing }) => (outgoing.content as { body: string }).body)
  expect(texts.sort()).toEqual(['? ', 'Welcome 0', 'Welcome 1'])
  expect(asked).toEqual([runs])
})

test('unknown deliveries of several runs are listed each once, wherever a page ends', async () => {
  const { id } = await sentInRuns(3)
  await app.db.query(sql`
    update deliveries set state = 'unknown' where app_id = ${appId} and message_id = ${id}`)
  const first = await listUnknown(engine, appId, id, 2)
  const rest = await listUnknown(engine, appId, id, 2, first[1])
  expect(new Set([...first, ...rest].map(({ runId }) => runId)).size).toBe(3)
  const page = await app.request(`/apps/${appId}/messages/${id}/unknowns?limit=2`, { headers })
  const cursor = `cursor=${page.body.next_cursor}`
  const next = await app.request(`/apps/${appId}/messages/${id}/unknowns?limit=2&${cursor}`, { headers })
  expect([page.body.deliveries.length, next.body.deliveries.length, next.body.next_cursor]).toEqual([2, 1, null])
  expect((await app.request(`/apps/${appId}/messages/${id}/unknowns?cursor=x`, { headers })).status).toBe(400)
})

test('its deliveries are listed run by run, wherever a page ends', async () => {
  const { id } = await sentInRuns(2)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
  const pages: number[] = []
  for (let cursor = ''; ; ) {
    const { body } = await app.request(`/apps/${appId}/messages/${id}/deliveries?limit=1${cursor}`, { headers })
    pages.push(body.deliveries.length)
    if (body.next_cursor === null) break
    cursor = `&cursor=${body.next_cursor}`
  }
  expect(pages.filter((length) => length === 1)).toHaveLength(2)
})
