import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  aMessage,
  anEngine,
  anEngineWorker,
  cancel,
  deliveriesOf,
  type FakeSender,
  fakeSender,
  messageRow,
  only,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../../test/engine.ts'
import { OPERATOR } from '../../apps/audit/actor.ts'
import type { ChannelOutcome } from '../../channels/channel.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import type { Worker } from '../../queue/work.ts'
import { sql } from '../../storage/sql.ts'
import { auditCounts } from '../counts/audit.ts'
import { maintainDeliveryMonths } from '../expand/months.ts'
import { completeMessagesAcrossApps } from '../settle/complete-messages.ts'
import { deleteExpiredMessages } from '../settle/delete-expired.ts'
import { closeUnknown, listUnknown, resendUnknown } from '../settle/unknowns.ts'
import type { Engine } from './types.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let key: string
let organizationKey: string

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
  ;({ key, organizationKey } = stage.tenant)
})

/** Asks for what it is never answered: as good as dead, and still alive. */
function frozen() {
  const asked: ((outcome: ChannelOutcome) => void)[] = []
  sender.otherwise = () => new Promise((resolve) => asked.push(resolve))
  const thaw = (outcome: ChannelOutcome = { kind: 'sent' }) => {
    for (const answer of asked.splice(0)) answer(outcome)
  }
  return { asked, thaw }
}

const quick = { heartbeatMs: 600_000, sweepMs: 600_000, finishMs: 10, unwindMs: 10 }

/** The dead do not learn that their database is closed; others may use this process by then. */
const runAndDie = (worker: Worker) => void worker.runDue().catch(() => {})

/** A worker that has begun to send and will not come back to it by itself. */
async function dieWhileSending(count: number) {
  const ice = frozen()
  const worker = anEngineWorker(engine, { timing: quick, log: createLog('silent') })
  runAndDie(worker)
  await until(() => ice.asked.length >= count)
  return { worker, ...ice }
}

async function until(isSo: () => boolean | Promise<boolean>) {
  for (let i = 0; !(await isSo()); i++) {
    if (i > 3_000) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Another process, after the lease of the first has run out. */
async function another() {
  clock.advanceLease({ seconds: 31 })
  const rescuer = fakeSender()
  const engine = anEngine({ db: app.db, clock, sender: rescuer })
  await anEngineWorker(engine, { log: createLog('silent') }).runDue()
  return rescuer
}

test('what a dead worker was sending is unknown, and nobody sends it again', async () => {
  const [one] = await recipients(engine, appId, 1)
  const id = await aMessage(engine, appId, { lane: 'direct', audience: only(one?.id as string) })
  await dieWhileSending(1)
  expect(await tally(app.db, appId, id)).toEqual({ sending: 1 })
  expect((await another()).calls).toEqual([])
  expect(await tally(app.db, appId, id)).toEqual({ 'unknown interrupted': 1 })
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' })
})

describe('what is unknown is told once for a message, with how many', () => {
  const mail = { email_subject: 'Bells', email_body: '<p>Ring</p>' }
  const notices = () =>
    app.db.query(sql`
      select kind, detail from notices where app_id = ${appId} and administrator_id is null and kind = 'message.unknown'`)
  const events = () =>
    app.db.query(sql`
      select kind, message_id, subscription_id, count from delivery_events where app_id = ${appId} order by at`)

  /** A receiver of these events, and a mail that a worker dies over. */
  async function unknownMail(count: number) {
    const created = await app.request(`/apps/${appId}/event_webhooks`, {
      body: { url: 'https://hook.example/events', kinds: ['message.unknown'] },
      headers: { authorization: `Key ${organizationKey}` },
    })
    expect(created.status).toBe(201)
    await recipients(engine, appId, count, { type: 'Email' })
    const id = await aMessage(engine, appId, { channel: 'email', content: mail })
    await dieWhileSending(count)
    await another()
    expect(await tally(app.db, appId, id)).toEqual({ 'unknown interrupted': count })
    return id
  }

  test('to the administrators and to event webhooks', async () => {
    const id = await unknownMail(8)
    expect(await notices()).toEqual([])
    clock.advance({ minutes: 5 })
    await another()
    const resend = `POST /apps/${appId}/messages/${id}/unknowns/resend`
    const detail = { message_id: id, message_name: null, channel: 'email', count: 8, resend }
    expect(await notices()).toEqual([{ kind: 'message.unknown', detail }])
    expect(await events()).toEqual([{ kind: 'message.unknown', messageId: id, subscriptionId: null, count: 8 }])
    clock.advance({ hours: 1 })
    await another()
    expect([(await notices()).length, (await events()).length]).toEqual([1, 1])
  })

  test('the call that it names sends them again; what is unknown after that is told again', async () => {
    const id = await unknownMail(3)
    clock.advance({ minutes: 5 })
    await another()
    const [, path = ''] = `POST /apps/${appId}/messages/${id}/unknowns/resend`.split(' ')
    const answer = await app.request(path, { body: {}, headers: { authorization: `Key ${key}` } })
    expect(answer.status).toBe(200)
    const rescuer = fakeSender()
    rescuer.otherwise = () => ({ kind: 'unknown', reason: 'no answer' })
    await runEngine(anEngine({ db: app.db, clock, sender: rescuer }))
    expect(rescuer.calls).toHaveLength(3)
    clock.advance({ minutes: 5 })
    await another()
    expect((await notices()).length).toBe(2)
  })

  test('and not at all where it was found out in time what came of them', async () => {
    const [one] = await recipients(engine, appId, 1)
    const id = await aMessage(engine, appId, { lane: 'direct', audience: only(one?.id as string) })
    const { thaw } = await dieWhileSending(1)
    await another()
    thaw()
    await until(async () => (await tally(app.db, appId, id)).sent === 1)
    clock.advance({ minutes: 5 })
    await another()
    expect(await notices()).toEqual([])
  })
})

test('a line goes on, however often its workers died while they sent', async () => {
  const [one] = await recipients(engine, appId, 1)
  const ids: string[] = []
  for (let n = 0; n < 6; n++)
    ids.push(await aMessage(engine, appId, { lane: 'direct', audience: only(one?.id as string) }))
  for (let deaths = 0; deaths < 4; deaths++) {
    const frozen = fakeSender()
    let isAsked = false
    frozen.otherwise = () => {
      isAsked = true
      return new Promise(() => {})
    }
    const dying = anEngine({ db: app.db, clock, sender: frozen, maxInFlight: 1 })
    runAndDie(anEngineWorker(dying, { timing: quick, log: createLog('silent') }))
    await until(() => isAsked)
    clock.advanceLease({ seconds: 31 })
  }
  await another()
  const tallies = await Promise.all(ids.map((id) => tally(app.db, appId, id)))
  expect(tallies.filter((it) => it['unknown interrupted'] === 1)).toHaveLength(4)
  expect(tallies.filter((it) => it.sent === 1)).toHaveLength(2)
})

test('a worker that was thought dead may still tell what came of it', async () => {
  const [one] = await recipients(engine, appId, 1)
  const id = await aMessage(engine, appId, { lane: 'direct', audience: only(one?.id as string) })
  const { thaw } = await dieWhileSending(1)
  await another()
  thaw()
  await until(async () => (await tally(app.db, appId, id)).sent === 1)
})

test('a message is not done when such a worker tells that a delivery of it was refused', async () => {
  const [one] = await recipients(engine, appId, 1)
  const id = await aMessage(engine, appId, { lane: 'direct', audience: only(one?.id as string) })
  const { thaw, worker } = await dieWhileSending(1)
  await another()
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' })
  thaw({ kind: 'retry', reason: 'busy' })
  await until(async () => (await tally(app.db, appId, id)).pending === 1)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'sending', completedAt: null })
  await worker.stop()
  sender.otherwise = () => ({ kind: 'sent' })
  clock.advance({ minutes: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('who asks for it at least once is sent it again', async () => {
  const [one] = await recipients(engine, appId, 1)
  const options = { atLeastOnce: true }
  const id = await aMessage(engine, appId, { lane: 'direct', audience: only(one?.id as string), options })
  await dieWhileSending(1)
  expect((await another()).calls).toHaveLength(1)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('no more is under way at once than was said, so that no more is unknown after a crash', async () => {
  engine = anEngine({ db: app.db, clock, sender, maxInFlight: 20 })
  await recipients(engine, appId, 100)
  const id = await aMessage(engine, appId, {})
  await dieWhileSending(15)
  await new Promise((resolve) => setTimeout(resolve, 50))
  // A quarter is kept for direct messages.
  expect(await tally(app.db, appId, id)).toEqual({ sending: 15, pending: 85 })
  const rescuer = await another()
  expect(await tally(app.db, appId, id)).toEqual({ 'unknown interrupted': 15, sent: 85 })
  expect(rescuer.calls).toHaveLength(85)
})

test('a server that is told to stop ends what it has begun, begins nothing, and leaves nothing unknown', async () => {
  engine = anEngine({ db: app.db, clock, sender, maxInFlight: 20 })
  await recipients(engine, appId, 100)
  const id = await aMessage(engine, appId, {})
  const ice = frozen()
  const worker = anEngineWorker(engine, { log: createLog('silent'), timing: { sweepMs: 20 } })
  worker.start()
  await until(() => ice.asked.length === 15)
  const stopped = worker.stop()
  ice.thaw()
  await stopped
  expect(await tally(app.db, appId, id)).toEqual({ sent: 15, pending: 85 })
  sender.otherwise = () => ({ kind: 'sent' })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 100 })
  expect(sender.calls).toHaveLength(100)
})

test('two workers on one database send each message once', async () => {
  const people = await recipients(engine, appId, 1_000)
  const id = await aMessage(engine, appId, {})
  const direct = await aMessage(engine, appId, { lane: 'direct', audience: only(people[0]?.id as string) })
  const other = anEngine({ db: app.db, clock, sender })
  await Promise.all([runEngine(engine), runEngine(other), runEngine(engine)])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1_000 })
  expect(await tally(app.db, appId, direct)).toEqual({ sent: 1 })
  expect(sender.calls).toHaveLength(1_001)
})

describe('a canceled message', () => {
  test('that was scheduled reaches nobody', async () => {
    await recipients(engine, appId, 3)
    const id = await aMessage(engine, appId, { sendAfter: new Date(clock.now().getTime() + 60_000) })
    await cancel(engine, appId, id)
    clock.advance({ minutes: 2 })
    await runEngine(engine)
    expect(sender.calls).toEqual([])
    expect(await tally(app.db, appId, id)).toEqual({})
  })

  test('sends what it has begun, and closes the rest; what is refused after that is not tried again', async () => {
    engine = anEngine({ db: app.db, clock, sender, maxInFlight: 20 })
    await recipients(engine, appId, 100)
    const id = await aMessage(engine, appId, {})
    const answers: ((outcome: ChannelOutcome) => void)[] = []
    sender.otherwise = () => new Promise((resolve) => answers.push(resolve))
    const running = anEngineWorker(engine).runDue()
    await until(() => answers.length === 15)
    await cancel(engine, appId, id)
    await anEngineWorker(anEngine({ db: app.db, clock, sender: fakeSender() })).runDue()
    expect(await tally(app.db, appId, id)).toEqual({ sending: 15, canceled: 85 })
    answers.forEach((answer, i) => void answer(i < 5 ? { kind: 'sent' } : { kind: 'retry', reason: 'busy' }))
    await running
    expect(await tally(app.db, appId, id)).toEqual({ sent: 5, canceled: 85, 'canceled busy': 10 })
    clock.advance({ days: 1 })
    await runEngine(engine)
    expect(sender.calls).toHaveLength(15)
  })

  test('stops its expansion between two ranges', async () => {
    await recipients(engine, appId, 10_001)
    const id = await aMessage(engine, appId, {})
    let canceled: Promise<unknown> | undefined
    // The first delivery of the first range cancels it.
    sender.otherwise = async () => {
      canceled ??= cancel(engine, appId, id)
      await canceled
      return { kind: 'sent' }
    }
    await Promise.all([runEngine(engine), runEngine(engine)])
    await runEngine(engine)
    const { state, expandedCount } = await messageRow(app.db, appId, id)
    expect(state).toBe('canceled')
    const { sent = 0, canceled: closed = 0 } = await tally(app.db, appId, id)
    expect(sent + closed).toBe(expandedCount)
    expect(sent).toBeLessThanOrEqual(500)
  })
})

describe('unknown deliveries', () => {
  async function someUnknown(count: number) {
    const people = await recipients(engine, appId, count)
    sender.otherwise = () => ({ kind: 'unknown', reason: 'no answer' })
    const id = await aMessage(engine, appId, {})
    await runEngine(engine)
    sender.otherwise = () => ({ kind: 'sent' })
    expect(await tally(app.db, appId, id)).toEqual({ 'unknown no answer': count })
    return { id, people }
  }

  test('are listed, sent again, and closed', async () => {
    const { id, people } = await someUnknown(5)
    const listed = await listUnknown(engine, appId, id, 3)
    expect(listed).toHaveLength(3)
    const rest = await listUnknown(engine, appId, id, 10, listed[2])
    expect([...listed, ...rest].map((it) => it.subscriptionId)).toEqual(people.map((it) => it.id).sort())
    const some = { messageId: id, subscriptionIds: [people[0]?.id as string, people[1]?.id as string] }
    expect(await resendUnknown(engine, appId, some, OPERATOR)).toBe(2)
    expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'sending', completedAt: null })
    await runEngine(engine)
    expect(await closeUnknown(engine, appId, { messageId: id }, OPERATOR)).toBe(3)
    expect(await tally(app.db, appId, id)).toEqual({ sent: 2, 'failed closed': 3 })
    expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' })
    const audit = await app.db.query<{ action: string }>(
      sql`select action from audit_log where app_id = ${appId} and target_type = 'message' order by at, action`,
    )
    expect(audit.map(({ action }) => action)).toEqual(['deliveries.close', 'deliveries.resend'])
  })
})

test('a message whose last delivery was recorded by somebody who died is called done by the schedule', async () => {
  await recipients(engine, appId, 1)
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  await app.db.query(
    sql`update messages set state = 'sending', completed_at = null where app_id = ${appId} and id = ${id}`,
  )
  await completeMessagesAcrossApps(engine)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' })
})

test('messages are kept for as long as the retention says, and their deliveries by the month', async () => {
  await recipients(engine, appId, 1)
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  const later = (days: number) => new Date(clock.now().getTime() + days * 86_400_000)
  await deleteExpiredMessages(app.db, later(99), 100)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  await deleteExpiredMessages(app.db, later(101), 100)
  expect(await messageRow(app.db, appId, id)).toBe(undefined)
  expect(await deliveriesOf(app.db, appId, id)).toHaveLength(1)
  await maintainDeliveryMonths(app.db, later(140), 100)
  expect(await deliveriesOf(app.db, appId, id)).toHaveLength(0)
})

test('an app may keep its messages for less time than the server does, and not for more', async () => {
  const tenant = await app.anotherTenant()
  await recipients(engine, tenant.id, 1)
  const id = await aMessage(engine, tenant.id, {})
  await runEngine(engine)
  const later = (days: number) => new Date(clock.now().getTime() + days * 86_400_000)
  const keepFor = (retention_days: number) =>
    app.request(`/apps/${tenant.id}/delivery_settings`, {
      method: 'PUT',
      headers: { authorization: `Key ${tenant.key}` },
      body: { retention_days },
    })
  await keepFor(300)
  await deleteExpiredMessages(app.db, later(9), 100)
  expect(await messageRow(app.db, tenant.id, id)).toMatchObject({ state: 'done' })
  await keepFor(7)
  await deleteExpiredMessages(app.db, later(9), 100)
  expect(await messageRow(app.db, tenant.id, id)).toBe(undefined)
})

test('the nightly audit finds counts that differ', async () => {
  await recipients(engine, appId, 2)
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  const logged: string[] = []
  const log = createLog('error', { write: (line: string) => void logged.push(line) })
  expect(await auditCounts({ ...engine, log })).toMatchObject({ wrong: 0 })
  await app.db.query(sql`update deliveries set state = 'failed' where app_id = ${appId} and message_id = ${id}`)
  expect(await auditCounts({ ...engine, log })).toMatchObject({ wrong: 1 })
  expect(logged.join()).toContain(id)
})
