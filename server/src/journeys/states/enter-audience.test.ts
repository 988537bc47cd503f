import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { recipients } from '../../../test/engine.ts'
import { holdTable } from '../../../test/hold-table.ts'
import { aJourney, aWait, update, view } from '../../../test/journeys.ts'
import { aKeeper, countsOf, expectExact, ofAnotherApp, runsOf, tallyRuns } from '../../../test/runs.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { readCatalogue } from '../../../test/sql-rules/catalogue.ts'
import { GLOBAL_TABLES } from '../../../test/sql-rules/exceptions.ts'
import { knownTables } from '../../../test/sql-rules/schema-rules.ts'
import { checkStatement } from '../../../test/sql-rules/statement-rules.ts'
import { anEmail, aUser } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { readFilters } from '../../segments/filters/read-filters.ts'
import { createPool, type Db } from '../../storage/db.ts'
import { type Sql, sql } from '../../storage/sql.ts'
import { insertRunsOf } from '../runs/run-store.ts'
import { usersStatement } from './enter-audience.ts'

let server: TestApp
let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(() => server.close())
beforeEach(async () => {
  app = await ofAnotherApp(server)
})

const people = (count: number, plan: string) =>
  recipients({ db: app.db, clock }, app.tenant.id, count, { tags: { plan } })
const work = () => aKeeper(app, clock).run()

async function activated(audience: object, more: object = {}): Promise<string> {
  const { id } = await aJourney(app, { audience, nodes: [aWait()], ...more })
  const { status } = await update(app, id, { state: 'active' })
  expect(status).toBe(200)
  return id
}

const inPlan = async (plan: string, more: object = {}) => ({
  kind: 'segment',
  included_segment_ids: [await aSegment(app, [tagIs('plan', plan)])],
  ...more,
})

describe('activation enters', () => {
  test('everybody of the audience once, and they begin together when it is done', async () => {
    const gold = await people(3, 'gold')
    await people(2, 'tin')
    // Two subscriptions, one user.
    const two = await aUser(app, {
      properties: { tags: { plan: 'gold' } },
      subscriptions: [1, 2].map(() => ({ type: 'Email', token: anEmail() })),
    })
    const id = await activated(await inPlan('gold'))
    const keeper = aKeeper(app, clock)
    await keeper.run()
    const runs = await expectExact(app, id)
    expect(runs.map(({ userId }) => userId).sort()).toEqual([...gold.map(({ userId }) => userId), two.id].sort())
    expect(runs.every(({ state, dueAt }) => state === 'waiting' && dueAt?.getTime() === clock.now().getTime())).toBe(
      true,
    )
    expect((await app.app(`/journeys/${id}/stats`)).body).toMatchObject({ started: 4, completed: 0, exited_early: 0 })
    expect((await view(app, id)).body.state).toBe('active')
    expect(keeper.moved.sort()).toEqual([0, 1, 2, 3].map((part) => `${id}/${part}`))
  })

  test('who has a subscription in an excluded segment stays out, whichever of their subscriptions it is', async () => {
    const mail = { type: 'Email', token: anEmail() }
    const plain = await aUser(app, { properties: { tags: { plan: 'gold' } }, subscriptions: [mail] })
    await aUser(app, {
      properties: { tags: { plan: 'gold' } },
      subscriptions: [
        { type: 'Email', token: anEmail() },
        { type: 'SMS', token: '+15550001234' },
      ],
    })
    const texts = await aSegment(app, [{ field: 'device_type', relation: '=', value: 'SMS' }])
    const mails = await aSegment(app, [{ field: 'device_type', relation: '=', value: 'Email' }])
    const id = await activated({ kind: 'segment', included_segment_ids: [mails], excluded_segment_ids: [texts] })
    await work()
    expect((await expectExact(app, id)).map(({ userId }) => userId)).toEqual([plain.id])
  })

  test('with future_additions_only nobody, and bars those who are in an included or an excluded segment', async () => {
    const [gold] = await people(1, 'gold')
    const [tin] = await people(1, 'tin')
    await people(1, 'paper')
    const excluded = await aSegment(app, [tagIs('plan', 'tin')])
    const id = await activated(await inPlan('gold', { future_additions_only: true, excluded_segment_ids: [excluded] }))
    await work()
    const runs = await expectExact(app, id)
    expect(runs.map(({ userId, state, dueAt }) => ({ userId, state, dueAt }))).toEqual(
      [gold?.userId, tin?.userId].sort().map((userId) => ({ userId, state: 'barred', dueAt: null })),
    )
    expect((await view(app, id)).body.state).toBe('active')
  })

  test('nobody into a journey that events trigger', async () => {
    await people(1, 'gold')
    const id = await activated({ kind: 'event_trigger', name: 'bought' })
    await work()
    expect(await runsOf(app, id)).toEqual([])
    expect((await view(app, id)).body.state).toBe('active')
  })

  test('nobody by a segment that is gone, and nobody at all when one to be left out is', async () => {
    await people(1, 'gold')
    const gone = await aSegment(app, [tagIs('plan', 'gold')])
    const by = await activated({ kind: 'segment', included_segment_ids: [gone] })
    const not = await activated(await inPlan('gold', { excluded_segment_ids: [gone] }))
    await app.db.query(sql`delete from segments where app_id = ${app.tenant.id} and id = ${gone}`)
    await work()
    for (const id of [by, not]) {
      expect(await expectExact(app, id)).toEqual([])
      expect((await view(app, id)).body.state).toBe('active')
    }
  })
})

/** Dies just before a commit, once, when so many have entered. */
function dyingAt(count: number): { db: Db; hasDied: () => boolean } {
  let hasDied = false
  const db: Db = {
    ...app.db,
    transaction: (run) =>
      app.db.transaction(async (db) => {
        const result = await run(db)
        const [row] = await db.query<{ n: number }>(
          sql`select count(*) as n from journey_runs where app_id = ${app.tenant.id}`,
        )
        if ((row?.n ?? 0) >= count && !hasDied) {
          hasDied = true
          throw new Error('died')
        }
        return result
      }),
  }
  return { db, hasDied: () => hasDied }
}

describe('an activation of 25,000', () => {
  const MANY = 25_000
  beforeEach(async () => {
    await people(MANY, 'gold')
  })

  /** Breaks off in its second range, and leaves the first. */
  async function brokenOff(): Promise<string> {
    const id = await activated(await inPlan('gold'))
    const dying = dyingAt(20_000)
    await aKeeper(app, clock, dying.db).run()
    expect(dying.hasDied()).toBe(true)
    expect((await view(app, id)).body).toMatchObject({ state: 'processing', started_at: null })
    expect(await expectExact(app, id)).toHaveLength(10_000)
    clock.advance({ minutes: 1 })
    return id
  }

  test('goes on where it was broken off, by whoever comes next, and nobody enters twice', async () => {
    const id = await brokenOff()
    await Promise.all([work(), work()])
    const runs = await expectExact(app, id)
    expect(runs).toHaveLength(MANY)
    expect(new Set(runs.map(({ userId }) => userId)).size).toBe(MANY)
    expect((await view(app, id)).body.state).toBe('active')
  })

  test('that is taken back to draft leaves nobody, and no numbers', async () => {
    const id = await brokenOff()
    expect((await update(app, id, { state: 'draft' })).status).toBe(200)
    await work()
    expect(await runsOf(app, id)).toEqual([])
    expect(await countsOf(app, id)).toEqual(new Map())
    expect((await view(app, id)).body.state).toBe('draft')
  })

  test('that begins again before the one before it was cleared away is whole, and of the new audience', async () => {
    const id = await brokenOff()
    await people(5, 'tin')
    await update(app, id, { state: 'draft' })
    // Half of it has been cleared away.
    await app.db.query(sql`
      delete from journey_runs where app_id = ${app.tenant.id} and ctid = any(array(
        select ctid from journey_runs where app_id = ${app.tenant.id} limit 5000))`)
    expect((await update(app, id, { state: 'active', audience: await inPlan('tin') })).status).toBe(200)
    await work()
    expect(tallyRuns(await expectExact(app, id))).toEqual({ waiting: 5 })
    expect((await view(app, id)).body.state).toBe('active')
  })

  test('with a change of its name halfway goes on where it was', async () => {
    const id = await brokenOff()
    expect((await update(app, id, { name: 'Renamed' })).status).toBe(200)
    const entered = app.db.query<{ enteredTo: string | null; isCleared: boolean }>(sql`
      select entered_to, is_cleared from journeys where app_id = ${app.tenant.id} and id = ${id}`)
    expect((await entered)[0]).toEqual({ enteredTo: expect.any(String), isCleared: true })
    await work()
    expect(tallyRuns(await expectExact(app, id))).toEqual({ waiting: MANY })
  })
})

test('a journey can be taken back while its audience is looked for, and then nobody enters', async () => {
  await people(3, 'gold')
  const didNothing = { field: 'event', name: 'bought', relation: '=', count: 0 }
  const segment = await aSegment(app, [tagIs('plan', 'gold'), didNothing])
  const id = await activated({ kind: 'segment', included_segment_ids: [segment] })
  // The segment looks at events, so that looking for its members takes as long as this is held.
  const held = await holdTable(app.connection, 'events')
  const patient = createPool({ connection: app.connection, size: 2, statementTimeoutMs: 300_000 })
  const working = aKeeper(app, clock, patient).run()
  try {
    await vi.waitFor(
      async () => {
        const blocked = await app.db.query(sql`
          select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%events%'`)
        expect(blocked).toHaveLength(1)
      },
      { timeout: 30_000 },
    )
    expect((await update(app, id, { state: 'draft' })).status).toBe(200)
  } finally {
    await held.release()
    await working
    await patient.close()
  }
  expect(await runsOf(app, id)).toEqual([])
  expect((await view(app, id)).body.state).toBe('draft')
  await update(app, id, { state: 'active' })
  await work()
  expect(tallyRuns(await expectExact(app, id))).toEqual({ waiting: 3 })
})

test('the statements keep the rules that all others keep', async () => {
  const known = knownTables(await readCatalogue(app.db), Object.keys(GLOBAL_TABLES))
  const scope = { appId: app.tenant.id, now: clock.now() }
  const gold = readFilters([tagIs('plan', 'gold')]).tree
  const active = readFilters([{ field: 'last_session', relation: '<', hours_ago: '1' }]).tree
  const texts: string[] = []
  const query = async ({ text }: Sql) => {
    texts.push(text)
    return []
  }
  const noted = { ...app.db, query } as unknown as Db
  for (const included of [[], [gold], [gold, active]])
    for (const excluded of [[], [gold], [gold, active]])
      for (const upTo of [undefined, newId()]) {
        texts.push(usersStatement(included, excluded, scope, { after: newId(), upTo }).text)
      }
  await insertRunsOf(noted, scope.appId, newId(), '{}', { state: 'waiting', seed: newId() }, scope.now)
  expect(texts).toHaveLength(19)
  for (const text of texts) expect(checkStatement(text, known)).toEqual([])
})
