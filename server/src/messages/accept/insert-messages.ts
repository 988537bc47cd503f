// Messages come in: concurrent requests of one app are one transaction, in which whom they name is looked up, their keys are
// taken, and messages and jobs are written. Who is told the id of a message is told after the commit.

import { AppError } from '../../lib/errors.ts'
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
import type { IdempotencyKey, MessageId, NewMessage } from '../message.ts'
import {
  findTakenKeys,
  type InsertResult,
  insertMessages,
  insertSubmissions,
  releaseKeys,
  type Submission,
  type TakenKey,
} from '../store.ts'
import { oldestKeyTime } from './idempotency.ts'

/** `unsubscribed` are places among the targets. */
export type AcceptedMessage = { id: MessageId; recipients: number | null; unsubscribed: number[]; isReplay: boolean }

/** Undefined when nobody who is named can be reached; then nothing was stored. */
export type InsertMessage = (appId: AppId, waiting: Submission) => Promise<AcceptedMessage | undefined>

/** Is sending stopped because the app crossed its limit? */
export type IsSendingDisabled = (appId: AppId) => Promise<boolean>

const TARGETS_AT_ONCE = 5_000
/** Each settles at least the first of those that share a key. */
const ROUNDS = 600

type Context = { db: Db; now: () => Date; queue: Queue; isDisabled: IsSendingDisabled; merger: Merger }

export function createInsertMessage({ db, now, queue, isDisabled, merger }: Context): InsertMessage {
  /** Messages, keys and jobs are one statement, which is its own transaction. */
  async function store(appId: AppId, list: Submission[], heedsHold: boolean) {
    const at = now()
    const times = { now: at, keysFrom: oldestKeyTime(at), heedsHold }
    const messages = list.map(({ message }) => message)
    const jobs = jobsFor(appId, messages, at)
    const rows = queue.rowsOf(appId, jobs)
    const insert = (db: Db) =>
      insertSubmissions(
        db,
        appId,
        userIdOfRow(appId),
        wasDisabled(appId),
        jobsInsert(appId, rows, at, IS_FOR_STORED),
        list,
        times,
      )
    const mayHalfTake = list.some(({ keys }) => keys.length > 1)
    const probed = await (mayHalfTake ? db.transaction((db) => insertWhole(db, appId, list, insert)) : insert(db))
    // Nobody has to wait for this to be told that the message was taken. A job that was waiting already is known.
    if (probed[0]?.hasNewJobs) queue.announce(db, jobs).catch(() => {})
    return probed
  }

  /** Of two keys one can be free while the other is not: then neither is taken. */
  async function insertWhole(db: Db, appId: AppId, list: Submission[], insert: (db: Db) => Promise<InsertResult[]>) {
    const probed = await insert(db)
    const halfTaken = list.filter(({ keys }, i) => keys.length > 1 && !probed[i]?.isStored)
    if (halfTaken.length > 0) await releaseKeys(db, appId, halfTaken)
    return probed
  }

  /** Settles what it can; those that lost a key to a message that was then not stored stay open. */
  async function runRound(
    appId: AppId,
    list: Submission[],
    open: number[],
    outcomes: MergeOutcome<AcceptedMessage | undefined>[],
    heedsHold: boolean,
  ) {
    const firsts = withoutSharedKeys(list, open)
    const probed = await store(
      appId,
      firsts.map((i) => list[i] as Submission),
      heedsHold,
    )
    if (probed.some(({ isHeld }) => isHeld)) throw new Held()
    const unsettled: number[] = []
    for (const [place, i] of firsts.entries()) {
      const { isStored, recipients, unsubscribed } = probed[place] as (typeof probed)[number]
      const { message, keys } = list[i] as Submission
      if (isStored) outcomes[i] = { value: { id: message.id, recipients, unsubscribed, isReplay: false } }
      else if (keys.length === 0) outcomes[i] = { value: undefined }
      else unsettled.push(i)
    }
    const settledNow = new Set(firsts)
    const rest = open.filter((i) => !settledNow.has(i))
    const keyed = [...unsettled, ...rest]
    if (keyed.length === 0) return []
    const taken = await findTakenKeys(
      db,
      appId,
      keyed.flatMap((i) => list[i]?.keys ?? []),
      oldestKeyTime(now()),
    )
    for (const i of keyed) {
      const replay = replayOf(list[i] as Submission, taken)
      if (replay) outcomes[i] = replay
    }
    // Nobody took the key, and nobody could be reached.
    for (const [place, i] of firsts.entries())
      if (!outcomes[i] && probed[place]?.recipients === 0) outcomes[i] = { value: undefined }
    return keyed.filter((i) => !outcomes[i])
  }

  async function settle(
    appId: AppId,
    list: Submission[],
    group: number[],
    outcomes: MergeOutcome<AcceptedMessage | undefined>[],
    heedsHold: boolean,
  ) {
    let open = group
    for (let round = 0; open.length > 0; round++) {
      if (round === ROUNDS) throw new Error('keys of messages keep being taken and let go')
      open = await runRound(appId, list, open, outcomes, heedsHold)
    }
  }

  return merger.merged<Submission, AcceptedMessage | undefined>({
    name: 'messages.accept',
    share: 0.5,
    async run(appId, inputs) {
      const outcomes: MergeOutcome<AcceptedMessage | undefined>[] = new Array(inputs.length)
      for (const group of bounded(inputs)) {
        try {
          await settle(appId, inputs, group, outcomes, true)
        } catch (error) {
          // What earlier rounds and groups committed is done: the error is for the others alone.
          const open = group.filter((i) => !outcomes[i])
          if (!(error instanceof Held)) for (const i of open) outcomes[i] = { error }
          else await settleHeld(appId, inputs, open, outcomes)
        }
      }
      return outcomes
    },
  })

  /** Being disabled ends by itself. Only who finds the app so asks whether it has. */
  async function settleHeld(
    appId: AppId,
    list: Submission[],
    open: number[],
    outcomes: MergeOutcome<AcceptedMessage | undefined>[],
  ) {
    try {
      if (await isDisabled(appId)) await refuse(db, appId, list, open, outcomes, oldestKeyTime(now()))
      else await settle(appId, list, open, outcomes, false)
    } catch (error) {
      for (const i of open) outcomes[i] ??= { error }
    }
  }
}

/** The app was disabled; nothing was stored. */
class Held extends Error {}

/** Of the jobs `r`: those of messages that were stored. */
const IS_FOR_STORED = sql`
  case when r.key = ${DIRECT} then exists (select 1 from stored s) else r.key in (select s.id::text from stored s) end`

/** Retries of what was taken before are answered all the same. */
async function refuse(
  db: Db,
  appId: AppId,
  list: Submission[],
  open: readonly number[],
  outcomes: MergeOutcome<AcceptedMessage | undefined>[],
  from: Date,
) {
  const keys = open.flatMap((i) => list[i]?.keys ?? [])
  const taken = keys.length === 0 ? [] : await findTakenKeys(db, appId, keys, from)
  for (const i of open) outcomes[i] = replayOf(list[i] as Submission, taken) ?? { error: sendingDisabled() }
}

/** The answer that a request with one of these keys got, or that the key belongs to another request. */
export function replayOf(
  { keys, requestHash }: Pick<Submission, 'keys' | 'requestHash'>,
  taken: readonly TakenKey[],
): MergeOutcome<AcceptedMessage> | undefined {
  const known = taken.find((it) => keys.some((key) => isSame(key, it)))
  if (!known) return undefined
  if (known.requestHash !== requestHash)
    return {
      error: new AppError('invalid', { code: 'request-0', title: `${known.name} was used for another request` }),
    }
  return { value: { id: known.messageId, ...known.answer, isReplay: true } }
}

const isSame = (a: IdempotencyKey, b: IdempotencyKey) => a.name === b.name && a.key === b.key

/** Of those that bring the same key the first alone; the others see what it made. */
function withoutSharedKeys(list: readonly Submission[], open: readonly number[]): number[] {
  const seen = new Set<string>()
  return open.filter((i) => {
    const waiting = list[i] as Submission
    if (waiting.keys.length === 0) return true
    const keys = waiting.keys.map(({ name, key }) => `${name} ${key}`)
    if (keys.some((key) => seen.has(key))) return false
    for (const key of keys) seen.add(key)
    return true
  })
}

/** Places in the list, in groups of at most so many targets; a request is never split. */
function bounded(list: readonly Submission[]): number[][] {
  const groups: number[][] = []
  let room = -1
  for (const [i, { targets }] of list.entries()) {
    const size = targets?.length ?? 0
    if (size > room) {
      groups.push([])
      room = TARGETS_AT_ONCE
    }
    groups.at(-1)?.push(i)
    room -= size
  }
  return groups
}

/** Direct messages that are due share one job, however many they are; all others have their own, at their time. */
function jobsFor(appId: AppId, messages: readonly NewMessage[], now: Date): NewJob[] {
  const jobs: NewJob[] = messages
    .filter(({ lane, sendAfter }) => lane === 'bulk' || sendAfter > now)
    .map((message) => expandJob(appId, message, message.sendAfter))
  if (jobs.length < messages.length) jobs.push(expandJob(appId, DIRECT))
  return jobs
}

/**
 * Messages of the server's own making (journeys, live activities), in the caller's transaction. Their content was prepared
 * and their audience resolved by whoever makes them.
 */
export async function addMessages(
  { queue }: { queue: Queue },
  db: Db,
  appId: AppId,
  messages: readonly NewMessage[],
  now: Date,
): Promise<void> {
  await insertMessages(db, appId, messages, now)
  await queue.enqueue(db, jobsFor(appId, messages, now))
}
