import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import { cancel, deliveriesOf, type FakeSender, recipients, runEngine, setStage, tally } from '../../../test/engine.ts'
import { mailsOf } from '../../../test/mail.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import type { Engine } from '../engine/types.ts'

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

const after = (hours: number) => new Date(clock.now().getTime() + hours * 3_600_000)
const stage = (from: number, to: number, quota: number) => ({
  start: after(from).toISOString(),
  end: after(to).toISOString(),
  quota,
})
async function warmUp(email_warm_up: object, fields: object = {}): Promise<string> {
  const { body } = await app.request('/notifications', {
    body: {
      ...{ app_id: appId, email_subject: 'Bells', email_body: '<p>Ring</p>', target_channel: 'email' },
      ...{ included_segments: ['Total Subscriptions'], kind: 'warmup', email_warm_up, ...fields },
    },
    headers: authorized,
  })
  expect(body.id).not.toBe('')
  return body.id
}
const view = async (id: string) =>
  (await app.request(`/notifications/${id}?app_id=${appId}`, { headers: authorized })).body
const mailboxes = (count: number) => recipients(engine, appId, count, { type: 'Email' })

test('recipients in the order of their ids fill the stages, each spread over its time; who is beyond gets none', async () => {
  const ids = (await mailboxes(10)).map(({ id }) => id).sort()
  const id = await warmUp({ stages: [stage(1, 2, 2), stage(24, 28, 4)] })
  expect((await view(id)).email_warm_up).toEqual({
    strategy: 'custom',
    stages: [
      { ...stage(1, 2, 2), acked: false },
      { ...stage(24, 28, 4), acked: false },
    ],
    status: 'initializing',
    is_live: false,
  })
  await runEngine(engine)
  const deliveries = await deliveriesOf(app.db, appId, id)
  const found = new Map(deliveries.map((it) => [it.subscriptionId, it]))
  expect(ids.map((it) => found.get(it)?.reason ?? found.get(it)?.dueAt)).toEqual([
    ...[1, 1.5, 24, 25, 26, 27].map(after),
    ...Array.from({ length: 4 }, () => 'beyond_warm_up'),
  ])
  expect(await tally(app.db, appId, id)).toEqual({ pending: 6, 'skipped beyond_warm_up': 4 })
  expect((await view(id)).email_warm_up).toMatchObject({ status: 'active', is_live: true })
  expect(mailsOf(sender)).toEqual([])
  clock.advance({ hours: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, pending: 5, 'skipped beyond_warm_up': 4 })
  for (let hours = 0; hours < 30; hours++) {
    clock.advance({ hours: 1 })
    await runEngine(engine)
  }
  expect(await tally(app.db, appId, id)).toEqual({ sent: 6, 'skipped beyond_warm_up': 4 })
  expect((await view(id)).email_warm_up).toMatchObject({ status: 'finished', is_live: false })
})

test('those who are not sent to take no place, and named recipients are staged too', async () => {
  const made = await mailboxes(4)
  const [first, ...others] = made.map(({ id }) => id).sort()
  await app.db.query(sql`update subscriptions set notification_types = -2 where app_id = ${appId} and id = ${first}`)
  const id = await warmUp(
    { stages: [stage(1, 2, 2)] },
    { included_segments: null, include_subscription_ids: [first, ...others] },
  )
  await runEngine(engine)
  const found = new Map((await deliveriesOf(app.db, appId, id)).map((it) => [it.subscriptionId, it]))
  expect([first, ...others].map((it) => found.get(it as string)?.reason ?? found.get(it as string)?.dueAt)).toEqual([
    'unsubscribed',
    after(1),
    after(1.5),
    'beyond_warm_up',
  ])
})

test('stages go on over the ranges that a large audience is expanded by', async () => {
  await mailboxes(10_050)
  const id = await warmUp({ stages: [stage(1, 2, 10_010), stage(24, 25, 30)] })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ pending: 10_040, 'skipped beyond_warm_up': 10 })
  const [counted] = await app.db.query(sql`
    select count(*) filter (where due_at < ${after(2)}) as first, count(*) filter (where due_at >= ${after(24)}) as second
    from deliveries where app_id = ${appId} and message_id = ${id} and state = 'pending'`)
  expect(counted).toEqual({ first: 10_010, second: 30 })
})

test('what is recommended begins at once and doubles each day', async () => {
  await mailboxes(3)
  const id = await warmUp({ strategy: 'recommended' })
  const { stages, strategy } = (await view(id)).email_warm_up
  expect(strategy).toBe('recommended')
  expect(stages.slice(0, 2)).toEqual([
    { ...stage(0, 24, 100), acked: false },
    { ...stage(24, 48, 200), acked: false },
  ])
  expect(stages).toHaveLength(20)
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, pending: 2 })
})

test('a warm-up that is canceled says so, and sends nothing more', async () => {
  await mailboxes(2)
  const id = await warmUp({ stages: [stage(1, 2, 10)] })
  await runEngine(engine)
  await cancel(engine, appId, id)
  clock.advance({ hours: 3 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ canceled: 2 })
  expect((await view(id)).email_warm_up).toMatchObject({ status: 'canceled', is_live: false })
})
