import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import { cutOff, EVERYWHERE, killMidway } from './kill-midway.ts'
import { isFull } from './ledger.ts'
import { subscribeMailboxes } from './mailers.ts'
import { type Dice, IN_FLIGHT, openRig, type Rig, throwDice } from './rig.ts'
import { expectSent, expectShares, expectStats, expectTravelled, runsOf, untilQuiet } from './travelled.ts'
import {
  activate,
  admit,
  aSegment,
  bring,
  byEvent,
  bySegment,
  goesGold,
  happens,
  type Journey,
  type Traveller,
  untilActive,
} from './travellers.ts'

const TRAVELLERS = isFull ? 1_000 : 200
/** In each of them one server is killed while the other goes on, or both at once: five kills in three rounds. */
const ROUNDS = isFull ? { before: 12, after: 6 } : { before: 3, after: 2 }
/** Leases run for 30 s, and what a dead server held is taken up after that. Tests share their machine. */
const SETTLED_MS = 900_000
/** What the box takes in a second: so little that something is always under way. */
const PER_SECOND = isFull ? 200 : 100
/** Some ranges of them, as they are entered: see enter-audience.ts. */
const MEMBERS = isFull ? 60_000 : 25_000
const JOINERS = 40
const ENV = { JOURNEY_MIN_WAIT_SECONDS: '1' }

test('servers that are killed while people travel lose nobody, do nothing twice, and lead nobody astray', async () => {
  const dice = throwDice('journeys')
  const rig = await openRig({ recipients: 0, env: ENV })
  const travellers = await admit(rig, TRAVELLERS)
  // Half of them are there when it begins.
  const [early, late] = [travellers.slice(0, TRAVELLERS / 2), travellers.slice(TRAVELLERS / 2)]
  for (const it of early) await bring(rig, dice, ...goesGold(rig, it))
  const began = performance.now()
  const journeys = [await byEvent(rig), await bySegment(rig)]
  await untilActive(rig, journeys, SETTLED_MS)
  await rig.setRate(PER_SECOND)

  const clients = Promise.all(travellers.map((it) => travel(rig, dice, it, late.includes(it))))
  let [kills, cuts] = await killSome(rig, dice, ROUNDS.before)
  await clients
  await close(rig, dice, journeys[1], travellers, async () => {
    const more = await killSome(rig, dice, ROUNDS.after)
    kills += more[0]
    cuts += more[1]
  })
  await rig.setRate(0)
  await untilQuiet(rig, SETTLED_MS)
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)

  const ways: Parameters<typeof expectShares>[0][number][] = []
  for (const journey of journeys) ways.push([journey, await expectTravelled({ rig, journey, travellers })])
  const unknown = await expectSent(rig, travellers, ways)
  const share = expectShares(ways)
  const exits = ways[0]?.[1].filter(({ state }) => state === 'exited').length
  console.log(
    `journeys: ${ways.flatMap(([, runs]) => runs).length} runs, ${kills} kills, ${cuts} cuts, quiet after ${seconds} s, ` +
      `share ${share.toFixed(1)}, ${exits} expired, unknown: ${[...unknown].join(' ')}`,
  )
  for (const [provider, count] of unknown) expect(count, provider).toBeLessThanOrEqual(kills * IN_FLIGHT)
}, 3_600_000)

/** Comes in by an event and perhaps into the segment; every second one buys. */
async function travel(rig: Rig, dice: Dice, traveller: Traveller, isLate: boolean) {
  const isBuyer = dice.next() < 0.5
  await pause(dice.between(0, ROUNDS.before * 2_000))
  await bring(rig, dice, ...happens(rig, traveller, 'came'))
  if (isLate) await bring(rig, dice, ...goesGold(rig, traveller))
  if (!isBuyer) return
  await pause(dice.between(0, 9_000))
  await bring(rig, dice, ...happens(rig, traveller, 'bought'))
  traveller.boughtBy = Date.now()
}

async function killSome(rig: Rig, dice: Dice, rounds: number): Promise<[kills: number, cuts: number]> {
  let [kills, cuts] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    cuts += await cutOff(rig, dice, dice.between(200, 2_000))
    const nodes = round % 3 === 0 ? [dice.pick(rig.nodes)] : rig.nodes
    await killMidway(rig, dice, dice.pick(EVERYWHERE), nodes)
    kills += nodes.length
  }
  return [kills, cuts]
}

/** Ends the wait of those who have bought nothing since they came in. All others must go on by themselves. */
async function close(rig: Rig, dice: Dice, journey: Journey, travellers: Traveller[], meanwhile: () => Promise<void>) {
  await until(async () => (await runsOf(rig, journey)).length === travellers.length, SETTLED_MS)
  const buyers = await rig.database.db.query<{ userId: string }>(sql`
    select r.user_id from journey_runs r
    join journeys j on j.app_id = ${rig.keys.appId} and j.id = r.journey_id
    join events e on e.app_id = ${rig.keys.appId} and e.user_id = r.user_id and e.name = 'bought'
    where r.app_id = ${rig.keys.appId} and r.journey_id = ${journey.id} and e.at >= greatest(r.entered_at, j.started_at)`)
  const isBuyer = new Set(buyers.map(({ userId }) => userId))
  await Promise.all([
    meanwhile(),
    ...travellers
      .filter(({ id }) => !isBuyer.has(id))
      .map(async (it) => {
        await pause(dice.between(0, ROUNDS.after * 2_000))
        await bring(rig, dice, ...happens(rig, it, 'closed'))
      }),
  ])
}

test('servers that are killed while a journey is activated admit everybody who is meant, once', async () => {
  const dice = throwDice('activation')
  const rig = await openRig({ recipients: 0, env: ENV })
  const { keys, database } = rig
  await subscribeMailboxes(rig, MEMBERS)
  await database.db.query(sql`update users set tags = '{"plan": "gold"}' where app_id = ${keys.appId}`)
  await database.db.query(sql`vacuum analyze users`)
  const joiners = await admit(rig, JOINERS)
  const segmentId = await aSegment(rig, 'plan', 'gold')
  const began = performance.now()
  const journey = await activate(rig, {
    name: 'all',
    audience: { kind: 'segment', included_segment_ids: [segmentId] },
    nodes: [{ kind: 'wait', duration_seconds: 1 }],
  })
  const joining = Promise.all(
    joiners.map(async (it) => {
      await pause(dice.between(0, 3_000))
      await bring(rig, dice, ...goesGold(rig, it))
    }),
  )
  let hits = 0
  for (let last = ''; ; ) {
    // Three kills without any progress between them, and the work would be taken for what ends its servers.
    await until(async () => (await progressOf(rig, journey)) !== last, SETTLED_MS)
    await pause(dice.between(0, 200))
    last = await progressOf(rig, journey)
    if (last === 'active') break
    await killMidway(rig, dice, dice.pick(['journey_runs', 'journey_counts']))
    hits++
  }
  await joining
  // Who came in while nobody listened yet is found a minute later; here at once.
  await database.db.query(sql`
    update jobs set run_at = now() where app_id = ${keys.appId} and name = 'journeys.sweep' and state = 'ready'`)
  await until(async () => (await countRuns(rig, journey)) === MEMBERS + JOINERS, SETTLED_MS)
  await killMidway(rig, dice, dice.pick(['journey_runs', 'journey_counts', 'jobs']))
  await untilQuiet(rig, SETTLED_MS)
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  console.log(`activation: ${MEMBERS} members, ${hits} kills of both while it was under way, quiet after ${seconds} s`)
  expect(hits).toBeGreaterThan(0)

  const runs = await runsOf(rig, journey)
  const users = await database.db.query<{ id: string }>(sql`select id from users where app_id = ${keys.appId}`)
  expect(new Set(runs.map(({ userId }) => userId))).toEqual(new Set(users.map(({ id }) => id)))
  expect(runs.length).toBe(users.length)
  expect(new Set(runs.map(({ state }) => state))).toEqual(new Set(['completed']))
  await expectStats({ rig, journey }, runs)
}, 3_600_000)

/** How far the activation has come. */
async function progressOf({ database: { db }, keys }: Rig, { id }: Journey): Promise<string> {
  const [found] = await db.query<{ progress: string }>(sql`
    select case when state = 'active' then 'active' else concat_ws(' ', is_cleared, entered_to) end as progress
    from journeys where app_id = ${keys.appId} and id = ${id}`)
  return found?.progress ?? ''
}

async function countRuns({ database: { db }, keys }: Rig, { id }: Journey): Promise<number> {
  const [found] = await db.query<{ count: number }>(sql`
    select count(*) from journey_runs where app_id = ${keys.appId} and journey_id = ${id}`)
  return found?.count ?? 0
}
