// Advances the due runs of a journey, a batch in one transaction: their positions, effects, counts and the next job. After a crash
// nothing of the batch is done, and the next worker does it.

import type { AppId } from '../../lib/ids.ts'
import { type AddOptions, findReadyProviders } from '../../messages/expand/add-recipients.ts'
import { prepareUsers } from '../../messages/expand/prepare-candidates.ts'
import type { JobRun } from '../../queue/job.ts'
import type { Db } from '../../storage/db.ts'
import { findExistingUsers } from '../../users/presence-store.ts'
import { advanceJob, readAdvanceKey } from '../jobs.ts'
import type { JourneyId } from '../journey.ts'
import { findSending, sendsHeldUntil } from '../sends/hold.ts'
import { HostsNotLookedUp, MessageNotOpen, openNodeMessage } from '../sends/send.ts'
import { changeCounts } from '../stats-store.ts'
import { type AskingRun, answerQuestions, type RunWithFacts } from './answer-questions.ts'
import { applyEffects } from './apply-effects.ts'
import type { CompiledJourney } from './compile-journey.ts'
import type { RunsContext } from './context.ts'
import { countMoves } from './count-moves.ts'
import { interpretRun, type SendingConditions } from './interpret.ts'
import { reenterUsers } from './reenter.ts'
import type { RunShard } from './run.ts'
import type { RunMove } from './run-move.ts'
import { findNextDue, type LockedRun, lockDue, type RunChange, updateRuns } from './run-store.ts'

const AT_ONCE = 2_000
/** Then it is another app's turn. */
const BATCHES_AT_A_STRETCH = 20

/** Found before the transaction, from others than the database. */
type Beforehand = Pick<AddOptions, 'ready'> & { areLookedUp: boolean }

export const advanceRuns = (ctx: RunsContext) => async (work: JobRun) => {
  const { appId, key } = work.job
  const { journeyId, part } = readAdvanceKey(key)
  const ready = await findReadyProviders(ctx.engine, appId)
  for (let batches = 0; batches < BATCHES_AT_A_STRETCH && !work.isStopping(); batches++) {
    const hasMore = await preparing(ctx, appId, journeyId, (areLookedUp) =>
      ctx.db.transaction(async (db) => {
        const [isMine, journey] = await Promise.all([work.isStillHeld(db), ctx.live.lockForShare(db, appId, journeyId)])
        if (!isMine || !journey) return false
        const hasMore = await advanceBatch(ctx, db, appId, journey, part, { ready, areLookedUp })
        // In the transaction: a batch that advanced runs is not what crashed workers before.
        await work.recordProgress(db)
        return hasMore
      }),
    )
    await ctx.engine.growth.analyzeIfGrown(ctx.now())
    if (!hasMore) return
  }
  const journey = await ctx.live.find(ctx.db, appId, journeyId)
  if (journey) await ctx.queue.enqueue(ctx.db, [advanceJob(appId, journey, part)])
}

/**
 * The first batch of a day at a send node finds that its message is not open, and one that sends email may not know the mail hosts yet.
 * Both are prepared outside the transaction, and the batch is retried.
 */
async function preparing(
  ctx: RunsContext,
  appId: AppId,
  journeyId: JourneyId,
  run: (areLookedUp: boolean) => Promise<boolean>,
): Promise<boolean> {
  for (let areLookedUp = false; ; )
    try {
      return await run(areLookedUp)
    } catch (error) {
      if (error instanceof HostsNotLookedUp) {
        await prepareUsers(ctx.engine, appId, error.userIds)
        areLookedUp = true
        continue
      }
      const journey = error instanceof MessageNotOpen ? await ctx.live.find(ctx.db, appId, journeyId) : undefined
      if (!(error instanceof MessageNotOpen) || !journey) throw error
      for (const key of error.keys) await openNodeMessage(ctx, appId, journey, key)
    }
}

async function advanceBatch(
  ctx: RunsContext,
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  part: RunShard,
  { ready, areLookedUp }: Beforehand,
): Promise<boolean> {
  const now = ctx.now()
  const due = await lockDue(db, appId, journey.id, part, now, AT_ONCE)
  const [waiting, over] = [
    due.filter(({ state }) => state === 'waiting'),
    due.filter(({ state }) => state !== 'waiting'),
  ]
  const sending = waiting.length > 0 ? await findSending(db, appId, journey, now) : undefined
  const present = await findExistingUsers(db, appId, [...new Set(waiting.map(({ userId }) => userId))])
  const moves = [
    ...waiting.filter(({ userId }) => !present.has(userId)).map(leaveEarly),
    ...(await findMoves(
      db,
      appId,
      journey,
      waiting.filter(({ userId }) => present.has(userId)),
      { heldUntil: sending && sendsHeldUntil(sending, now) },
      now,
    )),
  ]
  const mailed = areLookedUp ? [] : moves.filter(sendsMail)
  if (mailed.length > 0) throw new HostsNotLookedUp(mailed.map(({ run }) => run.userId))
  const reentered = await reenterUsers(ctx, db, appId, journey, part, over, now)
  const [, , next] = await Promise.all([
    writeMoves(db, appId, journey, moves, now),
    changeCounts(db, appId, journey.id, part, [...countMoves(journey.id, moves), ...reentered]),
    due.length === AT_ONCE ? now : findNextDue(db, appId, journey.id, part),
  ])
  const hasMore = next !== undefined && next <= now
  // Before the messages, whose jobs others wait for. A worker with more due runs continues without a job.
  if (next && !hasMore) await ctx.queue.enqueue(db, [advanceJob(appId, journey, part, next)])
  const adding = sending && { ready, settings: sending.settings, part }
  await applyEffects(ctx, db, appId, journey, moves, adding, now)
  return hasMore
}

/** The user was deleted; the run is deleted soon. */
const leaveEarly = (run: LockedRun): RunMove => ({
  run,
  outcome: {
    ...{ kind: 'ends', state: 'exited', nodeId: run.nodeId },
    ...{ trail: [], effects: [], completed: [], branches: [], metEvents: [] },
  },
})

const sendsMail = ({ outcome }: RunMove) =>
  outcome.effects.some((effect) => effect.kind === 'send' && effect.channel === 'email')

/** Interprets each run until it rests or ends. Facts are found for all runs that ask together. */
async function findMoves(
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  runs: readonly LockedRun[],
  world: SendingConditions,
  now: Date,
): Promise<RunMove[]> {
  const moves: RunMove[] = []
  let open = runs.map((run): RunWithFacts<LockedRun> => ({ run, known: new Map() }))
  while (open.length > 0) {
    const asked: (AskingRun & { traveller: RunWithFacts<LockedRun> })[] = []
    for (const traveller of open) {
      const outcome = interpretRun(journey, traveller.run, now, traveller.known, world)
      if (outcome.kind === 'asks') asked.push({ traveller, questions: outcome.questions })
      else moves.push({ run: traveller.run, outcome })
    }
    if (asked.length > 0) await answerQuestions(db, appId, journey, asked, now)
    open = asked.map(({ traveller }) => traveller)
  }
  return moves
}

/** Most runs of a batch make the same change, so each change is written once. */
async function writeMoves(
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  moves: readonly RunMove[],
  now: Date,
): Promise<void> {
  if (moves.length === 0) return
  const changes: RunChange[] = []
  const known = new Map<string, number>()
  const which = moves.map(({ run, outcome }) => {
    const name = nameOf(outcome, run.nodeId)
    let n = known.get(name)
    if (n === undefined) {
      n = changes.push(changeOf(journey, outcome, now)) - 1
      known.set(name, n)
    }
    return n
  })
  const met = moves.map(({ outcome }) => outcome.metEvents)
  await updateRuns(db, appId, changes, { places: moves.map(({ run }) => run.place), changes: which, met }, now)
}

function nameOf(outcome: RunMove['outcome'], from: string | undefined): string {
  const { kind, nodeId, trail } = outcome
  if (kind === 'ends') return `${kind} ${outcome.state} ${nodeId} ${from} ${trail}`
  const { arrivedAt, untilAt, dueAt, exitsLater } = outcome
  return `${nodeId} ${arrivedAt?.getTime()} ${untilAt?.getTime()} ${dueAt?.getTime()} ${exitsLater} ${trail}`
}

function changeOf(journey: CompiledJourney, outcome: RunMove['outcome'], now: Date): RunChange {
  const { kind, nodeId, trail } = outcome
  if (kind === 'rests')
    return {
      state: 'waiting',
      nodeId,
      arrivedAt: outcome.arrivedAt ?? null,
      untilAt: outcome.untilAt ?? null,
      dueAt: outcome.dueAt ?? null,
      endedAt: null,
      exitsLater: outcome.exitsLater,
      trail,
    }
  const { reentrySeconds } = journey
  const dueAt = reentrySeconds === undefined ? null : new Date(now.getTime() + reentrySeconds * 1_000)
  return {
    state: outcome.state,
    nodeId: nodeId ?? null,
    arrivedAt: null,
    untilAt: null,
    dueAt,
    endedAt: now,
    exitsLater: false,
    trail,
  }
}
