// Before anybody outside is asked, what is to be sent is committed as being sent. Order of the locks: the job, turns, messages, users
// of a cap, deliveries, counts, the slice, and last the app's limit, for which all lines of the app wait.

import type { SendingHold } from '../../sending/hold.ts'
import { reserveMessages } from '../../sending/reserve.ts'
import type { Db } from '../../storage/db.ts'
import { lockForSending } from '../cancel-lock.ts'
import { changeCounts, transitionsFrom } from '../counts/store.ts'
import { lockUncanceled } from '../settle/store.ts'
import { type Attempt, capOf, claimOf, countsForLimit, dimensionsOf, messageIdsOf, ownReferenceOf } from './batch.ts'
import { deleteBatch, type InFlightDelivery, insertBatch } from './batch-store.ts'
import type { ComposedDelivery } from './compose.ts'
import { changeTo } from './decide.ts'
import { admitUnderCap } from './frequency-cap.ts'
import { changeDeliveries } from './store.ts'

export type MarkedBatch = {
  sent: ComposedDelivery[]
  /** Where they are counted in the app's limit. */
  second: Date | undefined
  /** Why not all of them may be sent. */
  hold: SendingHold | undefined
}

/** Undefined when the line is somebody else's now, or the app is gone. */
export async function markSending(
  db: Db,
  attempt: Attempt,
  slice: readonly ComposedDelivery[],
  now: Date,
): Promise<MarkedBatch | undefined> {
  const { work } = attempt
  const [isMine, uncanceled] = await Promise.all([work.isStillHeld(db), queueAndLock(db, attempt, slice)])
  if (!isMine) return undefined
  // Nobody but who has the line, and who cancels, changes what waits in it: it is as it was found.
  const wanted = slice.filter(({ message }) => uncanceled.has(message.id))
  const { admitted, refused, note } = await admitCapped(db, attempt, wanted, now)
  await skipCapped(db, attempt, refused, now)
  if (admitted.length === 0) return { sent: [], second: undefined, hold: undefined }
  const [isThere, { granted, second, hold }] = await Promise.all([
    begin(db, attempt, admitted),
    reserveFor(db, attempt, admitted, now),
  ])
  if (!isThere) return undefined
  if (granted.length < admitted.length) await beginWithFewer(db, attempt, granted)
  await note(granted)
  return { sent: granted, second, hold }
}

/** Answers which messages are not canceled, and remain so until the transaction ends. */
async function queueAndLock(db: Db, { appId, shard: line }: Attempt, slice: readonly ComposedDelivery[]) {
  const ids = messageIdsOf(slice)
  if (line.lane === 'bulk') await lockForSending(db, ids)
  return lockUncanceled(db, appId, ids)
}

const begin = (db: Db, attempt: Attempt, list: readonly ComposedDelivery[]) =>
  insertBatch(db, attempt.appId, claimOf(attempt), list.map(underWay))

const underWay = (it: ComposedDelivery): InFlightDelivery => {
  const { expandAt, messageId, subscriptionId, runId } = it.due
  return { expandAt, messageId, subscriptionId, runId, providerRef: ownReferenceOf(it), ...dimensionsOf(it) }
}

/** What the limit does not let through waits as before. */
async function beginWithFewer(db: Db, attempt: Attempt, granted: readonly ComposedDelivery[]) {
  await deleteBatch(db, attempt.appId, claimOf(attempt))
  if (granted.length > 0) await begin(db, attempt, granted)
}

async function skipCapped(db: Db, { appId, shard: line }: Attempt, refused: readonly ComposedDelivery[], now: Date) {
  const skips = refused.map(({ due }) => changeTo(due, 'skipped', 'frequency_cap', now))
  const changed = await changeDeliveries(db, appId, skips, { state: 'pending' })
  await changeCounts(db, appId, line.number, transitionsFrom({ state: 'pending' }, changed))
}

type Admitted = {
  admitted: ComposedDelivery[]
  refused: ComposedDelivery[]
  note(sent: readonly ComposedDelivery[]): Promise<void>
}

async function admitCapped(
  db: Db,
  { appId, settings }: Attempt,
  wanted: readonly ComposedDelivery[],
  now: Date,
): Promise<Admitted> {
  const capped = wanted.filter((it) => capOf(settings, it))
  const cap = capped[0] && capOf(settings, capped[0])
  if (!cap) return { admitted: [...wanted], refused: [], note: async () => {} }
  const { isAdmitted, recordSent: note } = await admitUnderCap(
    db,
    appId,
    cap,
    capped.map(({ due }) => due),
    now,
  )
  const isFree = (it: ComposedDelivery) => !capped.includes(it) || isAdmitted(it.due)
  return {
    admitted: wanted.filter(isFree),
    refused: wanted.filter((it) => !isFree(it)),
    note: (sent) => note(sent.filter((it) => capped.includes(it)).map(({ due }) => due)),
  }
}

async function reserveFor(
  db: Db,
  { appId }: Attempt,
  marked: readonly ComposedDelivery[],
  now: Date,
): Promise<{ granted: ComposedDelivery[] } & Omit<MarkedBatch, 'sent'>> {
  const counted = marked.filter(countsForLimit)
  if (counted.length === 0) return { granted: [...marked], second: undefined, hold: undefined }
  const { granted, second, hold } = await reserveMessages(db, appId, counted.length, now)
  const isGranted = new Set(counted.slice(0, granted))
  return {
    granted: marked.filter((it) => isGranted.has(it) || !countsForLimit(it)),
    second,
    hold: granted < counted.length ? hold : undefined,
  }
}
