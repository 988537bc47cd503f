// Expands messages: writes one delivery for each candidate, with a decision. A message for filters or segments is
// expanded by ranges of the app's subscriptions. Each range is found first, without a lock; then one transaction writes
// the deliveries, their counts, the progress and the jobs that deliver them. Any worker can stop at any point, and any
// other can continue. Messages that take recipients while they are open get their deliveries from add-recipients.ts.

import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import { readSending } from '../../sending/read.ts'
import type { Db } from '../../storage/db.ts'
import { EXPAND_COUNT_PART } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'
import { DIRECT, deliverJobs, expandJob } from '../jobs.ts'
import type { MessageId } from '../message.ts'
import { completeMessages } from '../settle/complete-messages.ts'
import { isByRange, namesIn } from './audience.ts'
import { candidatesByName } from './candidates.ts'
import { ALL_SHARDS, type Expansion, shardsFor } from './insert-deliveries.ts'
import { prepareDirect } from './prepare-candidates.ts'
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

/** After this many ranges, the worker moves on to another app. */
const RANGES_PER_RUN = 20
/** The same limit in time, for expensive audiences. */
const MAX_RUN_MS = 60_000
const DIRECT_LIMIT = 500

export const expandMessages = (engine: Engine) => async (work: JobRun) => {
  const { appId, key } = work.job
  const { db, clock, sender } = engine
  await engine.prepareMonths(clock.now())
  const setup = { ready: await sender.ready(appId), settings: (await readSending(db, appId, clock.now())).settings }
  if (key === DIRECT) return expandDirect(engine, work, setup)
  const startedMs = performance.now()
  let size = parseRangeSize(work.job.payload)
  for (let ranges = 0; ranges < RANGES_PER_RUN && !work.isStopping(); ranges++) {
    const next = await expandNext(engine, work, setup, size)
    await engine.growth.analyzeIfGrown(clock.now())
    if (!next.hasMore) return
    size = next.size
    await work.recordProgress(db)
    if (performance.now() - startedMs > MAX_RUN_MS) break
  }
  await engine.queue.enqueue(db, [{ ...expandJob(appId, { id: key, lane: 'bulk' }), payload: { size } }])
}

/** The range size that the previous run arrived at, so that the cost of ranges need not be measured again. */
function parseRangeSize(payload: unknown): number | undefined {
  const { size } = (payload ?? {}) as { size?: unknown }
  return typeof size === 'number' ? size : undefined
}

async function expandDirect(engine: Engine, work: JobRun, setup: SendingSetup) {
  const { appId } = work.job
  const { db, clock } = engine
  await prepareDirect(engine, appId, DIRECT_LIMIT)
  const expandedIds = await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return []
    const messages = await lockUnexpandedDirect(db, appId, clock.now(), DIRECT_LIMIT)
    const { plain = [], special = [] } = Object.groupBy(messages, (message) =>
      isPlainMessage(message, setup.settings) ? 'plain' : 'special',
    )
    if (plain.length > 0) await expandNamed(engine, db, appId, setup, plain)
    for (const message of special) await expandNamed(engine, db, appId, setup, [message])
    // Progress is recorded in the same transaction: if the worker crashes later, these messages are not the cause.
    if (messages.length > 0) await work.recordProgress(db)
    return messages.map(({ id }) => id)
  })
  await completeMessages(engine, appId, expandedIds)
  if (expandedIds.length === DIRECT_LIMIT) await engine.queue.enqueue(db, [expandJob(appId, DIRECT)])
}

/** `size`: how many subscriptions the next range should look at. */
type NextRange = { hasMore: boolean; size?: number | undefined }

/** Finds the next range first, which may take long. The message is locked only while its deliveries are written. */
async function expandNext(
  engine: Engine,
  work: JobRun,
  setup: SendingSetup,
  size: number | undefined,
): Promise<NextRange> {
  const { appId, key: id } = work.job
  const { db, clock } = engine
  const isDue = ({ sendAfter }: UnexpandedMessage) => sendAfter <= clock.now()
  const unexpanded = await findUnexpanded(db, appId, id)
  if (!unexpanded || !isDue(unexpanded)) return completeExpanded(engine, appId, id)
  const expandAt = unexpanded.expandAt ?? clock.now()
  const range = isByRange(unexpanded.audience)
    ? await nextRange(engine, appId, unexpanded, { expandAt, size, signal: work.signal })
    : undefined
  const candidates = range?.candidates ?? candidatesByName(appId, namesIn(id, unexpanded.audience))
  await engine.channels[unexpanded.channel].prepareCandidates?.(engine, candidates.rows)
  const hasMore = await db.transaction(async (db) => {
    if (!(await work.isStillHeld(db))) return false
    const message = await lockUnexpanded(db, appId, id)
    if (!message || !isDue(message)) return false
    // Another worker expanded this range in between.
    if (message.expandedTo !== unexpanded.expandedTo) return true
    if (range) return expandRange(engine, db, appId, setup, { ...message, expandAt }, range)
    await expandNamed(engine, db, appId, setup, [message])
    return false
  })
  return hasMore ? { hasMore, size: range?.nextSize } : completeExpanded(engine, appId, id)
}

async function completeExpanded(engine: Engine, appId: AppId, id: MessageId): Promise<NextRange> {
  await completeMessages(engine, appId, [id])
  return { hasMore: false }
}

/** Expands messages that name each recipient. Only plain messages can be expanded together. */
function expandNamed(
  engine: Engine,
  db: Db,
  appId: AppId,
  setup: SendingSetup,
  messages: readonly UnexpandedMessage[],
): Promise<number> {
  const names = messages.flatMap(({ id, audience }) => namesIn(id, audience))
  const now = engine.clock.now()
  return writeExpansion(engine, db, appId, {
    setup,
    messages: messages.map((message) => ({ ...message, expandAt: now })),
    recipients: { candidates: candidatesByName(appId, names), shards: shardsFor(names.length) },
    progress: { expandedTo: null, isDone: true },
  })
}

/** Returns whether there is another range. */
async function expandRange(
  engine: Engine,
  db: Db,
  appId: AppId,
  setup: SendingSetup,
  message: ExpandingMessage,
  { candidates, upTo }: ExpansionRange,
): Promise<boolean> {
  const isDone = upTo === undefined
  const count = await writeExpansion(engine, db, appId, {
    setup,
    messages: [message],
    recipients: { candidates, shards: ALL_SHARDS },
    progress: { expandedTo: upTo ?? message.expandedTo, isDone },
  })
  engine.growth.record(message.id, count)
  return !isDone
}

type ExpansionWrite = {
  setup: SendingSetup
  messages: readonly ExpandingMessage[]
  recipients: Pick<Expansion, 'candidates' | 'shards'>
  progress: Pick<ExpandProgress, 'expandedTo' | 'isDone'>
}

/** Returns how many deliveries were written. Jobs come last, because workers that deliver wait for their rows. */
async function writeExpansion(
  { queue, clock }: Engine,
  db: Db,
  appId: AppId,
  { setup, messages, recipients, progress }: ExpansionWrite,
): Promise<number> {
  const [first, ...others] = messages
  if (!first) return 0
  const input = { setup, messages: [first, ...others] as const, ...recipients, countPart: EXPAND_COUNT_PART }
  const { written, throttledTo } = await writeDeliveries(db, appId, input, clock.now())
  const byMessage = Map.groupBy(written, ({ messageId }) => messageId)
  const countOf = (id: MessageId) => totalOf(byMessage.get(id) ?? [])
  await writeProgress(
    db,
    appId,
    messages.map(({ id, expandAt }) => ({ id, expandAt, count: countOf(id), throttledTo, ...progress })),
  )
  await queue.enqueue(db, deliverJobs(appId, pendingOf(written)))
  return totalOf(written)
}
