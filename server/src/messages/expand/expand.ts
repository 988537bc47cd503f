// A message becomes deliveries: one row for each candidate, with a decision. Those whose audience is a set of filters go through
// the app's subscriptions by ranges: who is meant is found first, without a lock; then one transaction holds the rows, their counts,
// how far it came and the jobs that deliver them. It can be broken off anywhere and taken up by anybody. To those that take recipients while they are open, whoever adds
// some writes theirs (add-recipients.ts).

import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import { readSending } from '../../sending/read.ts'
import type { Db } from '../../storage/db.ts'
import { EXPAND_COUNT_PART } from '../delivery.ts'
import type { Engine } from '../engine/engine.ts'
import { DIRECT, deliverJobs, expandJob } from '../jobs.ts'
import type { MessageId } from '../message.ts'
import { completeMessages } from '../settle/complete-messages.ts'
import { isByRange, namesIn } from './audience.ts'
import { ALL_SHARDS, candidatesByName, type Expansion, shardsFor } from './insert-deliveries.ts'
import { lookUpCandidates, lookUpDirect } from './look-up-hosts.ts'
import { type ExpansionRange, nextRange } from './ranges.ts'
import {
  type ExpandProgress,
  findUnexpanded,
  lockUnexpanded,
  lockUnexpandedDirect,
  type UnexpandedMessage,
  writeProgress,
} from './store.ts'
import {
  type ExpandingMessage,
  isPlainMessage,
  pendingOf,
  type SendingSetup,
  totalOf,
  writeDeliveries,
} from './write-deliveries.ts'

/** Then it is another app's turn. */
const RANGES_PER_RUN = 20
/** The same where the audience is expensive. */
const MAX_RUN_MS = 60_000
const DIRECT_LIMIT = 500

export const expandMessages = (engine: Engine) => async (work: JobRun) => {
  const { appId, key } = work.job
  const { db, clock, sender } = engine
  await engine.prepareMonths(clock.now())
  const known = { ready: await sender.ready(appId), settings: (await readSending(db, appId, clock.now())).settings }
  if (key === DIRECT) return expandDirect(engine, work, known)
  const began = performance.now()
  let size = parseRangeSize(work.job.payload)
  for (let ranges = 0; ranges < RANGES_PER_RUN && !work.isStopping(); ranges++) {
    const next = await expandNext(engine, work, known, size)
    await engine.growth.analyzeIfGrown(clock.now())
    if (!next.hasMore) return
    size = next.size
    await work.recordProgress(db)
    if (performance.now() - began > MAX_RUN_MS) break
  }
  await engine.queue.enqueue(db, [{ ...expandJob(appId, { id: key, lane: 'bulk' }), payload: { size } }])
}

/** Of the ranges in the turn before, so that what was found out about their cost is not found out again. */
function parseRangeSize(payload: unknown): number | undefined {
  const { size } = (payload ?? {}) as { size?: unknown }
  return typeof size === 'number' ? size : undefined
}

async function expandDirect(engine: Engine, work: JobRun, known: SendingSetup) {
  const { appId } = work.job
  const { db, clock } = engine
  await lookUpDirect(engine, appId, DIRECT_LIMIT)
  const expanded = await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return []
    const waiting = await lockUnexpandedDirect(db, appId, clock.now(), DIRECT_LIMIT)
    const plain = waiting.filter((message) => isPlainMessage(message, known.settings))
    if (plain.length > 0) await expandNamed(engine, db, appId, known, plain)
    for (const message of waiting) if (!plain.includes(message)) await expandNamed(engine, db, appId, known, [message])
    // With what it did: this is not what ended its workers before.
    if (waiting.length > 0) await work.recordProgress(db)
    return waiting.map(({ id }) => id)
  })
  await completeMessages(engine, appId, expanded)
  if (expanded.length === DIRECT_LIMIT) await engine.queue.enqueue(db, [expandJob(appId, DIRECT)])
}

/** Whether there is more of it, and how many subscriptions are to be looked at next. */
type NextRange = { hasMore: boolean; size?: number | undefined }

/**
 * Whom it means is found out first, which may take long; then the message is locked and the deliveries are written, which does not.
 */
async function expandNext(
  engine: Engine,
  work: JobRun,
  known: SendingSetup,
  size: number | undefined,
): Promise<NextRange> {
  const { appId, key: id } = work.job
  const { db, clock } = engine
  const isDue = ({ sendAfter }: UnexpandedMessage) => sendAfter <= clock.now()
  const waiting = await findUnexpanded(db, appId, id)
  if (!waiting || !isDue(waiting)) return completeExpanded(engine, appId, id)
  const expandAt = waiting.expandAt ?? clock.now()
  const range = isByRange(waiting.audience)
    ? await nextRange(engine, appId, waiting, { expandAt, size, signal: work.signal })
    : undefined
  if (waiting.channel === 'email')
    await lookUpCandidates(engine, range?.candidates ?? candidatesByName(appId, namesIn(id, waiting.audience)))
  const hasMore = await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return false
    const message = await lockUnexpanded(db, appId, id)
    if (!message || !isDue(message)) return false
    // Somebody else was here in between: what was found is not the next range any more.
    if (message.expandedTo !== waiting.expandedTo) return true
    if (range) return expandRange(engine, db, appId, known, { ...message, expandAt }, range)
    await expandNamed(engine, db, appId, known, [message])
    return false
  })
  return hasMore ? { hasMore, size: range?.nextSize } : completeExpanded(engine, appId, id)
}

async function completeExpanded(engine: Engine, appId: AppId, id: MessageId): Promise<NextRange> {
  await completeMessages(engine, appId, [id])
  return { hasMore: false }
}

/** Of messages that name each recipient; more than one only where they are plain. */
function expandNamed(
  engine: Engine,
  db: Db,
  appId: AppId,
  known: SendingSetup,
  messages: readonly UnexpandedMessage[],
) {
  const names = messages.flatMap(({ id, audience }) => namesIn(id, audience))
  const now = engine.clock.now()
  const begun = messages.map((message) => ({ ...message, expandAt: now }))
  const whom = { candidates: candidatesByName(appId, names), shards: shardsFor(names.length) }
  return writeExpansion(engine, db, appId, known, begun, whom, { expandedTo: null, isDone: true })
}

async function expandRange(
  engine: Engine,
  db: Db,
  appId: AppId,
  known: SendingSetup,
  message: ExpandingMessage,
  { candidates, upTo }: ExpansionRange,
): Promise<boolean> {
  const reach = { expandedTo: upTo ?? message.expandedTo, isDone: upTo === undefined }
  const count = await writeExpansion(engine, db, appId, known, [message], { candidates, shards: ALL_SHARDS }, reach)
  engine.growth.record(message.id, count)
  return !reach.isDone
}

/** The rows, their counts, how far it came, and the jobs that deliver them: these last, because deliverers wait for them. Answers how many. */
async function writeExpansion(
  { queue, clock }: Engine,
  db: Db,
  appId: AppId,
  known: SendingSetup,
  messages: readonly ExpandingMessage[],
  whom: Pick<Expansion, 'candidates' | 'shards'>,
  reach: Pick<ExpandProgress, 'expandedTo' | 'isDone'>,
): Promise<number> {
  const [first, ...others] = messages
  if (!first) return 0
  const all = [first, ...others] as const
  const { written, throttledTo } = await writeDeliveries(db, appId, known, all, whom, EXPAND_COUNT_PART, clock.now())
  const byMessage = Map.groupBy(written, ({ messageId }) => messageId)
  const countOf = (id: MessageId) => totalOf(byMessage.get(id) ?? [])
  await writeProgress(
    db,
    appId,
    messages.map(({ id, expandAt }) => ({ id, expandAt, count: countOf(id), throttledTo, ...reach })),
  )
  await queue.enqueue(db, deliverJobs(appId, pendingOf(written)))
  return totalOf(written)
}
