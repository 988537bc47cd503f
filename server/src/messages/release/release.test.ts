// What settings hold is let go when they are changed.

import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  aMessage,
  anEngineWorker,
  type FakeSender,
  messageRow,
  type Recipient,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../../test/engine.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import type { Engine } from '../engine/types.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let authorization: string

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
  authorization = `Key ${stage.tenant.key}`
})

async function set(body: object) {
  const answer = await app.request(`/apps/${appId}/delivery_settings`, {
    method: 'PUT',
    body,
    headers: { authorization },
  })
  expect(answer.status).toBe(200)
}

/** For so many hours, from now. */
const quietFor = (hours: number) => {
  const at = (ms: number) => new Date(clock.now().getTime() + ms).toISOString().slice(11, 16)
  return { start: at(0), end: at(hours * 3_600_000), fallback_time_zone: 'UTC' }
}

const sendsWithin = async (seconds: number) => {
  const before = sender.calls.length
  for (let second = 0; second < seconds; second++) {
    await runEngine(engine)
    clock.advance({ seconds: 1 })
  }
  return sender.calls.length - before
}

test('quiet hours that are taken away', async () => {
  await set({ quiet_hours: quietFor(8) })
  await recipients(engine, appId, 5)
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ pending: 5 })
  await set({ quiet_hours: null })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 5 })
})

test('quiet hours that end sooner', async () => {
  const { start } = quietFor(8)
  await set({ quiet_hours: quietFor(8) })
  await recipients(engine, appId, 5)
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  await set({ quiet_hours: { ...quietFor(2), start } })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ pending: 5 })
  clock.advance({ hours: 2 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 5 })
})

test('what waits for an hour of its own goes on waiting', async () => {
  const later = new Date(clock.now().getTime() + 7_200_000)
  await set({ quiet_hours: quietFor(1) })
  await recipients(engine, appId, 2)
  const options = { delayedOption: 'timezone', timeOfDay: Math.floor((later.getTime() % 86_400_000) / 1_000) } as const
  const id = await aMessage(engine, appId, { options })
  await runEngine(engine)
  await set({ quiet_hours: null })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ pending: 2 })
})

test('a throttle that is taken away', async () => {
  await set({ throttle_per_minute: 1 })
  await recipients(engine, appId, 10)
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, pending: 9 })
  await set({ throttle_per_minute: null })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 10 })
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' })
})

test('a throttle that is higher from now on', async () => {
  await set({ throttle_per_minute: 1 })
  await recipients(engine, appId, 61)
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  await set({ throttle_per_minute: 60 })
  const inHalfAMinute = await sendsWithin(30)
  expect(inHalfAMinute).toBeGreaterThan(25)
  expect(inHalfAMinute).toBeLessThan(36)
  await sendsWithin(40)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 61 })
})

test("a message's own throttle is left alone", async () => {
  await set({ throttle_per_minute: 1 })
  await recipients(engine, appId, 10)
  const id = await aMessage(engine, appId, { options: { throttlePerMinute: 2 } })
  await runEngine(engine)
  await set({ throttle_per_minute: null })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, pending: 9 })
})

test('whoever decides by quiet hours that are gone meanwhile puts nothing off', async () => {
  await set({ quiet_hours: quietFor(8) })
  const [one] = (await recipients(engine, appId, 1)) as [Recipient]
  const id = await aMessage(engine, appId, {})
  // The settings change after they were read, and everything that the change releases is released before anything is written.
  let isChanged = false
  const db: Engine['db'] = {
    ...engine.db,
    transaction: async (run) => {
      if (!isChanged && (await tally(app.db, appId, id)).pending) {
        isChanged = true
        await set({ quiet_hours: null })
        await runEngine(engine)
      }
      return engine.db.transaction(run)
    },
  }
  await anEngineWorker({ ...engine, db, directDb: db }).runDue()
  clock.advance({ seconds: 5 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  expect(sender.calls.map(({ outgoing }) => outgoing.token)).toEqual([one.token])
})

test('mail to those who do not want any goes out of an app that has no others', async () => {
  const users = await recipients(engine, appId, 3, { type: 'Email' })
  await app.db.query(sql`update subscriptions set enabled = false where app_id = ${appId}`)
  await app.db.query(sql`update player_counts set subscribed = 0, messageable = 0 where app_id = ${appId}`)
  const id = await aMessage(engine, appId, {
    channel: 'email',
    content: { email_subject: 'Bells', email_body: '<p>Ring</p>', include_unsubscribed: true },
    options: { includeUnsubscribed: true },
  })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: users.length })
})
