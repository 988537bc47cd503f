// Drains a shard: decides about its due deliveries, composes them and sends them in batches. The lease of the shard's
// job is the claim on all of its deliveries, so they need no claims of their own.

import { randomInt } from 'node:crypto'
import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import { readSending } from '../../sending/read.ts'
import { areHoldsUnchanged } from '../../sending/store.ts'
import { changeCounts, transitionsFrom } from '../counts/store.ts'
import { channelOf, parseShard } from '../delivery.ts'
import type { MessageChannel, ReadyDelivery } from '../engine/channel.ts'
import type { Engine } from '../engine/types.ts'
import { deliverJobs } from '../jobs.ts'
import { completeMessages } from '../settle/complete-messages.ts'
import { emitFailedEvents } from '../settle/emit-failed.ts'
import { scheduleUnknownReport } from '../settle/report-unknown.ts'
import { lockUncanceled } from '../settle/store.ts'
import { type Attempt, BATCH_SIZE, claimOf, dimensionsOf, INTERRUPTED } from './batch.ts'
import { findInterrupted, interruptBatch } from './batch-store.ts'
import { compose } from './compose.ts'
import { changeTo, type Decision, type DecisionRules, decide } from './decide.ts'
import { deliverBatch } from './deliver-batch.ts'
import { judgeOutcome } from './judge-outcome.ts'
import { findPause } from './provider-pause-store.ts'
import { postponeFollowers } from './run-order-store.ts'
import { changeDeliveries, type DueDelivery, expireDue, findDue, findNextDue, findSentMessages } from './store.ts'
import { applyThrottle } from './throttle.ts'

const FETCH_LIMIT = 500
/** After this many fetches, the worker moves on to another shard. */
const FETCHES_PER_RUN = 4
/** The same limit in time, for slow providers. */
const MAX_RUN_MS = 60_000
/** How often a held shard is checked for deliveries that have expired. */
const HELD_CHECK_MS = 300_000
/**
 * The pause before fetching again, after deliveries were due but not available because their message is being canceled.
 */
const RETRY_PAUSE_MS = 1_000
const EXPIRE_LIMIT = 5_000
const POSTPONE_LIMIT = 5_000

/** One run of the shard's job, before its settings are read. */
type ShardRun = Omit<Attempt, 'settings'>

export const deliverShard = (engine: Engine) => async (work: JobRun) => {
  const { appId, key } = work.job
  const shard = parseShard(key)
  const channel = engine.channels[channelOf(shard.provider)]
  const run: ShardRun = { work, appId, shard, fence: randomInt(1, 2 ** 47), channel }
  await recoverInterrupted(engine, run)
  await scheduleNextRun(engine, work, await deliverDue(engine, run))
}

/** A batch of this shard that another attempt started belongs to a dead worker. */
async function recoverInterrupted({ db, clock, queue, stats }: Engine, run: ShardRun) {
  const { work, appId, shard } = run
  const claim = claimOf(run)
  const ids = await findInterrupted(db, appId, claim)
  if (ids.length === 0) return
  await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return
    const uncanceled = [...(await lockUncanceled(db, appId, ids)).values()]
    const again = uncanceled.filter(({ atLeastOnce }) => atLeastOnce).map(({ id }) => id)
    const recovered = await interruptBatch(db, appId, claim, { reason: INTERRUPTED, again }, clock.now())
    stats.count(shard.provider, 'interrupted', recovered.length)
    await changeCounts(db, appId, shard.number, transitionsFrom({ state: 'pending' }, recovered))
    // If one of them crashed the worker, it has left the shard: the job makes progress and must not be parked.
    if (recovered.some(({ state }) => state === 'unknown')) await work.recordProgress(db)
    await scheduleUnknownReport(queue, db, appId, recovered, clock.now())
  })
  await completeMessages({ db, clock }, appId, ids)
}

/** `isDrained`: nothing due was found. `until`: the shard has to wait until then. */
type ShardRunResult = { isDrained?: true; until?: Date | undefined }

async function deliverDue(engine: Engine, run: ShardRun): Promise<ShardRunResult> {
  const { db, clock } = engine
  const { work, appId, shard, channel } = run
  const { key } = work.job
  const untilMs = clock.leaseMs() + MAX_RUN_MS
  for (let fetches = 0; fetches < FETCHES_PER_RUN && canContinue(engine, work, untilMs); fetches++) {
    const now = clock.now()
    const { settings, hold: appHold, discardBefore } = await readSending(db, appId, now)
    const hold =
      appHold ?? (await findPause(db, appId, shard.provider, now)) ?? (await channel.findHold?.(engine, appId))
    if (hold) return { until: await expireWhileHeld(engine, run, hold.until) }
    const due = await findDue(db, appId, key, now, FETCH_LIMIT)
    if (due.length === 0) return { isDrained: true }
    const stopped = await deliverFetched(engine, { ...run, settings }, due, { settings, discardBefore }, untilMs)
    await completeMessages(engine, appId, [...new Set(due.map(({ messageId }) => messageId))])
    const runIds = [...new Set(due.filter(({ step }) => step > 0).map(({ runId }) => runId))]
    if (runIds.length > 0) await postponeFollowers(db, appId, key, clock.now(), { runIds, limit: POSTPONE_LIMIT })
    if (stopped) return stopped
  }
  return {}
}

/** Starts nothing that could not be finished before the worker has to stop. */
const canContinue = ({ clock }: Engine, work: JobRun, untilMs: number) =>
  !work.isStopping() && !work.signal.aborted && clock.leaseMs() < untilMs

/** Returns undefined when the run of the shard can continue. */
async function deliverFetched(
  engine: Engine,
  attempt: Attempt,
  due: readonly DueDelivery[],
  rules: DecisionRules,
  untilMs: number,
): Promise<ShardRunResult | undefined> {
  const { appId, shard, channel, work } = attempt
  const decided = await decideAll(engine, attempt, due, rules)
  const { complete, failures } = await completeAll(engine, attempt, decided)
  const { composed, failed } = await compose(engine, { appId, lane: shard.lane, channel }, complete)
  const now = engine.clock.now()
  const notComposed = failed.map(
    (delivery): Decision => ({
      due: delivery.due,
      change: { ...changeTo(delivery.due, 'failed', delivery.reason, now), ...dimensionsOf(delivery) },
    }),
  )
  await writeDecisions(engine, attempt, [...failures, ...notComposed])
  const owner = { appId, provider: shard.provider, lane: shard.lane }
  for (const remaining = composed; remaining.length > 0; ) {
    const count = await engine.slots.acquire(owner, Math.min(BATCH_SIZE, remaining.length))
    try {
      if (!canContinue(engine, work, untilMs)) return {}
      const { isLost, hold } = await deliverBatch(engine, attempt, remaining.splice(0, count))
      if (isLost || hold) return { until: hold?.until }
    } finally {
      engine.slots.release(owner, count)
    }
  }
  return undefined
}

/** Returns the deliveries to send now. The changes of all others are written. */
async function decideAll(
  engine: Engine,
  attempt: Attempt,
  due: readonly DueDelivery[],
  rules: DecisionRules,
): Promise<readonly ReadyDelivery[]> {
  const { db, clock } = engine
  const { appId, channel } = attempt
  const sentMessages = await findSentMessages(db, appId, [...new Set(due.map(({ messageId }) => messageId))])
  const messages = new Map(sentMessages.map((message) => [message.id, message]))
  const now = clock.now()
  const decisions: Decision[] = []
  const ready: ReadyDelivery[] = []
  for (const { delivery, refusal, details } of await channel.prepare(engine, appId, due, messages)) {
    const message = messages.get(delivery.messageId)
    if (!message) continue
    const change = decide(delivery, message, rules, now, refusal)
    if (change) decisions.push({ due: delivery, change })
    else if (details) ready.push({ due: delivery, message, details })
  }
  const { going, waiting } = await applyThrottle(db, appId, ready, rules.settings, now)
  await writeDecisions(engine, attempt, [...decisions, ...waiting])
  return going
}

type Completed = { complete: readonly ReadyDelivery[]; failures: Decision[] }

async function completeAll(
  engine: Engine,
  { appId, channel }: { appId: AppId; channel: MessageChannel },
  deliveries: readonly ReadyDelivery[],
): Promise<Completed> {
  const result = await channel.complete?.(engine, appId, deliveries)
  if (!result) return { complete: deliveries, failures: [] }
  const context = {
    now: engine.clock.now(),
    random: engine.random,
    atLeastOnce: false,
    retryPolicy: channel.retryPolicy,
  }
  const failures = result.failed.map(
    ({ delivery, outcome }): Decision => ({
      due: delivery.due,
      change: { ...judgeOutcome(delivery.due, outcome, context), ...dimensionsOf(delivery) },
    }),
  )
  return { complete: result.complete, failures }
}

async function writeDecisions(
  { db, clock }: Engine,
  { appId, work, shard, settings, channel }: Attempt,
  decisions: readonly Decision[],
) {
  if (decisions.length === 0) return
  const now = clock.now()
  const isPostponed = ({ change }: Decision) => change.state === 'pending'
  await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return
    // The settings that postponed a delivery may have changed since they were read. Whoever changed them has already
    // released the deliveries that they held, so a postponed delivery would be missed: it is decided about again.
    const isUnchanged = !decisions.some(isPostponed) || (await areHoldsUnchanged(db, appId, settings))
    const changes = decisions.filter((decision) => isUnchanged || !isPostponed(decision)).map(({ change }) => change)
    const changed = await changeDeliveries(db, appId, changes, { state: 'pending' })
    await changeCounts(db, appId, shard.number, transitionsFrom({ state: 'pending' }, changed))
    const isChanged = new Set(changed)
    const failed = decisions.filter(({ change }) => change.state === 'failed' && isChanged.has(change))
    await emitFailedEvents(
      db,
      appId,
      failed.map(({ due: { userId }, change }) => ({ ...change, userId })),
      now,
    )
    await channel.followUnsent?.(db, appId, shard.number, changed, now)
  })
}

/** Sends nothing, and only expires deliveries whose lifetime ended meanwhile. Returns when to check again. */
async function expireWhileHeld(
  { db, clock }: Engine,
  { work, appId, shard, channel }: ShardRun,
  until: Date | undefined,
): Promise<Date> {
  const now = clock.now()
  const expired = await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return []
    const expired = await expireDue(db, appId, work.job.key, now, EXPIRE_LIMIT)
    await changeCounts(db, appId, shard.number, transitionsFrom({ state: 'pending' }, expired))
    await channel.followUnsent?.(db, appId, shard.number, expired, now)
    return expired
  })
  await completeMessages({ db, clock }, appId, [...new Set(expired.map(({ messageId }) => messageId))])
  const checkInMs = expired.length === EXPIRE_LIMIT ? RETRY_PAUSE_MS : HELD_CHECK_MS
  const nextCheck = new Date(now.getTime() + checkInMs)
  return until && until < nextCheck ? until : nextCheck
}

/** Schedules the next run for when the next delivery is due, but not before `until`. */
async function scheduleNextRun({ db, clock, queue }: Engine, work: JobRun, { until, isDrained }: ShardRunResult) {
  const { appId, key: shard } = work.job
  const now = clock.now()
  const findNext = async () => (await findNextDue(db, appId, [shard]))[0]
  let next = await findNext()
  if (next && isDrained && next.dueAt <= now) {
    // An earlier worker may have died before it postponed them.
    const postponed = await postponeFollowers(db, appId, shard, now, { limit: POSTPONE_LIMIT })
    if (postponed > 0) next = await findNext()
  }
  if (!next) return
  const earliest = isDrained && next.dueAt <= now ? new Date(now.getTime() + RETRY_PAUSE_MS) : until
  const dueAt = earliest && earliest > next.dueAt ? earliest : next.dueAt
  await queue.enqueue(db, deliverJobs(appId, [{ shard, dueAt }]))
}
