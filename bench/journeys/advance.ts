// Runs that are due move on, all of a journey at once, by the server, against plain batches of updates of the same rows, by hand and
// over one connection. What is moved is put back by SQL before each time, so that both begin with the same rows.

import type pg from 'pg'
import { advanceJobs } from '../../server/src/journeys/jobs.ts'
import { RUN_SHARDS } from '../../server/src/journeys/runs/run.ts'
import { systemClock } from '../../server/src/lib/clock.ts'
import { newId } from '../../server/src/lib/ids.ts'
import { createQueue } from '../../server/src/queue/enqueue.ts'
import { createPool } from '../../server/src/storage/db.ts'
import { make } from '../kit/make.ts'
import type { Carillon } from '../kit/processes.ts'
import { median, type Row, round } from '../kit/report.ts'
import { activate, createJourney, until, waitingAt } from './activate.ts'

const HOUR = 3_600
const wait = (duration_seconds = HOUR) => ({ kind: 'wait', duration_seconds })

/** Two waits, then a split with a wait in each branch. */
export const WAITS = [
  wait(),
  wait(),
  {
    kind: 'split_range',
    randomize_on_entry: false,
    branches: [
      { weight: 50, nodes: [wait()] },
      { weight: 50, nodes: [wait()] },
    ],
  },
  wait(),
]

// biome-ignore lint/suspicious/noExplicitAny: an answer is read as the JSON it is
type Answered = any

type Bench = { carillon: Carillon; connection: pg.ClientConfig; client: pg.Client; runs: number }

/** Everybody rests at a node, and has done so long enough. */
async function putBack({ carillon: { appId }, client }: Bench, journeyId: string, nodeId: string) {
  await client.query(
    `update journey_runs
     set state = 'waiting', ended_at = null, node_id = $3, arrived_at = entered_at, until_at = entered_at, due_at = entered_at,
       path = array[$3::uuid], path_at = array[entered_at]
     where app_id = $1 and journey_id = $2`,
    [appId, journeyId, nodeId],
  )
  await client.query("delete from journey_counts where app_id = $1 and journey_id = $2 and fact = 'waiting'", [
    appId,
    journeyId,
  ])
  await client.query(
    `insert into journey_counts (app_id, journey_id, place_id, fact, part, count)
     select app_id, journey_id, node_id, 'waiting', part, count(*) from journey_runs
     where app_id = $1 and journey_id = $2 group by app_id, journey_id, node_id, part`,
    [appId, journeyId],
  )
  await client.query('vacuum analyze journey_runs')
  await client.query('checkpoint')
}

/** Seconds until the server has moved everybody away from a node. */
async function advance(bench: Bench, journey: Answered, nodeId: string): Promise<number> {
  const { carillon, connection, client } = bench
  const { appId } = carillon
  const clock = systemClock()
  const db = createPool({ connection, clock, size: 1 })
  try {
    await putBack(bench, journey.id, nodeId)
    const began = performance.now()
    await createQueue({ clock, newId }).enqueue(db, advanceJobs(appId, journey))
    await until(async () => (await waitingAt(client, appId, [nodeId])) === 0, 'the last run')
    const seconds = (performance.now() - began) / 1_000
    const { rows } = await client.query(
      'select count(*)::integer as count from journey_runs where app_id = $1 and journey_id = $2 and due_at <= $3',
      [appId, journey.id, clock.now()],
    )
    if (rows[0].count > 0) throw new Error(`${rows[0].count} runs were left behind`)
    return seconds
  } finally {
    await db.close()
  }
}

const BATCH = 2_000
// By parts, as the server does: there is no index for all of a journey, and to sort everything for each batch would be no reference.
const PLAIN = `
  update journey_runs
  set node_id = $5, arrived_at = $4, until_at = $6, due_at = $6, path = path || $7::uuid[],
    path_at = path_at || array_fill($4::timestamptz, array[cardinality($7::uuid[])])
  where app_id = $1 and ctid = any(array(
    select ctid from journey_runs where app_id = $1 and journey_id = $2 and part = $3 and due_at <= $4
    order by due_at limit ${BATCH} for update skip locked))`

/** Seconds for the same by hand: everybody at `from` goes the same way. */
async function advanceByHand(bench: Bench, journey: Answered, from: string, trail: string[]): Promise<number> {
  const { carillon, client, runs } = bench
  await putBack(bench, journey.id, from)
  const began = performance.now()
  const now = new Date()
  const then = new Date(now.getTime() + HOUR * 1_000)
  let moved = 0
  for (const part of RUN_SHARDS) {
    let count: number | null
    do {
      const values = [carillon.appId, journey.id, part, now, trail.at(-1), then, trail]
      count = (await client.query(PLAIN, values)).rowCount
      moved += count ?? 0
    } while (count === BATCH)
  }
  const seconds = (performance.now() - began) / 1_000
  if (moved !== runs) throw new Error(`${moved} of ${runs} were moved by hand`)
  return seconds
}

type Times = { own: number[]; reference: number[] }

const rowOf = (name: string, goal: number | null, runs: number, { own, reference }: Times): Row => ({
  name: `${name}, ${runs} runs, against a plain update`,
  ratio: round(median(own.map((it, i) => (reference[i] as number) / it))),
  goal,
  perSecond: Math.round(runs / median(own)),
  referencePerSecond: Math.round(runs / median(reference)),
})

export async function measureWaits(bench: Bench, journey: Answered, rounds: number): Promise<Row[]> {
  const { carillon, client, runs } = bench
  const [{ id: first }, { id: second }, { id: split, branches }] = journey.nodes
  const inBranches: string[] = branches.map(({ nodes }: Answered) => nodes[0].id)
  const expect = async (nodeIds: string[]) => {
    const there = await waitingAt(client, carillon.appId, nodeIds)
    if (there !== runs) throw new Error(`${there} of ${runs} came to where they were to go`)
  }
  const waits: Times = { own: [], reference: [] }
  const splits: Times = { own: [], reference: [] }
  for (let n = 0; n < rounds; n++) {
    waits.own.push(await advance(bench, journey, first))
    await expect([second])
    waits.reference.push(await advanceByHand(bench, journey, first, [second]))
    splits.own.push(await advance(bench, journey, second))
    await expect(inBranches)
    const [branch] = branches
    splits.reference.push(await advanceByHand(bench, journey, second, [split, branch.id, branch.nodes[0].id]))
  }
  return [rowOf('wait', 0.5, runs, waits), rowOf('split', 0.5, runs, splits)]
}

/** Nobody is there to take it: deliveries are written, and skipped. */
export async function measureSends(bench: Bench): Promise<Row[]> {
  const { carillon, client, runs } = bench
  const { appId } = carillon
  const template = await make(carillon, '/templates', { app_id: appId, name: 'A push', contents: { en: 'Hello' } })
  const nodes = [wait(), { kind: 'send_push', template_id: template.id }]
  const journey = await createJourney(carillon, 'Sends', nodes)
  await activate(carillon, client, journey)
  const [{ id: first }] = journey.nodes
  await until(async () => (await waitingAt(client, appId, [first])) === runs, 'everybody')
  const reference = await advanceByHand(bench, journey, first, [journey.nodes[1].id])
  const seconds = await advance(bench, journey, first)
  const { rows } = await client.query('select count(*)::integer as count from deliveries where app_id = $1', [appId])
  if (rows[0].count !== runs) throw new Error(`${rows[0].count} deliveries for ${runs} runs`)
  return [rowOf('send', null, runs, { own: [seconds], reference: [reference] })]
}
