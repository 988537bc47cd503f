// Makers for tests about how users come into journeys, and what wakes their runs.

import { expect } from 'vitest'
import { createJourneysContext } from '../src/journeys/context.ts'
import { entryHandlers } from '../src/journeys/entry/handlers.ts'
import { ADVANCE_RUNS } from '../src/journeys/jobs.ts'
import { createRunsContext } from '../src/journeys/runs/context.ts'
import { runHandlers } from '../src/journeys/runs/handlers.ts'
import { RUN_SHARDS, type RunEvent, shardAt } from '../src/journeys/runs/run.ts'
import { journeyHandlers } from '../src/journeys/states/activate.ts'
import type { Clock } from '../src/lib/clock.ts'
import { newId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { secretBox } from '../src/lib/secrets.ts'
import { createWorker } from '../src/queue/work.ts'
import { createMerger } from '../src/storage/merge.ts'
import { sql } from '../src/storage/sql.ts'
import type { TestApp } from './app.ts'
import { anEngine, fakeSender, theRenderer } from './engine.ts'
import { aJourney, aWait, update, view } from './journeys.ts'
import { aSegment, tagIs } from './segments.ts'
import { aName, anEmail, aUser } from './users.ts'

/** The same server, for an app of its own. */
export async function anAppOf(app: TestApp): Promise<TestApp> {
  const tenant = await app.anotherTenant()
  const headers = { authorization: `Key ${tenant.key}` }
  const request: TestApp['request'] = (path, init = {}) =>
    app.request(path, { ...init, headers: { ...headers, ...init.headers } })
  return { ...app, tenant, request, app: (path, init) => request(`/apps/${tenant.id}${path}`, init) }
}

/** What runs journeys, and nothing else. Without `moves` nobody moves runs: they stay as they were woken. */
export function aJourneyWorker(
  app: Pick<TestApp, 'db'>,
  clock: Clock,
  moves = true,
  level: 'error' | 'silent' = 'error',
) {
  const parts = { db: app.db, clock, newId, merger: createMerger({ slots: 1 }), log: createLog(level) }
  const renderer = theRenderer()
  const runs = createRunsContext({ ...parts, renderer, engine: anEngine({ db: app.db, clock, sender: fakeSender() }) })
  const journeys = createJourneysContext({
    ...parts,
    renderer,
    secrets: secretBox('the secret key of the tests'),
    sendWebhook: () => Promise.reject(new Error('nobody is told')),
    minWaitSeconds: 60,
  })
  const handlers = {
    ...journeyHandlers(journeys, runs.engine.scanAudience),
    ...runHandlers(runs, journeys),
    ...entryHandlers(runs),
    ...(!moves && { [ADVANCE_RUNS]: { run: async () => {} } }),
  }
  return { runs, work: () => createWorker({ ...parts, handlers }).runDue() }
}

type Fields = Record<string, unknown>

/** Active, and as it is answered. */
export async function anActiveJourney(app: TestApp, work: () => Promise<unknown>, fields: Fields) {
  const { id } = await aJourney(app, { nodes: [aWait()], ...fields })
  const answer = await update(app, id, { state: 'active' })
  if (answer.status !== 200) throw new Error(`not activated: ${JSON.stringify(answer.body)}`)
  await work()
  const { body } = await view(app, id)
  expect(body.state).toBe('active')
  return body
}

/** A segment of a tag of its own, and the tags of who is in it. */
export async function aTagSegment(app: TestApp) {
  const tags = { [aName('tag')]: 'yes' }
  const [[key, value]] = Object.entries(tags) as [[string, string]]
  return { id: await aSegment(app, [tagIs(key, value)]), tags, untagged: { [key]: '' } }
}

export const aReachableUser = (app: TestApp, tags: object = {}) =>
  aUser(app, { properties: { tags }, subscriptions: [{ type: 'Email', token: anEmail() }] })

export const tag = (app: TestApp, user: { path: string }, tags: object) =>
  app.app(user.path, { method: 'PATCH', body: { properties: { tags } } })

export type SeenRun = {
  id: string
  userId: string
  state: string
  nodeId: string | null
  dueAt: Date | null
  wantsExit: boolean
  slot: string
  entryEvent: RunEvent | null
}

export const runsOf = ({ db, tenant }: TestApp, journeyId: string) =>
  db.query<SeenRun>(sql`
    select id, user_id, state, node_id, due_at, wants_exit, slot, entry_event from journey_runs
    where app_id = ${tenant.id} and journey_id = ${journeyId} order by entered_at, user_id`)

/** The numbers of the journey itself, which must agree with its runs. */
export async function countsOf(app: TestApp, journeyId: string) {
  const { db, tenant } = app
  const found = await db.query<{ fact: string; total: number }>(sql`
    select fact, sum(count) as total from journey_counts
    where app_id = ${tenant.id} and journey_id = ${journeyId} and place_id = ${journeyId} group by fact`)
  const counts = Object.fromEntries(found.map(({ fact, total }) => [fact, total]))
  const live = (await runsOf(app, journeyId)).filter(({ state }) => state === 'waiting').length
  expect(counts.started ?? 0).toBe((counts.completed ?? 0) + (counts.exited_early ?? 0) + live)
  return counts
}

/** A run as if it had come as far as a node, where it rests. */
export async function putRun(app: TestApp, clock: Clock, journeyId: string, userId: string, path: string[]) {
  const id = newId()
  const now = clock.now()
  // Another than of those who come in now: who wakes it has to look.
  const part = (shardAt(now) + 1) % RUN_SHARDS.length
  await app.db.query(sql`
    insert into journey_runs (app_id, id, journey_id, user_id, part, slot, node_id, arrived_at, entered_at, path, path_at)
    values (${app.tenant.id}, ${id}, ${journeyId}, ${userId}, ${part}, ${id}, ${path.at(-1)}, ${now}, ${now},
      ${path}, ${path.map(() => now)})`)
  return id
}

/** Until so many connections of this database wait for a lock. */
export async function untilBlocked({ db }: Pick<TestApp, 'db'>, count = 1): Promise<void> {
  for (;;) {
    const [row] = await db.query<{ total: number }>(sql`
      select count(*) as total from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
    if ((row?.total ?? 0) >= count) return
  }
}
