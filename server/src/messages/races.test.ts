// Two who want the same rows at the same moment.

import { expect, test } from 'vitest'
import type { TestApp } from '../../test/app.ts'
import {
  aMessage,
  deliveriesOf,
  type FakeSender,
  messageRow,
  only,
  type Recipient,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../test/engine.ts'
import type { AppId } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'
import { cancelMessage } from './cancel.ts'
import { lockForSending } from './cancel-lock.ts'
import type { Engine } from './engine/types.ts'
import { lockUncanceled } from './settle/store.ts'

let app: TestApp
let sender: FakeSender
let engine: Engine
let appId: AppId

setStage((stage) => {
  ;({ app, sender, engine, appId } = stage)
})

/** So many in this database wait for a row or a transaction of somebody else. */
async function somebodyWaits(least = 1) {
  for (let i = 0; i < 2_000; i++) {
    const [found] = await app.db.query<{ count: number }>(sql`select count(*) as count from pg_locks where not granted`)
    if (found && found.count >= least) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error('nobody waits')
}

test('what was sent is not unknown because writing that down ran into a deadlock', async () => {
  const people = await recipients(engine, appId, 40)
  const id = await aMessage(engine, appId, { lane: 'direct', audience: only(...people.map((it) => it.id)) })
  const locked = Promise.withResolvers<void>()
  let other: Promise<unknown> | undefined
  // Devices report what they got before its outcome is written down, in another order than that has.
  sender.otherwise = async () => {
    other ??= app.db.transaction(async (db) => {
      const sending = (await deliveriesOf(db, appId, id)).filter(({ state }) => state === 'sending')
      const slice = sender.calls.flatMap(({ outgoing }) => {
        const to = people.find(({ token }) => token === outgoing.token)
        return sending.filter(({ subscriptionId, line }) => subscriptionId === to?.id && line === sending[0]?.line)
      })
      const lock = (it: (typeof slice)[number] | undefined) =>
        db.query(sql`
          select 1 from deliveries
          where app_id = ${appId} and message_id = ${id} and subscription_id = ${it?.subscriptionId} for update`)
      // Whoever waits shorter before it looks for deadlocks is the one who gives way.
      await db.query(sql`set local deadlock_timeout = '20s'`)
      await lock(slice.at(-1))
      locked.resolve()
      await somebodyWaits()
      for (const it of slice.slice(0, -1)) await lock(it)
    })
    await locked.promise
    return { kind: 'sent' }
  }
  await runEngine(engine)
  await other
  expect(await tally(app.db, appId, id)).toEqual({ sent: 40 })
})

test('a direct message that somebody has locked for a moment is expanded when they let go', async () => {
  const [one] = (await recipients(engine, appId, 1)) as [Recipient]
  const id = await aMessage(engine, appId, { lane: 'direct', audience: only(one.id) })
  const locked = Promise.withResolvers<void>()
  const letGo = Promise.withResolvers<void>()
  const other = app.db.transaction(async (db) => {
    await db.query(sql`select 1 from messages where app_id = ${appId} and id = ${id} for update`)
    locked.resolve()
    await letGo.promise
  })
  await locked.promise
  const running = runEngine(engine)
  await Promise.race([somebodyWaits(), running])
  letGo.resolve()
  await Promise.all([other, running])
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' })
})

test('who cancels a broadcast goes before those who come to send more of it', async () => {
  const people = await recipients(engine, appId, 1_000)
  const id = await aMessage(engine, appId, { lane: 'bulk', audience: only(...people.map((it) => it.id)) })
  const now = () => engine.clock.now()
  const letGo = Promise.withResolvers<void>()
  let slow: Promise<unknown> | undefined
  let canceled: Promise<unknown> | undefined
  // Somebody who sends is slow, and somebody cancels meanwhile.
  sender.otherwise = async () => {
    if (slow) return { kind: 'sent' }
    const locked = Promise.withResolvers<void>()
    slow = app.db.transaction(async (db) => {
      await lockForSending(db, [id])
      await lockUncanceled(db, appId, [id])
      locked.resolve()
      await letGo.promise
    })
    await locked.promise
    canceled = cancelMessage({ db: app.db, queue: engine.queue, now }, appId, id)
    await somebodyWaits()
    return { kind: 'sent' }
  }
  const running = runEngine(engine)
  await Promise.race([somebodyWaits(2), running])
  letGo.resolve()
  await Promise.all([slow, canceled, running])
  await runEngine(engine)
  expect((await tally(app.db, appId, id)).canceled).toBeGreaterThan(0)
})
