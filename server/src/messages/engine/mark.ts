// Before anybody outside is asked, what is to be sent is committed as being sent. Order of the locks: the job, turns, messages, users
// of a cap, deliveries, counts, and last the app's limit, for which all lines of the app wait.

import type { Hold } from '../../sending/hold.ts'
import { reserve } from '../../sending/reserve.ts'
import type { Db } from '../../storage/db.ts'
import { queueToSend } from '../turns.ts'
import { admit } from './cap.ts'
import type { Composed } from './compose.ts'
import { changeCounts, moved } from './count-store.ts'
import { changeTo } from './decide.ts'
import { changeDeliveries, type DeliveryChange } from './delivery-store.ts'
import { lockUncanceled } from './message-store.ts'
import { type Attempt, capOf, countedUnder, countsForLimit, idsOf } from './slice.ts'

export type Marked = {
  sent: Composed[]
  /** Where they are counted in the app's limit. */
  second: Date | undefined
  /** Why not all of them may be sent. */
  hold: Hold | undefined
}

/** Undefined when the line is somebody else's now. */
export async function markSlice(
  db: Db,
  attempt: Attempt,
  slice: readonly Composed[],
  now: Date,
): Promise<Marked | undefined> {
  const { appId, work, line } = attempt
  const [isMine, uncanceled] = await Promise.all([work.stillMine(db), queueAndLock(db, attempt, slice)])
  if (!isMine) return undefined
  const wanted = slice.filter(({ message }) => uncanceled.has(message.id))
  const { admitted, refused, note } = await admitCapped(db, attempt, wanted, now)
  const marks = admitted.map((it) => markOf(attempt, it, now))
  const skips = refused.map(({ due }) => changeTo(due, 'skipped', 'frequency_cap', now))
  const changed = new Set<DeliveryChange>(await changeDeliveries(db, appId, [...marks, ...skips], { state: 'pending' }))
  const marked = admitted.filter((_, i) => changed.has(marks[i] as DeliveryChange))
  const [, { granted, second, hold }] = await Promise.all([
    changeCounts(db, appId, line.part, moved({ state: 'pending' }, [...changed])),
    reserveFor(db, attempt, marked, now),
  ])
  if (granted.length < marked.length)
    await unmark(
      db,
      attempt,
      marked.filter((it) => !granted.includes(it)),
      now,
    )
  await note(granted)
  return { sent: granted, second, hold }
}

/** Answers which messages are not canceled, and remain so until the transaction ends. */
async function queueAndLock(db: Db, { appId, line }: Attempt, slice: readonly Composed[]) {
  const ids = idsOf(slice)
  if (line.lane === 'bulk') await queueToSend(db, ids)
  return lockUncanceled(db, appId, ids)
}

/** A mail is known by its own name from now on: what comes back of it may be faster than the answer. */
const markOf = ({ fence }: Attempt, it: Composed, now: Date): DeliveryChange => ({
  ...changeTo(it.due, 'sending', it.due.reason, now),
  ...countedUnder(it),
  providerRef: it.mailing?.id ?? null,
  attempts: it.due.attempts + 1,
  fence,
})

type Admitted = { admitted: Composed[]; refused: Composed[]; note(sent: readonly Composed[]): Promise<void> }

async function admitCapped(
  db: Db,
  { appId, settings }: Attempt,
  wanted: readonly Composed[],
  now: Date,
): Promise<Admitted> {
  const capped = wanted.filter((it) => capOf(settings, it))
  const cap = capped[0] && capOf(settings, capped[0])
  if (!cap) return { admitted: [...wanted], refused: [], note: async () => {} }
  const { isAdmitted, note } = await admit(
    db,
    appId,
    cap,
    capped.map(({ due }) => due),
    now,
  )
  const isFree = (it: Composed) => !capped.includes(it) || isAdmitted(it.due)
  return {
    admitted: wanted.filter(isFree),
    refused: wanted.filter((it) => !isFree(it)),
    note: (sent) => note(sent.filter((it) => capped.includes(it)).map(({ due }) => due)),
  }
}

async function reserveFor(
  db: Db,
  { appId }: Attempt,
  marked: readonly Composed[],
  now: Date,
): Promise<{ granted: Composed[] } & Omit<Marked, 'sent'>> {
  const counted = marked.filter(countsForLimit)
  if (counted.length === 0) return { granted: [...marked], second: undefined, hold: undefined }
  const { granted, second, hold } = await reserve(db, appId, counted.length, now)
  const isGranted = new Set(counted.slice(0, granted))
  return {
    granted: marked.filter((it) => isGranted.has(it) || !countsForLimit(it)),
    second,
    hold: granted < counted.length ? hold : undefined,
  }
}

/** What the limit does not let through goes back as it was. */
async function unmark(db: Db, { appId, fence, line }: Attempt, list: readonly Composed[], now: Date) {
  const changes = list.map(({ due }) => changeTo(due, 'pending', due.reason, now))
  await changeDeliveries(db, appId, changes, { state: 'sending', fence })
  await changeCounts(db, appId, line.part, moved({ state: 'sending' }, changes))
}
