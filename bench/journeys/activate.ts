// Activation for everybody, until the journey is active: how long it takes against one `insert … select` of the same rows into a
// table with the same columns, key and indexes, and what memory the server has meanwhile.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { newId } from '../../server/src/lib/ids.ts'
import { PATIENCE_MS } from '../kit/broadcast.ts'
import { make } from '../kit/make.ts'
import { type Carillon, residentMb } from '../kit/processes.ts'
import { median, type Row, round } from '../kit/report.ts'

// biome-ignore lint/suspicious/noExplicitAny: an answer is read as the JSON it is
type Answered = any

/** For everybody: seedUsers gives all of them the tag. */
export async function createJourney(carillon: Carillon, name: string, nodes: object[]): Promise<Answered> {
  const { appId } = carillon
  const filters = [{ field: 'tag', key: 'plan', relation: '=', value: 'free' }]
  const segment = await make(carillon, `/apps/${appId}/segments`, { name: newId(), filters })
  const audience = { kind: 'segment', included_segment_ids: [segment.id] }
  return make(carillon, `/apps/${appId}/journeys`, { name, audience, nodes })
}

const changeState = ({ id }: Answered, carillon: Carillon, state: 'active' | 'archived') =>
  make(carillon, `/apps/${carillon.appId}/journeys/${id}`, { state }, 'PATCH')

/** Waits for what comes by itself. */
export async function until(isSo: () => Promise<boolean>, what: string, patienceMs = PATIENCE_MS * 10): Promise<void> {
  for (const began = performance.now(); !(await isSo()); await sleep(20))
    if (performance.now() - began > patienceMs) throw new Error(`${what} does not come`)
}

/** Seconds until it is active, and the most memory that the server had. */
export async function activate(carillon: Carillon, client: pg.Client, journey: Answered) {
  const { appId, pid } = carillon
  let peakMb = 0
  const began = performance.now()
  await changeState(journey, carillon, 'active')
  await until(async () => {
    peakMb = Math.max(peakMb, residentMb(pid))
    const { rows } = await client.query('select state from journeys where app_id = $1 and id = $2', [appId, journey.id])
    return rows[0].state === 'active'
  }, 'an active journey')
  const seconds = (performance.now() - began) / 1_000
  // It would look at everybody once more a minute later, in the middle of something else that is measured.
  await client.query("delete from jobs where app_id = $1 and name = 'journeys.sweep'", [appId])
  return { seconds, peakMb }
}

/** How many rest at a node, as the engine counts them. */
export async function waitingAt(client: pg.Client, appId: string, nodeIds: string[]): Promise<number> {
  const { rows } = await client.query(
    `select coalesce(sum(count), 0)::integer as total from journey_counts
     where app_id = $1 and place_id = any($2::uuid[]) and fact = 'waiting'`,
    [appId, nodeIds],
  )
  return rows[0].total
}

/** Nothing is left of its runs. */
export async function discard(carillon: Carillon, client: pg.Client, journey: Answered): Promise<void> {
  const { appId } = carillon
  await changeState(journey, carillon, 'archived')
  await until(async () => {
    const clears = "select 1 from jobs where app_id = $1 and name = 'journeys.clear'"
    return (await client.query(clears, [appId])).rows.length === 0
  }, 'the end of a journey')
  await client.query('truncate journey_runs, journey_counts')
}

const PLAIN = `
  insert into plain_runs (app_id, id, journey_id, user_id, part, slot, state, due_at, entered_at)
  select s.app_id, gen_random_uuid(), $2, s.user_id, get_byte(uuid_send(s.user_id), 15) % 4,
    '00000000-0000-0000-0000-000000000000', 'waiting', now(), now()
  from (select distinct s.app_id, s.user_id from subscriptions s join users u on u.app_id = s.app_id and u.id = s.user_id
    where s.app_id = $1 and u.tags ->> 'plan' = 'free') s`

/** The last journey stays, with everybody at its first node, which is a wait. */
export async function measureActivation(
  carillon: Carillon,
  client: pg.Client,
  nodes: object[],
  { runs, rounds }: { runs: number; rounds: number },
): Promise<{ row: Row; journey: Answered }> {
  const { appId } = carillon
  await client.query('create table plain_runs (like journey_runs including all)')
  const own: { seconds: number; peakMb: number }[] = []
  const reference: number[] = []
  let journey: Answered
  for (let n = 0; n < rounds; n++) {
    if (journey) await discard(carillon, client, journey)
    await client.query('truncate plain_runs')
    await client.query('checkpoint')
    const began = performance.now()
    const { rowCount } = await client.query(PLAIN, [appId, newId()])
    reference.push((performance.now() - began) / 1_000)
    if (rowCount !== runs) throw new Error(`${rowCount} plain runs of ${runs}`)
    journey = await createJourney(carillon, 'Waits', nodes)
    await client.query('checkpoint')
    own.push(await activate(carillon, client, journey))
    const [{ id: first }] = journey.nodes
    await until(async () => (await waitingAt(client, appId, [first])) === runs, 'everybody')
  }
  await client.query('drop table plain_runs')
  const seconds = median(own.map((it) => it.seconds))
  return {
    journey,
    row: {
      name: `activation for ${runs}, against insert … select`,
      ratio: round(median(own.map((it, i) => (reference[i] as number) / it.seconds))),
      goal: null,
      perSecond: Math.round(runs / seconds),
      referencePerSecond: Math.round(runs / median(reference)),
      seconds: round(seconds),
      microsecondsPerRun: round((seconds * 1_000_000) / runs, 1),
      peakMb: Math.max(...own.map((it) => it.peakMb)),
    },
  }
}
