// Finds changes that no feed records: a user joins or leaves a segment because time passes or the segment is edited, or a transaction
// began before users were watched. A sweep looks at all users whom a journey may concern, lets them enter and wakes their runs. It may
// be interrupted and repeated at any point.

import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import type { JobHandler, JobRun } from '../../queue/job.ts'
import { type AudienceMember, pageStatement } from '../../segments/audience.ts'
import { dependsOnTime, type FilterNode } from '../../segments/filters/tree.ts'
import { filterTreeOf, getSegmentsById } from '../../segments/read.ts'
import { AUDIENCE_SCAN_HANDLER } from '../../segments/scan.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { Db } from '../../storage/db.ts'
import { sweepJob } from '../jobs.ts'
import type { JourneyId } from '../journey.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import { splitIntoStatements } from '../runs/membership.ts'
import { findOutside, findRunsAfter, type RunCursor } from '../runs/run-store.ts'
import type { EntryContext } from './context.ts'
import { advanceJobsFor, countEntered, enterJourneys } from './enter-users.ts'
import { findMetDemands } from './judge-demands.ts'
import { dependsOnSegments, isRunMoved, mayMoveUser, segmentDemandsOf, triggersOf } from './triggers.ts'
import { addUser, lockRuns, NO_EXITS, type UsersByJourney, wakeSleeping } from './wake-runs.ts'

const SUBSCRIPTIONS_AT_ONCE = 10_000
const RUNS_AT_ONCE = 2_000
const EVERY_MINUTE_MS = 60_000
const HOURLY_MS = 3_600_000
/** A sweep that takes a second runs every minute: whatever its size, it uses a sixtieth of one worker. */
const REST_FACTOR = 60

export const sweepHandler = (ctx: EntryContext): JobHandler => ({
  timeLimitMs: 3_600_000,
  ...AUDIENCE_SCAN_HANDLER,
  run: (work) => sweepJourney(ctx, work),
})

async function sweepJourney(ctx: EntryContext, work: JobRun): Promise<void> {
  const { appId, key: id, payload } = work.job
  const began = ctx.now()
  const journey = await ctx.live.find(ctx.db, appId, id)
  if (!journey) return
  const ears = triggersOf(journey)
  const ids = segmentDemandsOf(ears).flatMap(({ included, excluded }) => [...included, ...excluded])
  if (ids.length === 0) return
  const trees = await findTrees(ctx.db, appId, ids)
  const sweep: Sweep = { ctx, work, appId, id, now: began }
  if (ears.audience)
    await sweepAudience(
      sweep,
      ears.audience.included.flatMap((id) => trees.get(id) ?? []),
    )
  if (dependsOnSegments(ears)) await sweepRuns(sweep)
  const now = ctx.now()
  const { isFresh } = (payload ?? {}) as { isFresh?: boolean }
  const isFrequent = isFresh || [...trees.values()].some(dependsOnTime)
  const restMs = Math.max(isFrequent ? EVERY_MINUTE_MS : HOURLY_MS, REST_FACTOR * (now.getTime() - began.getTime()))
  const next = work.isStopping() ? now : new Date(now.getTime() + restMs)
  await ctx.queue.enqueue(ctx.db, [sweepJob(appId, id, next)])
}

type Sweep = { ctx: EntryContext; work: JobRun; appId: AppId; id: JourneyId; now: Date }

async function findTrees(db: Db, appId: AppId, ids: readonly SegmentId[]): Promise<Map<SegmentId, FilterNode>> {
  const found = await getSegmentsById({ db }, appId, [...new Set(ids)])
  return new Map([...found].map(([id, segment]) => [id, filterTreeOf(segment)]))
}

const canContinue = ({ work }: Sweep) => !work.isStopping() && !work.signal.aborted

/** One transaction of a sweep; false when the journey is no longer active. */
async function step(sweep: Sweep, run: (db: Db, journey: CompiledJourney) => Promise<void>): Promise<boolean> {
  const { ctx, work, appId, id } = sweep
  const isDone = await ctx.db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return false
    const journey = await ctx.live.lockForShare(db, appId, id)
    if (!journey) return false
    await run(db, journey)
    return true
  })
  if (isDone) await work.recordProgress(ctx.db)
  return isDone
}

/** Only users without a run are evaluated completely. */
async function sweepAudience(sweep: Sweep, included: readonly FilterNode[]): Promise<void> {
  for (const list of splitIntoStatements(included.map((tree) => ({ tree }))))
    if (!(await sweepMembers(sweep, { kind: 'any', of: list.map(({ tree }) => tree) }))) return
}

/** By ranges of subscriptions; false when the sweep must stop. */
async function sweepMembers(sweep: Sweep, node: FilterNode): Promise<boolean> {
  const { ctx, work, appId, id, now } = sweep
  const scope = { appId, now }
  let after: SubscriptionId | undefined
  let size: number | undefined
  do {
    const { rows, upTo, nextSize } = await ctx.engine.scanAudience<AudienceMember>({
      scope,
      after,
      maxSize: SUBSCRIPTIONS_AT_ONCE,
      size,
      signal: work.signal,
      statement: (range) => pageStatement(node, scope, range),
    })
    const members = [...new Set(rows.map(({ userId }) => userId))]
    const found = members.length > 0 ? await findOutside(ctx.db, appId, id, members) : []
    const outside = found.map(({ userId }) => userId)
    if (outside.length > 0 && !(await step(sweep, (db, journey) => letIn(sweep, db, journey, outside)))) return false
    ;[after, size] = [upTo, nextSize]
  } while (after !== undefined && canContinue(sweep))
  return canContinue(sweep)
}

async function letIn({ ctx, appId }: Sweep, db: Db, journey: CompiledJourney, users: readonly UserId[]): Promise<void> {
  const now = ctx.now()
  const { audience } = triggersOf(journey)
  if (!audience) return
  const holds = await findMetDemands(db, appId, [audience], users, now)
  const members = users.filter((userId) => holds(userId, audience))
  const list = members.map((userId) => ({ id: ctx.newId(), journeyId: journey.id, userId }))
  const entered = await enterJourneys(db, appId, list, now)
  await countEntered(db, appId, entered)
  await ctx.queue.enqueue(db, advanceJobsFor(appId, new Map([[journey.id, journey]]), entered))
}

async function sweepRuns(sweep: Sweep): Promise<void> {
  const { ctx, appId, id } = sweep
  let after: RunCursor | undefined
  let isDone = true
  do {
    const runs = await findRunsAfter(ctx.db, appId, id, after, RUNS_AT_ONCE)
    const users = [...new Set(runs.map(({ userId }) => userId))]
    if (users.length > 0) isDone = await step(sweep, (db, journey) => wakeMoved(sweep, db, journey, users))
    after = runs.length === RUNS_AT_ONCE ? runs.at(-1) : undefined
  } while (after !== undefined && isDone && canContinue(sweep))
}

async function wakeMoved(
  { ctx, appId }: Sweep,
  db: Db,
  journey: CompiledJourney,
  users: readonly UserId[],
): Promise<void> {
  const now = ctx.now()
  const ears = triggersOf(journey)
  const holds = await findMetDemands(db, appId, segmentDemandsOf(ears), users, now)
  const pairs: UsersByJourney = new Map()
  for (const userId of users) if (mayMoveUser(ears, holds, userId)) addUser(pairs, journey.id, userId)
  const moved = (await lockRuns(db, appId, pairs)).filter((run) => isRunMoved(ears, holds, run))
  const woken = await wakeSleeping(db, appId, moved, NO_EXITS, now)
  await ctx.queue.enqueue(db, advanceJobsFor(appId, new Map([[journey.id, journey]]), woken))
}
