// Working through a line: what is due in it is decided, put together and sent, slice by slice. The job's lease is the claim on the
// whole line, so its deliveries need none of their own.

import { randomInt } from 'node:crypto'
import { isEmailPaused } from '../../email/pause.ts'
import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import { readSending } from '../../sending/read.ts'
import { areHoldsUnchanged } from '../../sending/store.ts'
import { resolveActivityTokens } from '../activities/resolve-tokens.ts'
import { changeCounts, transitionsFrom } from '../counts/store.ts'
import { parseShard, type Shard } from '../delivery.ts'
import { attachFiles } from '../email/attach-files.ts'
import { countFailedEmails } from '../email/count.ts'
import { prepareEmails } from '../email/prepare.ts'
import { recordSoftBouncesOfExpired } from '../email/suppress-bounced.ts'
import type { Engine } from '../engine/engine.ts'
import { deliverJobs } from '../jobs.ts'
import { completeMessages } from '../settle/complete-messages.ts'
import { emitFailedEvents } from '../settle/emit-failed.ts'
import { scheduleUnknownReport } from '../settle/report-unknown.ts'
import { lockUncanceled } from '../settle/store.ts'
import { type Attempt, BATCH_SIZE, claimOf, dimensionsOf, INTERRUPTED } from './batch.ts'
import { findInterrupted, interruptBatch } from './batch-store.ts'
import { type ComposedDelivery, compose, type ReadyDelivery } from './compose.ts'
import { changeTo, type Decision, type DecisionRules, decide } from './decide.ts'
import { deliverBatch } from './deliver-batch.ts'
import { findPause } from './provider-pause-store.ts'
import { postponeFollowers } from './run-order-store.ts'
import { changeDeliveries, type DueDelivery, expireDue, findDue, findNextDue, findSentMessages } from './store.ts'
import { applyThrottle } from './throttle.ts'

const FETCH_LIMIT = 500
/** Then it is another line's turn. */
const FETCHES_PER_RUN = 4
/** The same where a provider is slow. */
const MAX_RUN_MS = 60_000
/** While sending is held, how often it is looked for what has become too late. */
const HELD_CHECK_MS = 300_000
/** What is due but cannot be had now (a message is being canceled) is not asked for without a pause. */
const RETRY_PAUSE_MS = 1_000
const EXPIRE_LIMIT = 5_000
const POSTPONE_LIMIT = 5_000

export const deliverShard = (engine: Engine) => async (work: JobRun) => {
  const { key } = work.job
  const fence = randomInt(1, 2 ** 47)
  const line = parseShard(key)
  await recoverInterrupted(engine, work, line, fence)
  await scheduleNextRun(engine, work, await deliverDue(engine, work, line, fence))
}

/** What is under way in this line, and not by this attempt, is a dead worker's. */
async function recoverInterrupted(
  { db, clock, queue, stats }: Engine,
  work: JobRun,
  { number: part, provider }: Shard,
  fence: number,
) {
  const { appId } = work.job
  const claim = claimOf({ work, fence })
  const ids = await findInterrupted(db, appId, claim)
  if (ids.length === 0) return
  await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return
    const uncanceled = [...(await lockUncanceled(db, appId, ids)).values()]
    const again = uncanceled.filter(({ atLeastOnce }) => atLeastOnce).map(({ id }) => id)
    const taken = await interruptBatch(db, appId, claim, { reason: INTERRUPTED, again }, clock.now())
    stats.count(provider, 'interrupted', taken.length)
    await changeCounts(db, appId, part, transitionsFrom({ state: 'pending' }, taken))
    // Whatever of them ended the worker is out of the line: that it did is no reason to stop the line.
    if (taken.some(({ state }) => state === 'unknown')) await work.recordProgress(db)
    await scheduleUnknownReport(queue, db, appId, taken, clock.now())
  })
  await completeMessages({ db, clock }, appId, ids)
}

/** How an attempt ended: nothing was found that is due, or it is to be looked at again at that time. */
type ShardRunResult = { isDrained?: true; until?: Date | undefined }

async function deliverDue(engine: Engine, work: JobRun, line: Shard, fence: number): Promise<ShardRunResult> {
  const { db, clock } = engine
  const { appId, key } = work.job
  const untilMs = clock.leaseMs() + MAX_RUN_MS
  for (let batches = 0; batches < FETCHES_PER_RUN && canContinue(engine, work, untilMs); batches++) {
    const now = clock.now()
    const { settings, hold, discardBefore } = await readSending(db, appId, now)
    const held = hold ?? (await findPause(db, appId, line.provider, now)) ?? (await findEmailPause(engine, appId, line))
    if (held) return { until: await expireWhileHeld(engine, work, line, held.until) }
    const due = await findDue(db, appId, key, now, FETCH_LIMIT)
    if (due.length === 0) return { isDrained: true }
    const attempt: Attempt = { work, appId, shard: line, fence, settings }
    const stopped = await deliverFetched(engine, attempt, due, { settings, discardBefore }, untilMs)
    await completeMessages(engine, appId, [...new Set(due.map(({ messageId }) => messageId))])
    const runIds = [...new Set(due.filter(({ step }) => step > 0).map(({ runId }) => runId))]
    if (runIds.length > 0) await postponeFollowers(db, appId, key, clock.now(), { runIds, limit: POSTPONE_LIMIT })
    if (stopped) return stopped
  }
  return {}
}

/** Too many people complained about mail of the app; it goes on when somebody says so. */
async function findEmailPause(
  { db }: Engine,
  appId: AppId,
  { provider }: Shard,
): Promise<{ until?: Date } | undefined> {
  return provider === 'email' && (await isEmailPaused(db, appId)) ? {} : undefined
}

/** Nothing is begun that cannot be finished. */
const canContinue = ({ clock }: Engine, work: JobRun, untilMs: number) =>
  !work.isStopping() && !work.signal.aborted && clock.leaseMs() < untilMs

/** Undefined when the line can go on. */
async function deliverFetched(
  engine: Engine,
  attempt: Attempt,
  due: DueDelivery[],
  rules: DecisionRules,
  untilMs: number,
): Promise<ShardRunResult | undefined> {
  const { appId, shard: line, work } = attempt
  const from = { appId, ...line }
  const { ready, withoutFiles: unattached } = await attachFiles(
    engine,
    appId,
    await decideAll(engine, attempt, due, rules),
  )
  const { composed, failed } = await compose(engine, appId, line.lane, ready)
  const now = engine.clock.now()
  const unmade = failed.map(
    (it): Decision => ({
      due: it.due,
      change: { ...changeTo(it.due, 'failed', it.reason, now), ...dimensionsOf(it) },
    }),
  )
  await writeDecisions(engine, attempt, [...unattached, ...unmade])
  for (const rest: ComposedDelivery[] = composed; rest.length > 0; ) {
    const count = await engine.slots.acquire(from, Math.min(BATCH_SIZE, rest.length))
    try {
      if (!canContinue(engine, work, untilMs)) return {}
      const { isLost: lost, hold: held } = await deliverBatch(engine, attempt, rest.splice(0, count))
      if (lost || held) return { until: held?.until }
    } finally {
      engine.slots.release(from, count)
    }
  }
  return undefined
}

async function decideAll(
  engine: Engine,
  attempt: Attempt,
  due: DueDelivery[],
  rules: DecisionRules,
): Promise<readonly ReadyDelivery[]> {
  const { db, clock } = engine
  const found = await findSentMessages(db, attempt.appId, [...new Set(due.map(({ messageId }) => messageId))])
  const messages = new Map(found.map((message) => [message.id, message]))
  const now = clock.now()
  const decided: Decision[] = []
  const ready: ReadyDelivery[] = []
  const addressed = await resolveActivityTokens(db, attempt.appId, due, messages)
  const preparedFor = await prepareEmails(engine, attempt.appId, addressed, messages)
  for (const it of addressed) {
    const message = messages.get(it.messageId)
    if (!message) continue
    const prepared = preparedFor(it)
    const change = decide(it, message, rules, now, prepared?.refusal)
    if (change) decided.push({ due: it, change })
    else ready.push({ due: it, message, mailing: prepared?.envelope })
  }
  const { going, waiting } = await applyThrottle(db, attempt.appId, ready, rules.settings, now)
  await writeDecisions(engine, attempt, [...decided, ...waiting])
  return going
}

async function writeDecisions(
  { db, clock }: Engine,
  { appId, work, shard: line, settings }: Attempt,
  decided: readonly Decision[],
) {
  if (decided.length === 0) return
  const now = clock.now()
  const isPutOff = ({ change }: Decision) => change.state === 'pending'
  await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return
    // What was put off by settings that are gone is decided about again: whoever let go what they held has been here before.
    const isUnchanged = !decided.some(isPutOff) || (await areHoldsUnchanged(db, appId, settings))
    const changes = decided.filter((it) => isUnchanged || !isPutOff(it)).map(({ change }) => change)
    const changed = await changeDeliveries(db, appId, changes, { state: 'pending' })
    await changeCounts(db, appId, line.number, transitionsFrom({ state: 'pending' }, changed))
    await countFailedEmails(db, appId, line.number, changed, now)
    const isChanged = new Set(changed)
    const failed = decided.filter(({ change }) => change.state === 'failed' && isChanged.has(change))
    await emitFailedEvents(
      db,
      appId,
      failed.map(({ due: { userId }, change }) => ({ ...change, userId })),
      now,
    )
    await recordSoftBouncesOfExpired(db, appId, changed, now)
  })
}

/** Nothing is sent; what lives no longer is given up. */
async function expireWhileHeld(
  { db, clock }: Engine,
  work: JobRun,
  { number: part }: Shard,
  until: Date | undefined,
): Promise<Date> {
  const { appId, key } = work.job
  const now = clock.now()
  const expired = await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return []
    const expired = await expireDue(db, appId, key, now, EXPIRE_LIMIT)
    await changeCounts(db, appId, part, transitionsFrom({ state: 'pending' }, expired))
    await countFailedEmails(db, appId, part, expired, now)
    await recordSoftBouncesOfExpired(db, appId, expired, now)
    return expired
  })
  await completeMessages({ db, clock }, appId, [...new Set(expired.map(({ messageId }) => messageId))])
  const soon = expired.length === EXPIRE_LIMIT ? RETRY_PAUSE_MS : HELD_CHECK_MS
  const latest = new Date(now.getTime() + soon)
  return until && until < latest ? until : latest
}

/** Again when the next one is due, or when it was said. */
async function scheduleNextRun({ db, clock, queue }: Engine, work: JobRun, { until, isDrained }: ShardRunResult) {
  const { appId, key: shard } = work.job
  const now = clock.now()
  const findNext = async () => (await findNextDue(db, appId, [shard]))[0]
  let next = await findNext()
  // Who was here before may have died before it put them off.
  if (
    next &&
    isDrained &&
    next.dueAt <= now &&
    (await postponeFollowers(db, appId, shard, now, { limit: POSTPONE_LIMIT }))
  )
    next = await findNext()
  if (!next) return
  const earliest = isDrained && next.dueAt <= now ? new Date(now.getTime() + RETRY_PAUSE_MS) : until
  const dueAt = earliest && earliest > next.dueAt ? earliest : next.dueAt
  await queue.enqueue(db, deliverJobs(appId, [{ shard, dueAt }]))
}
