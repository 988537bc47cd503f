// Requests that come together travel in one transaction. None of them may notice.

import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY } from '../../src/lib/authority.ts'
import { virtualClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import type { Db } from '../../src/storage/db.ts'
import { createMerger } from '../../src/storage/merge.ts'
import { sql } from '../../src/storage/sql.ts'
import { updateAliases } from '../../src/users/aliases/change.ts'
import { createUsersContext, type UsersContext } from '../../src/users/context.ts'
import { createdAnswer, createUser } from '../../src/users/create.ts'
import { deleteUser } from '../../src/users/delete.ts'
import { viewUser } from '../../src/users/read.ts'
import { addSubscription, transferSubscription, updateSubscription } from '../../src/users/subscriptions/change.ts'
import { updateUser } from '../../src/users/update.ts'
import { type Answer, type TestApp, testApp } from '../app.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

/** With one statement at a time, whatever is asked in one turn of the event loop is one batch, in that order. */
const contextOn = (db: Db): UsersContext =>
  createUsersContext({ db, clock: virtualClock(), merger: createMerger({ slots: 1 }), newId })

const operator = { caller: { kind: 'anybody' }, ip: '127.0.0.1' }
const named = (value: string) => ({ label: 'external_id', value })

async function make(externalId: string, subscriptions: object[] = []) {
  const { body }: Answer = await app.app('/users', { body: { identity: { external_id: externalId }, subscriptions } })
  return { id: body.identity.onesignal_id as string, subscription: body.subscriptions[0]?.id as string }
}
const view = async (externalId: string) => (await app.app(`/users/by/external_id/${externalId}`)).body

test('a subscription that is given away survives the deletion of its former user in the same batch', async () => {
  const { change } = contextOn(app.db)
  const { subscription } = await make('giver', [{ type: 'iOSPush', token: 'given' }])
  await make('taker')
  await Promise.all([
    transferSubscription(change, newId, app.tenant.id, subscription, { external_id: 'taker' }),
    deleteUser(change, app.tenant.id, named('giver'), operator),
  ])
  expect((await view('taker')).subscriptions).toMatchObject([{ id: subscription, token: 'given' }])
})

test('a token that is given up can be taken in the same batch', async () => {
  const { change } = contextOn(app.db)
  const { subscription } = await make('renewer', [{ type: 'iOSPush', token: 'old' }])
  const draft = { type: 'iOSPush', token: 'old' }
  const [, added] = await Promise.all([
    updateSubscription(change, app.tenant.id, subscription, { token: 'new' }),
    addSubscription(change, newId, app.tenant.id, named('renewer'), draft),
  ])
  expect(added.isNew).toBe(true)
  const { subscriptions } = await view('renewer')
  expect(subscriptions.map((it: { token: string }) => it.token).sort()).toEqual(['new', 'old'])
})

test('an answer tells nothing of what came after it in the same batch', async () => {
  const ctx = contextOn(app.db)
  const { subscription } = await make('early', [{ type: 'iOSPush', token: 'early' }])
  const body = {
    identity: { external_id: 'early', label: 'early' },
    properties: { tags: { a: 'b' } },
    // By its id, so that the request is no new user's.
    subscriptions: [{ id: subscription }],
  }
  const [created] = await Promise.all([
    createUser(ctx, app.tenant.id, body),
    updateUser(ctx.change, app.tenant.id, named('early'), { properties: { tags: { a: 'c' } } }, undefined),
    deleteUser(ctx.change, app.tenant.id, named('early'), operator),
  ])
  expect(createdAnswer(app.tenant.id, created)).toMatchObject({
    identity: { external_id: 'early', label: 'early' },
    properties: { tags: { a: 'b' } },
    subscriptions: [{ id: subscription }],
  })
})

test('a refused request leaves nothing behind for the others of its batch', async () => {
  const ctx = contextOn(app.db)
  const { subscription } = await make('victim', [{ type: 'iOSPush', token: 'victim' }])
  const tooMany = Array.from({ length: 21 }, (_, i) => ({ type: 'iOSPush', token: `too many ${i}` }))
  const body = {
    identity: { external_id: 'greedy', label: 'greedy' },
    properties: { purchases: [{ sku: 'x', iso: 'EUR', amount: '1' }] },
    subscriptions: [{ id: subscription }, ...tooMany],
  }
  const [refused, added] = await Promise.allSettled([
    createUser(ctx, app.tenant.id, body),
    addSubscription(ctx.change, newId, app.tenant.id, named('victim'), { type: 'iOSPush', token: 'too many 0' }),
  ])
  expect(refused).toMatchObject({ status: 'rejected', reason: { problems: [{ code: 'Subscription Limit Exceeded' }] } })
  expect(added).toMatchObject({ status: 'fulfilled', value: { isNew: true } })
  expect((await view('victim')).subscriptions).toHaveLength(2)
  expect((await app.app('/users/by/external_id/greedy')).status).toBe(404)
  expect((await app.app('/users/by/label/greedy')).status).toBe(404)
})

test('purchases of one moment keep their order over several requests', async () => {
  const ctx = contextOn(app.db)
  await make('buyer')
  const buy = (sku: string) =>
    updateUser(
      ctx.change,
      app.tenant.id,
      named('buyer'),
      { deltas: { purchases: [{ sku, iso: 'EUR', amount: '1' }] } },
      undefined,
    )
  const skus = Array.from({ length: 12 }, (_, i) => `sku${i}`)
  for (const sku of skus.slice(0, 6)) await buy(sku)
  await Promise.all(skus.slice(6).map(buy))
  const { properties } = await view('buyer')
  expect(properties.purchases.map((it: { sku: string }) => it.sku)).toEqual(skus)
})

/** Another server's transaction that has locked these users and moved the subscription, and has not committed yet. */
async function movingElsewhere(subscription: string, from: string, to: string) {
  const client = new pg.Client(app.connection)
  await client.connect()
  await client.query('begin')
  await client.query('select 1 from users where id = any($1) order by id for update', [[from, to]])
  await client.query('update subscriptions set user_id = $1 where id = $2', [to, subscription])
  await client.query('update users set subscription_count = subscription_count - 1 where id = $1', [from])
  await client.query('update users set subscription_count = subscription_count + 1 where id = $1', [to])
  return {
    client,
    async commit() {
      await client.query('commit')
      await client.end()
    },
  }
}

/** PostgreSQL shows how a statement begins, and not all of a long one. */
async function untilSomebodyWaits(statement = '%with refs as materialized%') {
  const deadline = performance.now() + 5_000
  while (performance.now() < deadline) {
    const [row] = await app.db.query<{ waiting: number }>(sql`
      select count(*) as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like ${statement}`)
    if ((row?.waiting ?? 0) > 0) return
  }
  throw new Error('nobody waits for the lock')
}

test('what follows a subscription that moved and whose former user is gone finds it where it is', async () => {
  const { change } = contextOn(app.db)
  const from = await make('mover', [{ type: 'iOSPush', token: 'moves' }])
  const to = await make('keeper')
  const elsewhere = await movingElsewhere(from.subscription, from.id, to.id)
  await elsewhere.client.query('delete from users where id = $1', [from.id])
  const updated = updateSubscription(change, app.tenant.id, from.subscription, { sdk: 'seen' })
  await untilSomebodyWaits()
  await elsewhere.commit()
  expect(await updated).toMatchObject({ subscription: { id: from.subscription, sdk: 'seen' } })
})

test('what was free when a request began to wait and is taken when it goes on counts as taken', async () => {
  const { change } = contextOn(app.db)
  const waiting = await make('waiting')
  const quicker = await make('quicker')
  const nine = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`label${i}`, 'waiting']))
  await updateAliases(change, app.tenant.id, named('waiting'), nine)
  const client = new pg.Client(app.connection)
  await client.connect()
  await client.query('begin')
  await client.query('select 1 from users where id = any($1) order by id for update', [[waiting.id, quicker.id]])
  for (const [label, id] of [
    ['wish', quicker.id],
    ['tenth', waiting.id],
  ]) {
    const row = [app.tenant.id, label, 'granted', id]
    await client.query('insert into aliases (app_id, label, value, user_id) values ($1, $2, $3, $4)', row)
    await client.query('update users set alias_count = alias_count + 1 where id = $1', [id])
  }
  // Before all this there was room and the alias was free; afterwards both are gone. At no moment was it the room alone.
  const refused = expect(
    updateAliases(change, app.tenant.id, named('waiting'), { wish: 'granted' }),
  ).rejects.toMatchObject({ problems: [{ code: 'user-2', meta: { wish: 'granted' } }] })
  await untilSomebodyWaits()
  await client.query('commit')
  await client.end()
  await refused
})

test('a new user claims its aliases before its tokens, like every other change', async () => {
  const { id } = await make('holder')
  const holder = new pg.Client(app.connection)
  const prober = new pg.Client(app.connection)
  await Promise.all([holder.connect(), prober.connect()])
  await holder.query('begin')
  const row = [app.tenant.id, 'claimed', 'elsewhere', id]
  await holder.query('insert into aliases (app_id, label, value, user_id) values ($1, $2, $3, $4)', row)
  const body = { identity: { claimed: 'elsewhere' }, subscriptions: [{ type: 'iOSPush', token: 'not yet' }] }
  const created = createUser(contextOn(app.db), app.tenant.id, body)
  await untilSomebodyWaits('%alias_rows as materialized%')
  // Whoever waits for the alias does not hold the token meanwhile, or this would wait for it in turn.
  await prober.query("begin; set local lock_timeout = '1s'")
  const taken = await prober.query(
    `insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, created_at, updated_at)
     values ($1, $2, $3, 'iOSPush', 'iOSPush', 'not yet', sha256('not yet'), $4, $4)`,
    [app.tenant.id, newId(), id, virtualClock().now()],
  )
  expect(taken.rowCount).toBe(1)
  await prober.query('rollback')
  await holder.query('rollback')
  await Promise.all([holder.end(), prober.end()])
  expect(await created).toMatchObject({ isNew: true })
})

test('what a batch has done is not done again when the rest of it fails later', async () => {
  const from = await make('first owner', [{ type: 'iOSPush', token: 'wanders' }])
  const to = await make('second owner')
  await make('incremented')
  let transactions = 0
  const failingOnce: Db = {
    ...app.db,
    transaction(run) {
      // The second one is the further round for the request whose subscription moved.
      if (++transactions === 2) throw Object.assign(new Error('lost a race'), { code: '23505', severity: 'ERROR' })
      return app.db.transaction(run)
    },
  }
  const { change } = contextOn(failingOnce)
  const elsewhere = await movingElsewhere(from.subscription, from.id, to.id)
  const both = Promise.all([
    updateUser(change, app.tenant.id, named('incremented'), { deltas: { session_count: 1 } }, undefined),
    updateSubscription(change, app.tenant.id, from.subscription, { sdk: 'seen' }),
  ])
  await untilSomebodyWaits()
  await elsewhere.commit()
  const [incremented, updated] = await both
  expect(transactions).toBe(3)
  expect(incremented.properties).toMatchObject({ session_count: 1 })
  expect(updated.subscription).toMatchObject({ sdk: 'seen' })
  expect((await view('incremented')).properties.session_count).toBe(1)
})

test('a commit whose answer is lost is reported, not repeated', async () => {
  await make('unsure')
  let transactions = 0
  const deafAfterCommit: Db = {
    ...app.db,
    async transaction(run) {
      transactions++
      await app.db.transaction(run)
      throw new Error('Connection terminated unexpectedly')
    },
  }
  const { change } = contextOn(deafAfterCommit)
  await expect(
    updateUser(change, app.tenant.id, named('unsure'), { deltas: { session_count: 1 } }, undefined),
  ).rejects.toThrow()
  expect(transactions).toBe(1)
  expect((await view('unsure')).properties.session_count).toBe(1)
})

test('a view never shows a user by an alias that the user has not', async () => {
  const ctx = contextOn(app.db)
  const [one, other] = [await make('one'), await make('other')]
  const hand = (from: string, to: string) =>
    app.db.transaction(async (db) => {
      await db.query(sql`select 1 from users u where u.id = any(${[from, to]}::uuid[]) order by u.id for update`)
      await db.query(sql`delete from aliases a where a.label = 'badge' and a.user_id = ${from}`)
      await db.query(
        sql`insert into aliases (app_id, label, value, user_id) values (${app.tenant.id}, 'badge', 'x', ${to})`,
      )
    })
  await hand(other.id, one.id)
  let isOver = false
  const handing = (async () => {
    for (let n = 0; n < 60; n++) await (n % 2 ? hand(other.id, one.id) : hand(one.id, other.id))
    isOver = true
  })()
  while (!isOver) {
    const seen = await viewUser(ctx.reader, app.tenant.id, { label: 'badge', value: 'x' }, KEY)
    expect(seen.identity).toMatchObject({ badge: 'x' })
  }
  await handing
})
