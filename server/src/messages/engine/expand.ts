// A message becomes deliveries: one row for each candidate, with a decision. Those whose audience is a set of filters go through
// the app's subscriptions by ranges, one transaction each, which holds the rows, their counts, how far it came and the jobs that
// deliver them: it can be broken off anywhere and taken up by anybody. One that takes recipients while it is open does the same
// with those that were added since.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Work } from '../../queue/job.ts'
import { readSending } from '../../sending/read.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import type { Db } from '../../storage/db.ts'
import { analyzeMonth } from '../../storage/partitions.ts'
import { EXPANDING_PART, type Provider } from '../delivery.ts'
import { DIRECT, deliverJobs, expandJob } from '../jobs.ts'
import type { MessageId } from '../message.ts'
import { lockEmptied, takeRecipients } from '../recipient-store.ts'
import { isByRange, isOver, namesIn } from './audience.ts'
import { changeCounts } from './count-store.ts'
import { firstDue, lastTaken, timingOf } from './due-times.ts'
import type { Engine } from './engine.ts'
import { type Expansion, inRuns, insertDeliveries, named, type Plan, type Timing } from './expand-statement.ts'
import { lockDirectWaiting, lockWaiting, type Progress, type WaitingMessage, writeProgress } from './expand-store.ts'
import { lookUpDirect, lookUpNext } from './look-up-hosts.ts'
import { nextRange, RANGE } from './range.ts'
import { completeMessages } from './settle.ts'
import { throttleOf } from './throttle.ts'
import { waysOf } from './ways.ts'

/** Then it is another app's turn. */
const RANGES_AT_A_STRETCH = 20
const DIRECT_AT_ONCE = 500

/** What is asked once for an attempt. */
type Known = { ready: ReadonlySet<Provider>; settings: DeliverySettings }

export const expandMessages = (engine: Engine) => async (work: Work) => {
  const { appId, key } = work.job
  const { db, clock, sender } = engine
  await engine.prepareMonths(clock.now())
  const known = { ready: await sender.ready(appId), settings: (await readSending(db, appId, clock.now())).settings }
  if (key === DIRECT) return expandDirect(engine, work, known)
  for (let ranges = 0; ranges < RANGES_AT_A_STRETCH && !work.isLeaving(); ranges++) {
    await lookUpNext(engine, appId, key)
    const { hasMore, before, after } = await expandNext(engine, work, known, key)
    // A large message changes what its month is like, and statements on it are planned by that.
    if (hasGrown(before, after)) await analyzeMonth(db, 'deliveries', clock.now())
    if (!hasMore) return
    await work.noteProgress(db)
  }
  await engine.queue.enqueue(db, [expandJob(appId, { id: key, lane: 'bulk' })])
}

async function expandDirect(engine: Engine, work: Work, known: Known) {
  const { appId } = work.job
  const { db, clock } = engine
  await lookUpDirect(engine, appId, DIRECT_AT_ONCE)
  const expanded = await db.transaction(async (db) => {
    if (!(await work.stillMine(db))) return []
    const waiting = await lockDirectWaiting(db, appId, clock.now(), DIRECT_AT_ONCE)
    const plain = waiting.filter((message) => isPlain(message, known.settings))
    if (plain.length > 0) await expandNamed(engine, db, appId, known, plain)
    for (const message of waiting) if (!plain.includes(message)) await expandNamed(engine, db, appId, known, [message])
    // With what it did: this is not what ended its workers before.
    if (waiting.length > 0) await work.noteProgress(db)
    return waiting.map(({ id }) => id)
  })
  await completeMessages(engine, appId, expanded)
  if (expanded.length === DIRECT_AT_ONCE) await engine.queue.enqueue(db, [expandJob(appId, DIRECT)])
}

/** All that is due is due at once, and everybody may get it: many of these are one statement. */
const isPlain = (message: WaitingMessage, settings: DeliverySettings) =>
  !message.options.delayedOption && !message.options.warmUp && !message.options.isTest && !throttleOf(message, settings)

/** How many deliveries the message had before and after. */
type Step = { hasMore: boolean; before: number; after: number }

async function expandNext(engine: Engine, work: Work, known: Known, id: MessageId): Promise<Step> {
  const { appId } = work.job
  const { db, clock } = engine
  const step = await db.transaction(async (db): Promise<Step> => {
    const nothing = { hasMore: false, before: 0, after: 0 }
    if (!(await work.stillMine(db))) return nothing
    const message = await lockWaiting(db, appId, id)
    if (!message || message.sendAfter > clock.now()) return nothing
    if (message.audience.kind === 'recipients') return expandRecipients(engine, db, appId, known, message)
    if (isByRange(message.audience)) return expandRange(engine, db, appId, known, message)
    await expandNamed(engine, db, appId, known, [message])
    return nothing
  })
  if (!step.hasMore) await completeMessages(engine, appId, [id])
  return step
}

/** Of messages that name each recipient; more than one only where they are plain. */
function expandNamed(engine: Engine, db: Db, appId: AppId, known: Known, messages: readonly WaitingMessage[]) {
  const names = messages.flatMap(({ id, audience }) => namesIn(id, audience))
  const now = engine.clock.now()
  const begun = messages.map((message) => ({ ...message, expandAt: now }))
  return write(engine, db, appId, known, begun, named(appId, names), { expandedTo: null, isDone: true })
}

async function expandRange(engine: Engine, db: Db, appId: AppId, known: Known, message: WaitingMessage): Promise<Step> {
  const expandAt = message.expandAt ?? engine.clock.now()
  const after: SubscriptionId | undefined = message.expandedTo ?? undefined
  const { candidates, upTo } = await nextRange(engine, db, appId, message, expandAt)
  const reach = { expandedTo: upTo ?? after ?? null, isDone: upTo === undefined }
  const count = await write(engine, db, appId, known, [{ ...message, expandAt }], candidates, reach)
  const before = message.expandedCount
  return { hasMore: !reach.isDone, before, after: before + count }
}

/** Those who are read are deleted with it: whatever breaks off, each is either here or expanded. */
async function expandRecipients(
  engine: Engine,
  db: Db,
  appId: AppId,
  known: Known,
  message: WaitingMessage,
): Promise<Step> {
  const { id, expandedCount: before } = message
  const expandAt = message.expandAt as Date
  const isEnding = isOver(message.audience, engine.clock.now())
  const taken = await takeRecipients(db, appId, id, RANGE)
  if (taken.length > 0) {
    const reach = { expandedTo: null, isDone: false }
    const count = await write(engine, db, appId, known, [{ ...message, expandAt }], inRuns(appId, taken), reach)
    return { hasMore: isEnding || taken.length === RANGE, before, after: before + count }
  }
  const isClosing = isEnding && (await lockEmptied(db, appId, id))
  if (isClosing) await writeProgress(db, appId, [{ id, expandAt, expandedTo: null, count: 0, isDone: true }])
  // Somebody may have been added just before nobody could be any more.
  return { hasMore: isEnding && !isClosing, before, after: before }
}

/**
 * Past a quarter of a range, 1, 4, 16, … of them. With fewer it takes longer than it spares: to who does not know of them, every slice
 * that is sent costs a look at all of the message.
 */
function hasGrown(before: number, after: number): boolean {
  const power = (count: number) => Math.max(-2, Math.floor(Math.log2(count / RANGE) / 2))
  return power(after) > power(before)
}

type Begun = WaitingMessage & { expandAt: Date }

/** The rows, their counts, how far it came, and the jobs that deliver them: these last, because deliverers wait for them. Answers how many. */
async function write(
  { queue, clock }: Engine,
  db: Db,
  appId: AppId,
  { ready, settings }: Known,
  messages: readonly Begun[],
  candidates: Expansion['candidates'],
  reach: Pick<Progress, 'expandedTo' | 'isDone'>,
): Promise<number> {
  const [first] = messages
  if (!first) return 0
  const now = clock.now()
  const timing = await timingOf(db, appId, first, candidates, settings)
  const expansion: Expansion = {
    plans: messages.map((message) => planOf(message, timing, now)),
    ways: messages.flatMap((message) => waysOf(message, ready)),
    candidates,
    timing,
    onlyTestUsers: first.options.isTest ?? false,
  }
  const written = await insertDeliveries(db, appId, expansion, now)
  await changeCounts(db, appId, EXPANDING_PART, written)
  const byMessage = Map.groupBy(written, ({ messageId }) => messageId)
  const countOf = (id: MessageId) => sumOf(byMessage.get(id) ?? [])
  const waiting = written.filter(({ state }) => state === 'pending')
  const throttledTo = lastTaken(first, timing, sumOf(waiting), now)
  await writeProgress(
    db,
    appId,
    messages.map(({ id, expandAt }) => ({ id, expandAt, count: countOf(id), throttledTo, ...reach })),
  )
  await queue.enqueue(db, deliverJobs(appId, waiting))
  return sumOf(written)
}

const sumOf = (list: readonly { count: number }[]) => list.reduce((sum, { count }) => sum + count, 0)

/** What was to be sent at once and took a while to come to it is not late for that. */
const LEAST_LIFE_SECONDS = 60

const planOf = (message: Begun, timing: Timing, now: Date): Plan => ({
  id: message.id,
  lane: message.lane,
  expandAt: message.expandAt,
  dueAt: firstDue(message, timing, now),
  lifeSeconds: Math.max(message.options.ttl, LEAST_LIFE_SECONDS),
  includesUnsubscribed: message.options.includeUnsubscribed ?? false,
})
