// Commits a batch as being sent, before the provider is called. Order of the locks: the job, the cancel lock, messages,
// users of a cap, deliveries, counts, the batch, and last the application limit, which all shards of the app share.

import type { SendingHold } from '../../sending/hold.ts'
import { reserveMessages } from '../../sending/reserve.ts'
import type { Db } from '../../storage/db.ts'
import { lockForSending } from '../cancel-lock.ts'
import { changeCounts, transitionsFrom } from '../counts/store.ts'
import type { ComposedDelivery } from '../engine/channel.ts'
import { CAPPED } from '../reasons.ts'
import { lockUncanceled } from '../settle/store.ts'
import { type Attempt, capOf, claimOf, countsForLimit, dimensionsOf, messageIdsOf, ownReferenceOf } from './batch.ts'
import { deleteBatch, type InFlightDelivery, insertBatch } from './batch-store.ts'
import { changeTo } from './decide.ts'
import { admitUnderCap } from './frequency-cap.ts'
import { changeDeliveries } from './store.ts'

export type MarkedBatch = {
  sent: ComposedDelivery[]
  /** The second of the application limit in which the deliveries are counted. */
  second: Date | undefined
  /** Set when the limit did not grant all of them. */
  hold: SendingHold | undefined
}

const NOTHING: MarkedBatch = { sent: [], second: undefined, hold: undefined }

/** Returns undefined when another worker has the shard now, or the app was deleted. */
export async function markSending(
  db: Db,
  attempt: Attempt,
  batch: readonly ComposedDelivery[],
  now: Date,
): Promise<MarkedBatch | undefined> {
  const { work } = attempt
  const [isMine, uncanceled] = await Promise.all([work.isStillHeld(db), lockMessages(db, attempt, batch)])
  if (!isMine) return undefined
  // Only the owner of the shard and a cancel change its pending deliveries, so those of uncanceled messages are
  // unchanged since they were fetched.
  const wanted = batch.filter(({ message }) => uncanceled.has(message.id))
  const { admitted, refused, recordSent } = await admitCapped(db, attempt, wanted, now)
  await skipCapped(db, attempt, refused, now)
  if (admitted.length === 0) return NOTHING
  const [isInserted, { granted, second, hold }] = await Promise.all([
    insertInFlight(db, attempt, admitted),
    reserveFor(db, attempt, admitted, now),
  ])
  if (!isInserted) return undefined
  if (granted.length < admitted.length) await replaceInFlight(db, attempt, granted)
  await recordSent(granted)
  return { sent: granted, second, hold }
}

/** Returns the messages that are not canceled. They stay so until the transaction ends. */
async function lockMessages(db: Db, { appId, shard }: Attempt, batch: readonly ComposedDelivery[]) {
  const ids = messageIdsOf(batch)
  if (shard.lane === 'bulk') await lockForSending(db, ids)
  return lockUncanceled(db, appId, ids)
}

const insertInFlight = (db: Db, attempt: Attempt, deliveries: readonly ComposedDelivery[]) =>
  insertBatch(db, attempt.appId, claimOf(attempt), deliveries.map(inFlight))

function inFlight(delivery: ComposedDelivery): InFlightDelivery {
  const { expandAt, messageId, subscriptionId, runId } = delivery.due
  const providerRef = ownReferenceOf(delivery)
  return { expandAt, messageId, subscriptionId, runId, providerRef, ...dimensionsOf(delivery) }
}

/** Deliveries that the limit did not grant stay pending. */
async function replaceInFlight(db: Db, attempt: Attempt, granted: readonly ComposedDelivery[]) {
  await deleteBatch(db, attempt.appId, claimOf(attempt))
  if (granted.length > 0) await insertInFlight(db, attempt, granted)
}

async function skipCapped(db: Db, { appId, shard }: Attempt, refused: readonly ComposedDelivery[], now: Date) {
  const skips = refused.map(({ due }) => changeTo(due, 'skipped', CAPPED, now))
  const changed = await changeDeliveries(db, appId, skips, { state: 'pending' })
  await changeCounts(db, appId, shard.number, transitionsFrom({ state: 'pending' }, changed))
}

type CapResult = {
  admitted: ComposedDelivery[]
  refused: ComposedDelivery[]
  recordSent(sent: readonly ComposedDelivery[]): Promise<void>
}

async function admitCapped(
  db: Db,
  { appId, settings }: Attempt,
  wanted: readonly ComposedDelivery[],
  now: Date,
): Promise<CapResult> {
  const capped = wanted.filter((delivery) => capOf(settings, delivery))
  const cap = capped[0] && capOf(settings, capped[0])
  if (!cap) return { admitted: [...wanted], refused: [], recordSent: async () => {} }
  const { isAdmitted, recordSent } = await admitUnderCap(
    db,
    appId,
    cap,
    capped.map(({ due }) => due),
    now,
  )
  const isCapped = new Set(capped)
  const mayGo = (delivery: ComposedDelivery) => !isCapped.has(delivery) || isAdmitted(delivery.due)
  return {
    admitted: wanted.filter(mayGo),
    refused: wanted.filter((delivery) => !mayGo(delivery)),
    recordSent: (sent) => recordSent(sent.filter((delivery) => isCapped.has(delivery)).map(({ due }) => due)),
  }
}

type LimitResult = { granted: ComposedDelivery[] } & Omit<MarkedBatch, 'sent'>

async function reserveFor(
  db: Db,
  { appId }: Attempt,
  admitted: readonly ComposedDelivery[],
  now: Date,
): Promise<LimitResult> {
  const counted = admitted.filter(countsForLimit)
  if (counted.length === 0) return { granted: [...admitted], second: undefined, hold: undefined }
  const { granted, second, hold } = await reserveMessages(db, appId, counted.length, now)
  const isGranted = new Set(counted.slice(0, granted))
  return {
    granted: admitted.filter((delivery) => isGranted.has(delivery) || !countsForLimit(delivery)),
    second,
    hold: granted < counted.length ? hold : undefined,
  }
}
