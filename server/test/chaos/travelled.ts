// What must be true of all who travelled when it is over: their ways are ways of the graph, whatever is on a way was done once, and
// the numbers are those of the rows. Read from the rows, from what the box took, and from what people were told.

import { expect } from 'vitest'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import { expectCounted, type Rig } from './rig.ts'
import {
  EXPIRES_SECONDS,
  GRANT_SECONDS,
  type Journey,
  MAIL_SHARE,
  ready,
  type Traveller,
  WAIT_SECONDS,
} from './travellers.ts'

type Run = {
  id: string
  userId: string
  state: string
  path: string[]
  pathAt: Date[]
  endedAt: Date | null
  /** From when on what its user does counts. */
  since: Date
}

export const runsOf = ({ database: { db }, keys }: Rig, journey: Journey) =>
  db.query<Run>(sql`
    select r.id, r.user_id, r.state, r.path, r.path_at, r.ended_at,
      coalesce((r.entry_event ->> 'at')::timestamptz, greatest(r.entered_at, j.started_at)) as since
    from journey_runs r join journeys j on j.app_id = ${keys.appId} and j.id = r.journey_id
    where r.app_id = ${keys.appId} and r.journey_id = ${journey.id}`)

/** No run is under way, nothing waits to be told, and no work is being done or was given up. */
export async function untilQuiet({ database: { db }, keys }: Rig, deadlineMs: number): Promise<void> {
  const open = () =>
    db.query<{ what: string; count: number }>(sql`
      select 'runs' as what, count(*) from journey_runs where app_id = ${keys.appId} and state = 'waiting' having count(*) > 0
      union all select 'news', count(*) from user_news where app_id = ${keys.appId} having count(*) > 0
      union all select 'calls', count(*) from journey_calls where app_id = ${keys.appId} having count(*) > 0
      union all select 'deliveries', count(*) from deliveries
        where app_id = ${keys.appId} and state = 'pending' having count(*) > 0
      union all select concat_ws(' ', 'job', name, state, crashes, last_error), count(*) from jobs
        where app_id = ${keys.appId} and state <> 'ready' group by name, state, crashes, last_error`)
  await until(async () => (await open()).length === 0, deadlineMs).catch(async (error) => {
    throw new Error(`${error.message}; open: ${JSON.stringify(await open())}`)
  })
}

/** A way through the nodes as far as it goes; undefined if there is none such. */
type Way = { rest: readonly string[]; hasEnded: boolean }

// biome-ignore lint/suspicious/noExplicitAny: nodes as they were answered
function walk(nodes: readonly any[], path: readonly string[]): Way | undefined {
  let rest = path
  for (const node of nodes) {
    if (rest[0] !== node.id) return undefined
    rest = rest.slice(1)
    if (!node.branches) continue
    const branch = node.branches.find(({ id }: { id: string }) => id === rest[0])
    if (branch) {
      const inside = walk(branch.nodes, rest.slice(1))
      if (!inside || inside.hasEnded) return inside
      rest = inside.rest
    } else if (node.kind !== 'wait_until' || !node.expiration) return undefined
    else if (node.expiration.exits) return { rest, hasEnded: true }
  }
  return { rest, hasEnded: false }
}

/** By the order of the tree. */
// biome-ignore lint/suspicious/noExplicitAny: nodes as they were answered
const flat = (nodes: readonly any[]): any[] =>
  nodes.flatMap((node) => [node, ...(node.branches ?? []).flatMap((branch: { nodes: object[] }) => flat(branch.nodes))])

export type Travelled = { rig: Rig; journey: Journey; travellers: Traveller[] }

export async function expectTravelled(travelled: Travelled): Promise<Run[]> {
  const { rig, journey, travellers } = travelled
  const runs = await runsOf(rig, journey)
  // Everybody once.
  expect(runs.map(({ userId }) => userId).sort()).toEqual(travellers.map(({ id }) => id).sort())
  for (const run of runs) expectLegal(journey, run)
  await expectPurchases(travelled, runs)
  await expectTags(travelled, runs)
  await expectGrants(travelled, runs)
  await expectCalls(travelled, runs)
  await expectStats(travelled, runs)
  return runs
}

function expectLegal({ nodes }: Journey, { id, state, path, pathAt }: Run) {
  const way = walk(nodes, path)
  const told = { id, state, path: path.length, way }
  expect(told).toEqual({ ...told, way: { rest: [], hasEnded: state === 'exited' } })
  expect(['completed', 'exited']).toContain(state)
  expect(pathAt.length).toBe(path.length)
  for (const [n, at] of pathAt.entries()) {
    const before = pathAt[n - 1] ?? at
    const rest = nodes.some((it: { id: string; kind: string }) => it.kind === 'wait' && it.id === path[n - 1])
    expect(at.getTime() - before.getTime()).toBeGreaterThanOrEqual(rest ? WAIT_SECONDS * 1_000 : 0)
  }
  // The tag of the one branch is what the other asks for.
  const taken = (kind: string) => {
    const node = nodes.find((it: { kind: string }) => it.kind === kind)
    return node.branches.findIndex(({ id }: { id: string }) => path.includes(id))
  }
  expect(taken('yes_no')).toBe(taken('split_range'))
}

/** Whoever bought in time was seen to, and nobody else. */
async function expectPurchases({ rig, journey, travellers }: Travelled, runs: readonly Run[]) {
  const { database, keys } = rig
  const bought = new Map(
    (
      await database.db.query<{ userId: string; at: Date }>(sql`
        select user_id, at from events where app_id = ${keys.appId} and name = 'bought'`)
    ).map(({ userId, at }) => [userId, at]),
  )
  const node = journey.nodes.find(({ kind }: { kind: string }) => kind === 'wait_until')
  const known = new Map(travellers.map(({ id, boughtBy }) => [id, boughtBy]))
  for (const { id, userId, path, pathAt, since, endedAt } of runs) {
    const at = bought.get(userId)
    const here = path.indexOf(node.id)
    // What comes after the time is over does not count, even where nobody looked before it came.
    const over = node.expiration ? (pathAt[here] as Date).getTime() + EXPIRES_SECONDS * 1_000 : Infinity
    const counts = at !== undefined && at >= since && at.getTime() <= over
    const wasSeen = path[here + 1] === node.branches[0].id
    if (wasSeen) expect({ id, counts }).toEqual({ id, counts: true })
    else {
      // The purchase that a server knew of before the run went on without it.
      const left = (pathAt[here + 1] ?? endedAt)?.getTime() ?? 0
      expect({ id, wasMissed: counts && (known.get(userId) ?? Infinity) < left }).toEqual({ id, wasMissed: false })
    }
    const rested = ((pathAt[here + 1] ?? endedAt)?.getTime() ?? 0) - (pathAt[here] as Date).getTime()
    if (path[here + 1] === undefined) expect(rested).toBeGreaterThanOrEqual(EXPIRES_SECONDS * 1_000)
  }
}

/** What the tag nodes on the ways say, and each of them said it once. */
async function expectTags({ rig: { database, keys }, journey }: Travelled, runs: readonly Run[]) {
  const found = await database.db.query<{ id: string; tags: Record<string, string> }>(sql`
    select u.id, u.tags from users u where u.app_id = ${keys.appId}`)
  const tagsOf = new Map(found.map(({ id, tags }) => [id, tags]))
  const setters = flat(journey.nodes).filter(({ kind }) => kind === 'tag')
  for (const { id, userId, path } of runs) {
    const owed = setters
      .filter((node) => path.includes(node.id))
      .flatMap(({ assignments }) => Object.entries(assignments as Record<string, string>))
      .map(([key, value]) => [key, value.includes('plus: 1') ? '1' : value])
    const own = Object.entries(tagsOf.get(userId) ?? {}).filter(([key]) => key.startsWith(`${journey.name}_`))
    expect({ id, tags: own.sort() }).toEqual({ id, tags: owed.sort() })
  }
}

/** Who came by may see it, from the moment of coming by. */
async function expectGrants({ rig: { database, keys }, journey }: Travelled, runs: readonly Run[]) {
  const node = flat(journey.nodes).find(({ kind }) => kind === 'send_iam')
  const granted = await database.db.query<{ userId: string; expiresAt: Date }>(sql`
    select user_id, expires_at from in_app_grants
    where app_id = ${keys.appId} and in_app_message_id = ${node.iam_id} order by user_id`)
  const owed = runs
    .filter(({ path }) => path.includes(node.id))
    .map(({ userId, path, pathAt }) => {
      const at = pathAt[path.indexOf(node.id)] as Date
      return { userId, expiresAt: new Date(at.getTime() + GRANT_SECONDS * 1_000) }
    })
  expect(granted).toEqual(owed.sort((a, b) => (a.userId < b.userId ? -1 : 1)))
}

/** The receiver was told of every run, under one id however often. */
async function expectCalls({ rig, journey }: Travelled, runs: readonly Run[]) {
  const node = flat(journey.nodes).find(({ kind }) => kind === 'send_webhook')
  const ids = new Map<string, Set<string | null>>()
  for (const { channel, message_id, text } of await rig.taken()) {
    if (channel !== 'webhook') continue
    const { data } = JSON.parse(text ?? '')
    if (data.journey_id !== journey.id) continue
    expect(data.node_id).toBe(node.id)
    ids.set(data.run_id, (ids.get(data.run_id) ?? new Set()).add(message_id))
  }
  expect([...ids].filter(([, list]) => list.size !== 1)).toEqual([])
  expect([...ids.keys()].sort()).toEqual(runs.map(({ id }) => id).sort())
}

export async function expectStats({ rig, journey }: Pick<Travelled, 'rig' | 'journey'>, runs: readonly Run[]) {
  const stats = await ready(rig, 'GET', `/apps/${rig.keys.appId}/journeys/${journey.id}/stats`)
  const exited = runs.filter(({ state }) => state === 'exited')
  const passed = (id: string) => runs.filter(({ path }) => path.includes(id)).length
  const exitedAt = (id: string) => exited.filter(({ path }) => path.at(-1) === id).length
  const nodes = flat(journey.nodes)
  expect(stats).toEqual({
    id: journey.id,
    started: runs.length,
    completed: runs.length - exited.length,
    exited_early: exited.length,
    nodes: Object.fromEntries(
      nodes.map(({ id, kind }) => [
        id,
        {
          kind,
          waiting: 0,
          completed: passed(id) - exitedAt(id),
          exited_early: exitedAt(id),
          ...(kind.startsWith('send_') && { message_stats: expect.anything() }),
        },
      ]),
    ),
    branches: Object.fromEntries(
      nodes.flatMap(({ branches = [] }) => branches).map(({ id }: { id: string }) => [id, { completed: passed(id) }]),
    ),
  })
}

type Sent = {
  journeyName: string
  messageId: string
  nodeId: string
  runId: string
  subscriptionId: string
  state: string
  provider: string
}

/** For every send node on the way of a run one delivery, taken once or known to be unknown. Answers how many are that, by provider. */
export async function expectSent(rig: Rig, travellers: Traveller[], ways: readonly [Journey, readonly Run[]][]) {
  const { database, keys } = rig
  const stored = await database.db.query<Sent>(sql`
    select j.document ->> 'name' as journey_name, d.message_id, m.node_id, d.run_id, d.subscription_id, d.state,
      split_part(d.line, '/', 2) as provider
    from deliveries d
    join journey_messages m on m.app_id = ${keys.appId} and m.message_id = d.message_id
    join journeys j on j.app_id = ${keys.appId} and j.id = m.journey_id
    where d.app_id = ${keys.appId}`)
  const [all] = await database.db.query<{ count: number }>(sql`
    select count(*) from deliveries where app_id = ${keys.appId}`)
  expect(all?.count).toBe(stored.length)
  const byId = new Map(travellers.map((it) => [it.id, it]))
  const owed = ways.flatMap(([journey, runs]) => {
    const senders = flat(journey.nodes).filter(({ template_id }) => template_id)
    return runs.flatMap(({ id, userId, path }) =>
      senders
        .filter((node) => path.includes(node.id))
        .map((node) => {
          const kind = node.kind as keyof Traveller['subscriptions']
          return `${id} ${node.id} ${byId.get(userId)?.subscriptions[kind].id}`
        }),
    )
  })
  expect(stored.map((it) => `${it.runId} ${it.nodeId} ${it.subscriptionId}`).sort()).toEqual(owed.sort())

  const tokens = new Map(
    travellers.flatMap(({ subscriptions }) =>
      Object.entries(subscriptions).map(([kind, { id, token }]) => [id, { isText: kind === 'send_sms', token }]),
    ),
  )
  const counts = new Map<string, number>()
  for (const { channel, to, message_id, text } of await rig.taken()) {
    if (channel === 'webhook') continue
    const name = `${channel === 'sms' ? text : message_id} ${to}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const unknown = new Map<string, number>()
  const untrue = stored.filter(({ journeyName, messageId, subscriptionId, state, provider }) => {
    const { isText, token } = tokens.get(subscriptionId) ?? {}
    const name = `${isText ? journeyName : messageId} ${token}`
    const count = counts.get(name) ?? 0
    counts.delete(name)
    if (state === 'unknown') unknown.set(provider, (unknown.get(provider) ?? 0) + 1)
    return !(count === 1 && state === 'sent') && !(count <= 1 && state === 'unknown')
  })
  expect({ untrue, unasked: [...counts] }).toEqual({ untrue: [], unasked: [] })
  await expectCounted(rig)
  return unknown
}

/** Within five standard deviations; those are five points where 2,000 were drawn. */
export function expectShares(ways: readonly [Journey, readonly Run[]][]): number {
  const drawn = ways.flatMap(([{ nodes }, runs]) => {
    const [mail] = nodes.find(({ kind }: { kind: string }) => kind === 'split_range').branches
    return runs.map(({ path }) => path.includes(mail.id))
  })
  const share = (100 * drawn.filter(Boolean).length) / drawn.length
  const deviation = Math.sqrt((MAIL_SHARE * (100 - MAIL_SHARE)) / drawn.length)
  expect(Math.abs(share - MAIL_SHARE)).toBeLessThanOrEqual(5 * deviation)
  return share
}
