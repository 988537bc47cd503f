// Stores messages. Concurrent requests of one app become one statement, which looks up their targets, takes their keys,
// and writes messages and jobs; a request is answered after the commit.

import type { AppId } from '../../lib/ids.ts'
import type { Queue } from '../../queue/enqueue.ts'
import type { NewJob } from '../../queue/job.ts'
import { jobsInsert } from '../../queue/store.ts'
import { sendingDisabled } from '../../sending/hold.ts'
import { wasDisabled } from '../../sending/store.ts'
import type { Db } from '../../storage/db.ts'
import type { MergeOutcome, Merger } from '../../storage/merge.ts'
import { sql } from '../../storage/sql.ts'
import { userIdOfRow } from '../../users/reference-store.ts'
import { DIRECT, expandJob } from '../jobs.ts'
import type { NewMessage } from '../message.ts'
import { oldestKeyTime, replayOf } from './idempotency.ts'
import { findTakenKeys, type InsertResult, insertSubmissions, releaseKeys, type TakenKey } from './store.ts'
import type { AcceptedMessage, Submission } from './submission.ts'

/** Returns undefined when no target can be reached; nothing is stored then. */
export type InsertMessage = (appId: AppId, submission: Submission) => Promise<AcceptedMessage | undefined>

/** Whether sending is stopped because the app crossed its limit. */
export type IsSendingDisabled = (appId: AppId) => Promise<boolean>

type InsertContext = { db: Db; now: () => Date; queue: Queue; isDisabled: IsSendingDisabled; merger: Merger }

/** A submission of a merged batch; it is settled once it has an outcome. */
type Entry = { submission: Submission; outcome?: MergeOutcome<AcceptedMessage | undefined> }

const MAX_TARGETS_PER_STATEMENT = 5_000
/** Each round settles at least the first of the submissions that share a key. */
const MAX_ROUNDS = 600

export const createInsertMessage = (ctx: InsertContext): InsertMessage =>
  ctx.merger.merged<Submission, AcceptedMessage | undefined>({
    name: 'messages.accept',
    share: 0.5,
    async run(appId, submissions) {
      const entries: Entry[] = submissions.map((submission) => ({ submission }))
      for (const group of groupByTargetCount(entries)) await settleGroup(ctx, appId, group)
      return entries.map(({ outcome }) => outcome as MergeOutcome<AcceptedMessage | undefined>)
    },
  })

/** Splits entries into groups with at most this many targets. A submission is never split. */
function groupByTargetCount(entries: readonly Entry[]): Entry[][] {
  const groups: Entry[][] = []
  let room = -1
  for (const entry of entries) {
    const size = entry.submission.targets?.length ?? 0
    if (size > room) {
      groups.push([])
      room = MAX_TARGETS_PER_STATEMENT
    }
    groups.at(-1)?.push(entry)
    room -= size
  }
  return groups
}

/** Settles all entries. An error is the outcome only of those that no round settled before. */
async function settleGroup(ctx: InsertContext, appId: AppId, group: readonly Entry[]): Promise<void> {
  let open = group
  let respectsHold = true
  try {
    for (let round = 0; open.length > 0; round++) {
      if (round === MAX_ROUNDS) throw new Error('keys of messages keep being taken and released')
      const isHeld = await settleRound(ctx, appId, open, respectsHold)
      if (isHeld && (await ctx.isDisabled(appId))) await refuseDisabled(ctx, appId, open)
      // A disabled app becomes enabled by itself; only a request that finds the hold asks whether that has happened.
      if (isHeld) respectsHold = false
      open = open.filter(({ outcome }) => !outcome)
    }
  } catch (error) {
    for (const entry of open) entry.outcome ??= { error }
  }
}

/**
 * Returns true if sending is on hold, in which case nothing was stored. Entries that lost a key to a message that was
 * not stored stay open.
 */
async function settleRound(
  ctx: InsertContext,
  appId: AppId,
  open: readonly Entry[],
  respectsHold: boolean,
): Promise<boolean> {
  const firsts = withoutSharedKeys(open)
  const results = await insertAndAnnounce(
    ctx,
    appId,
    firsts.map(({ submission }) => submission),
    respectsHold,
  )
  if (results.some(({ isHeld }) => isHeld)) return true
  for (const [i, entry] of firsts.entries()) settleInserted(entry, results[i] as InsertResult)
  await settleReplays(ctx, appId, open)
  // The keys of such an entry were free, and none of its targets could be reached.
  for (const [i, entry] of firsts.entries()) if (results[i]?.recipients === 0) entry.outcome ??= { value: undefined }
  return false
}

/** Keeps only the first of the entries that share a key; the others find its result in the next round. */
function withoutSharedKeys(open: readonly Entry[]): Entry[] {
  const seen = new Set<string>()
  return open.filter(({ submission: { keys } }) => {
    const names = keys.map(({ name, key }) => `${name} ${key}`)
    if (names.some((name) => seen.has(name))) return false
    for (const name of names) seen.add(name)
    return true
  })
}

/** An entry with keys that was not stored stays open: another request may have taken them. */
function settleInserted(entry: Entry, { isStored, recipients, unsubscribed }: InsertResult): void {
  const { message, keys } = entry.submission
  if (isStored) entry.outcome = { value: { id: message.id, recipients, unsubscribed, isReplay: false } }
  else if (keys.length === 0) entry.outcome = { value: undefined }
}

async function settleReplays(ctx: InsertContext, appId: AppId, entries: readonly Entry[]): Promise<void> {
  const open = entries.filter(({ outcome }) => !outcome)
  const takenKeys = await findKeysOf(ctx, appId, open)
  for (const entry of open) {
    const replay = replayOf(entry.submission, takenKeys)
    if (replay) entry.outcome = replay
  }
}

/** Retries of requests that were accepted earlier still get their original answer. */
async function refuseDisabled(ctx: InsertContext, appId: AppId, open: readonly Entry[]): Promise<void> {
  const takenKeys = await findKeysOf(ctx, appId, open)
  for (const entry of open) entry.outcome = replayOf(entry.submission, takenKeys) ?? { error: sendingDisabled() }
}

async function findKeysOf({ db, now }: InsertContext, appId: AppId, entries: readonly Entry[]): Promise<TakenKey[]> {
  const keys = entries.flatMap(({ submission }) => submission.keys)
  return keys.length === 0 ? [] : findTakenKeys(db, appId, keys, oldestKeyTime(now()))
}

async function insertAndAnnounce(
  { db, now: clock, queue }: InsertContext,
  appId: AppId,
  submissions: readonly Submission[],
  respectsHold: boolean,
): Promise<InsertResult[]> {
  const now = clock()
  const jobs = expandJobs(
    appId,
    submissions.map(({ message }) => message),
    now,
  )
  const rows = queue.rowsOf(appId, jobs)
  const input = { submissions, respectsHold, now, oldestKeyTime: oldestKeyTime(now) }
  const insert = (db: Db) =>
    insertSubmissions(
      db,
      appId,
      userIdOfRow(appId),
      wasDisabled(appId),
      jobsInsert(appId, rows, now, IS_JOB_OF_STORED),
      input,
    )
  const hasCompositeKey = submissions.some(({ keys }) => keys.length > 1)
  const results = hasCompositeKey
    ? await db.transaction((db) => insertAllOrNoKeys(db, appId, submissions, insert))
    : await insert(db)
  // The answers need not wait for the announcement: workers also find new jobs by polling.
  if (results[0]?.hasNewJobs) queue.announce(db, jobs).catch(() => {})
  return results
}

/** When a request has two keys, one can be free and the other taken: then it keeps neither. */
async function insertAllOrNoKeys(
  db: Db,
  appId: AppId,
  submissions: readonly Submission[],
  insert: (db: Db) => Promise<InsertResult[]>,
): Promise<InsertResult[]> {
  const results = await insert(db)
  const refused = submissions.filter(({ keys }, i) => keys.length > 1 && !results[i]?.isStored)
  if (refused.length > 0) await releaseKeys(db, appId, refused)
  return results
}

/** Direct messages that are due share one job. Every other message has its own, due when the message is. */
function expandJobs(appId: AppId, messages: readonly NewMessage[], now: Date): NewJob[] {
  const jobs: NewJob[] = messages
    .filter(({ lane, sendAfter }) => lane === 'bulk' || sendAfter > now)
    .map((message) => expandJob(appId, message, message.sendAfter))
  if (jobs.length < messages.length) jobs.push(expandJob(appId, DIRECT))
  return jobs
}

/** Picks from the rows `r` of jobs those of messages that were stored. */
const IS_JOB_OF_STORED = sql`
  case when r.key = ${DIRECT} then exists (select 1 from stored s) else r.key in (select s.id::text from stored s) end`
