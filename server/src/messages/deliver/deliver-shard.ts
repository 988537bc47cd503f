// Working through a line: what is due in it is decided, put together and sent, slice by slice. The job's lease is the claim on the
// whole line, so its deliveries need none of their own.

import { randomInt } from 'node:crypto'
import { isEmailPaused } from '../../email/pause.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Work } from '../../queue/job.ts'
import { readSending } from '../../sending/read.ts'
import { areHoldsUnchanged } from '../../sending/store.ts'
import { addressActivities } from '../activities/address.ts'
import { changeCounts, moved } from '../counts/store.ts'
import { type Line, readLine } from '../delivery.ts'
import { attachFiles } from '../email/attach.ts'
import { countFailedEmails } from '../email/count.ts'
import { prepareMail } from '../email/prepare.ts'
import { noteSoftEnds } from '../email/suppress-bounced.ts'
import type { Engine } from '../engine/engine.ts'
import { deliverJobs } from '../jobs.ts'
import { completeMessages } from '../settle/complete-messages.ts'
import { tellFailed } from '../settle/emit-failed.ts'
import { tellUnknownLater } from '../settle/report-unknown.ts'
import { lockUncanceled } from '../settle/store.ts'
import { type Attempt, claimOf, countedUnder, INTERRUPTED, SLICE } from './batch.ts'
import { findInterrupted, interruptSlice } from './batch-store.ts'
import { type Composed, compose, type ToSend } from './compose.ts'
import { changeTo, type Decided, decide, type Rules } from './decide.ts'
import { deliverSlice } from './deliver-batch.ts'
import { findPause } from './provider-pause-store.ts'
import { putOffFollowers } from './run-order-store.ts'
import { changeDeliveries, type DueDelivery, expireDue, findDue, findNextDue, findSentMessages } from './store.ts'
import { keepPace } from './throttle.ts'

const BATCH = 500
/** Then it is another line's turn. */
const BATCHES_AT_A_STRETCH = 4
/** The same where a provider is slow. */
const STRETCH_MS = 60_000
/** While sending is held, how often it is looked for what has become too late. */
const LOOK_AGAIN_MS = 300_000
/** What is due but cannot be had now (a message is being canceled) is not asked for without a pause. */
const BREATH_MS = 1_000
const EXPIRE_AT_ONCE = 5_000
const PUT_OFF_AT_ONCE = 5_000

export const deliverLine = (engine: Engine) => async (work: Work) => {
  const { key } = work.job
  const fence = randomInt(1, 2 ** 47)
  const line = readLine(key)
  await takeOver(engine, work, line, fence)
  await goOn(engine, work, await deliverDue(engine, work, line, fence))
}

/** What is under way in this line, and not by this attempt, is a dead worker's. */
async function takeOver({ db, clock, queue, stats }: Engine, work: Work, { part, provider }: Line, fence: number) {
  const { appId } = work.job
  const claim = claimOf({ work, fence })
  const ids = await findInterrupted(db, appId, claim)
  if (ids.length === 0) return
  await db.transaction(async (db) => {
    if (!(await work.stillMine(db))) return
    const uncanceled = [...(await lockUncanceled(db, appId, ids)).values()]
    const again = uncanceled.filter(({ atLeastOnce }) => atLeastOnce).map(({ id }) => id)
    const taken = await interruptSlice(db, appId, claim, { reason: INTERRUPTED, again }, clock.now())
    stats.count(provider, 'interrupted', taken.length)
    await changeCounts(db, appId, part, moved({ state: 'pending' }, taken))
    // Whatever of them ended the worker is out of the line: that it did is no reason to stop the line.
    if (taken.some(({ state }) => state === 'unknown')) await work.noteProgress(db)
    await tellUnknownLater(queue, db, appId, taken, clock.now())
  })
  await completeMessages({ db, clock }, appId, ids)
}

/** How an attempt ended: nothing was found that is due, or it is to be looked at again at that time. */
type Ended = { isDrained?: true; until?: Date | undefined }

async function deliverDue(engine: Engine, work: Work, line: Line, fence: number): Promise<Ended> {
  const { db, clock } = engine
  const { appId, key } = work.job
  const untilMs = clock.leaseMs() + STRETCH_MS
  for (let batches = 0; batches < BATCHES_AT_A_STRETCH && mayGoOn(engine, work, untilMs); batches++) {
    const now = clock.now()
    const { settings, hold, discardBefore } = await readSending(db, appId, now)
    const held = hold ?? (await findPause(db, appId, line.provider, now)) ?? (await findEmailPause(engine, appId, line))
    if (held) return { until: await waitOut(engine, work, line, held.until) }
    const due = await findDue(db, appId, key, now, BATCH)
    if (due.length === 0) return { isDrained: true }
    const attempt: Attempt = { work, appId, line, fence, settings }
    const stopped = await deliverBatch(engine, attempt, due, { settings, discardBefore }, untilMs)
    await completeMessages(engine, appId, [...new Set(due.map(({ messageId }) => messageId))])
    const runIds = [...new Set(due.filter(({ step }) => step > 0).map(({ runId }) => runId))]
    if (runIds.length > 0) await putOffFollowers(db, appId, key, clock.now(), { runIds, limit: PUT_OFF_AT_ONCE })
    if (stopped) return stopped
  }
  return {}
}

/** Too many people complained about mail of the app; it goes on when somebody says so. */
async function findEmailPause({ db }: Engine, appId: AppId, { provider }: Line): Promise<{ until?: Date } | undefined> {
  return provider === 'email' && (await isEmailPaused(db, appId)) ? {} : undefined
}

/** Nothing is begun that cannot be finished. */
const mayGoOn = ({ clock }: Engine, work: Work, untilMs: number) =>
  !work.isLeaving() && !work.signal.aborted && clock.leaseMs() < untilMs

/** Undefined when the line can go on. */
async function deliverBatch(
  engine: Engine,
  attempt: Attempt,
  due: DueDelivery[],
  rules: Rules,
  untilMs: number,
): Promise<Ended | undefined> {
  const { appId, line, work } = attempt
  const from = { appId, ...line }
  const { ready, unattached } = await attachFiles(engine, appId, await decideAll(engine, attempt, due, rules))
  const { composed, failed } = await compose(engine, appId, line.lane, ready)
  const now = engine.clock.now()
  const unmade = failed.map(
    (it): Decided => ({
      due: it.due,
      change: { ...changeTo(it.due, 'failed', it.reason, now), ...countedUnder(it) },
    }),
  )
  await settleDecided(engine, attempt, [...unattached, ...unmade])
  for (const rest: Composed[] = composed; rest.length > 0; ) {
    const count = await engine.permits.take(from, Math.min(SLICE, rest.length))
    try {
      if (!mayGoOn(engine, work, untilMs)) return {}
      const { lost, held } = await deliverSlice(engine, attempt, rest.splice(0, count))
      if (lost || held) return { until: held?.until }
    } finally {
      engine.permits.give(from, count)
    }
  }
  return undefined
}

async function decideAll(
  engine: Engine,
  attempt: Attempt,
  due: DueDelivery[],
  rules: Rules,
): Promise<readonly ToSend[]> {
  const { db, clock } = engine
  const found = await findSentMessages(db, attempt.appId, [...new Set(due.map(({ messageId }) => messageId))])
  const messages = new Map(found.map((message) => [message.id, message]))
  const now = clock.now()
  const decided: Decided[] = []
  const ready: ToSend[] = []
  const addressed = await addressActivities(db, attempt.appId, due, messages)
  const preparedFor = await prepareMail(engine, attempt.appId, addressed, messages)
  for (const it of addressed) {
    const message = messages.get(it.messageId)
    if (!message) continue
    const prepared = preparedFor(it)
    const change = decide(it, message, rules, now, prepared?.refusal)
    if (change) decided.push({ due: it, change })
    else ready.push({ due: it, message, mailing: prepared?.mailing })
  }
  const { going, waiting } = await keepPace(db, attempt.appId, ready, rules.settings, now)
  await settleDecided(engine, attempt, [...decided, ...waiting])
  return going
}

async function settleDecided(
  { db, clock }: Engine,
  { appId, work, line, settings }: Attempt,
  decided: readonly Decided[],
) {
  if (decided.length === 0) return
  const now = clock.now()
  const isPutOff = ({ change }: Decided) => change.state === 'pending'
  await db.transaction(async (db) => {
    if (!(await work.stillMine(db))) return
    // What was put off by settings that are gone is decided about again: whoever let go what they held has been here before.
    const isUnchanged = !decided.some(isPutOff) || (await areHoldsUnchanged(db, appId, settings))
    const changes = decided.filter((it) => isUnchanged || !isPutOff(it)).map(({ change }) => change)
    const changed = await changeDeliveries(db, appId, changes, { state: 'pending' })
    await changeCounts(db, appId, line.part, moved({ state: 'pending' }, changed))
    await countFailedEmails(db, appId, line.part, changed, now)
    const isChanged = new Set(changed)
    const failed = decided.filter(({ change }) => change.state === 'failed' && isChanged.has(change))
    await tellFailed(
      db,
      appId,
      failed.map(({ due: { userId }, change }) => ({ ...change, userId })),
      now,
    )
    await noteSoftEnds(db, appId, changed, now)
  })
}

/** Nothing is sent; what lives no longer is given up. */
async function waitOut({ db, clock }: Engine, work: Work, { part }: Line, until: Date | undefined): Promise<Date> {
  const { appId, key } = work.job
  const now = clock.now()
  const expired = await db.transaction(async (db) => {
    if (!(await work.stillMine(db))) return []
    const expired = await expireDue(db, appId, key, now, EXPIRE_AT_ONCE)
    await changeCounts(db, appId, part, moved({ state: 'pending' }, expired))
    await countFailedEmails(db, appId, part, expired, now)
    await noteSoftEnds(db, appId, expired, now)
    return expired
  })
  await completeMessages({ db, clock }, appId, [...new Set(expired.map(({ messageId }) => messageId))])
  const soon = expired.length === EXPIRE_AT_ONCE ? BREATH_MS : LOOK_AGAIN_MS
  const latest = new Date(now.getTime() + soon)
  return until && until < latest ? until : latest
}

/** Again when the next one is due, or when it was said. */
async function goOn({ db, clock, queue }: Engine, work: Work, { until, isDrained }: Ended) {
  const { appId, key: line } = work.job
  const now = clock.now()
  const findNext = async () => (await findNextDue(db, appId, [line]))[0]
  let next = await findNext()
  // Who was here before may have died before it put them off.
  if (
    next &&
    isDrained &&
    next.dueAt <= now &&
    (await putOffFollowers(db, appId, line, now, { limit: PUT_OFF_AT_ONCE }))
  )
    next = await findNext()
  if (!next) return
  const earliest = isDrained && next.dueAt <= now ? new Date(now.getTime() + BREATH_MS) : until
  const dueAt = earliest && earliest > next.dueAt ? earliest : next.dueAt
  await queue.enqueue(db, deliverJobs(appId, [{ line, dueAt }]))
}
