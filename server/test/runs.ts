// Makers for tests about what becomes of the runs of a journey when it begins, changes and ends. Nobody moves them meanwhile.

import { expect } from 'vitest'
import { createJourneysContext } from '../src/journeys/context.ts'
import { ACTIVATE_JOURNEY, ADVANCE_RUNS, CLEAR_JOURNEY, START_JOURNEY, STOP_JOURNEY } from '../src/journeys/jobs.ts'
import { RUN_SHARDS, type RunState, shardAt } from '../src/journeys/runs/run.ts'
import { EXCLUSIVE_SLOT } from '../src/journeys/runs/run-store.ts'
import { journeyHandlers } from '../src/journeys/states/activate.ts'
import { changeCounts } from '../src/journeys/stats-store.ts'
import type { Clock } from '../src/lib/clock.ts'
import { newId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { secretBox } from '../src/lib/secrets.ts'
import type { JobHandlers } from '../src/queue/job.ts'
import { createWorker } from '../src/queue/work.ts'
import { createScanAudience } from '../src/segments/scan.ts'
import type { Db } from '../src/storage/db.ts'
import { sql } from '../src/storage/sql.ts'
import type { Tenant, TestApp } from './app.ts'
import { unshared } from './engine.ts'

/** The same server, for an app of its own. */
export async function ofAnotherApp(app: TestApp): Promise<TestApp> {
  const tenant: Tenant = await app.anotherTenant()
  const headers = { authorization: `Key ${tenant.key}` }
  const request: TestApp['request'] = (path, init = {}) =>
    app.request(path, { ...init, headers: { ...headers, ...init.headers } })
  return { ...app, tenant, request, app: (path, init) => request(`/apps/${tenant.id}${path}`, init) }
}

export const aContext = (db: Db, clock: Clock) =>
  createJourneysContext({
    db,
    clock,
    newId,
    renderer: { check: async () => {} },
    secrets: secretBox('the secret key of the tests'),
    sendWebhook: () => Promise.reject(new Error('nobody is told')),
    minWaitSeconds: 60,
  })

/** Begins and ends journeys, and notes which parts were to be moved. `through`: the way to the database of what it does. */
export function aKeeper(app: TestApp, clock: Clock, through: Db = app.db) {
  const moved: string[] = []
  const all = journeyHandlers(aContext(through, clock), createScanAudience(unshared(through)))
  const handlers: JobHandlers = {
    ...Object.fromEntries(
      [ACTIVATE_JOURNEY, CLEAR_JOURNEY, START_JOURNEY, STOP_JOURNEY].map((name) => [
        name,
        all[name] as JobHandlers[string],
      ]),
    ),
    [ADVANCE_RUNS]: { run: async ({ job }) => void moved.push(job.key) },
  }
  const worker = createWorker({ db: app.db, clock, log: createLog('silent'), handlers })
  return { run: () => worker.runDue(), moved }
}

export type SeenRun = {
  id: string
  userId: string
  state: RunState
  nodeId: string | null
  arrivedAt: Date | null
  untilAt: Date | null
  dueAt: Date | null
  endedAt: Date | null
  slot: string
}

export const runsOf = ({ db, tenant }: TestApp, journeyId: string) =>
  db.query<SeenRun>(sql`
    select id, user_id, state, node_id, arrived_at, until_at, due_at, ended_at, slot from journey_runs
    where app_id = ${tenant.id} and journey_id = ${journeyId} order by user_id, slot`)

/** How many runs are in which state. */
export const tallyRuns = (runs: readonly SeenRun[]) => {
  const counts: Partial<Record<RunState, number>> = {}
  for (const { state } of runs) counts[state] = (counts[state] ?? 0) + 1
  return counts
}

export const countsOf = async ({ db, tenant }: TestApp, journeyId: string) => {
  const found = await db.query<{ name: string; total: number }>(sql`
    select place_id || ' ' || fact as name, sum(count) as total from journey_counts
    where app_id = ${tenant.id} and journey_id = ${journeyId} group by place_id, fact`)
  return new Map(found.map(({ name, total }) => [name, total]))
}

/** That the numbers of a journey say what its runs say. Answers the runs. */
export async function expectExact(app: TestApp, journeyId: string): Promise<SeenRun[]> {
  const runs = await runsOf(app, journeyId)
  const counts = await countsOf(app, journeyId)
  const live = runs.filter(({ state }) => state === 'waiting')
  const at = (place: string, fact: string) => counts.get(`${place} ${fact}`) ?? 0
  const stopped = runs.filter(({ state }) => state === 'stopped').length
  expect(at(journeyId, 'started')).toBe(
    at(journeyId, 'completed') + at(journeyId, 'exited_early') + live.length + stopped,
  )
  const waiting = Map.groupBy(
    live.filter(({ nodeId, arrivedAt }) => nodeId && arrivedAt),
    ({ nodeId }) => nodeId as string,
  )
  const places = new Set([...waiting.keys(), ...[...counts.keys()].map((name) => name.split(' ')[0] as string)])
  for (const place of places) expect(at(place, 'waiting')).toBe(waiting.get(place)?.length ?? 0)
  return runs
}

export type RunDraft = {
  nodeId?: string | null
  state?: RunState
  hasArrived?: boolean
  untilAt?: Date | null
  endedAt?: Date
  enteredAt?: Date
  path?: string[]
  /** By an event: does not keep its user out. */
  isByEvent?: boolean
}

/** Puts a run there, as if it had come so far, with its numbers. */
export async function putRun(app: TestApp, clock: Clock, journeyId: string, userId: string, draft: RunDraft = {}) {
  const { db, tenant } = app
  const { nodeId = null, state = 'waiting', hasArrived = nodeId !== null && state === 'waiting', path = [] } = draft
  const id = newId()
  const now = clock.now()
  const endedAt = state === 'waiting' || state === 'barred' ? null : (draft.endedAt ?? now)
  // Another than of those who come in now: who moves it has to look.
  const part = (shardAt(now) + 1) % RUN_SHARDS.length
  const event = draft.isByEvent ? { id: newId(), name: 'bought', at: now.toISOString(), properties: {} } : null
  await db.query(sql`
    insert into journey_runs (app_id, id, journey_id, user_id, part, slot, state, node_id, arrived_at, until_at, due_at,
      entered_at, ended_at, entry_event, path, path_at)
    values (${tenant.id}, ${id}, ${journeyId}, ${userId}, ${part}, ${event ? id : EXCLUSIVE_SLOT}, ${state}, ${nodeId},
      ${hasArrived ? now : null}, ${draft.untilAt ?? null}, ${draft.untilAt ?? null}, ${draft.enteredAt ?? now}, ${endedAt},
      ${event}, ${path}, ${path.map(() => now)})`)
  const counted = { waiting: [], completed: ['completed'], exited: ['exited_early'], stopped: [], barred: [] }[state]
  const facts = state === 'barred' ? [] : ['started', ...counted]
  await changeCounts(db, tenant.id, journeyId, 0, [
    ...facts.map((fact) => ({ placeId: journeyId, fact, by: 1 })),
    ...(nodeId && hasArrived ? [{ placeId: nodeId, fact: 'waiting', by: 1 }] : []),
  ])
  return id
}
