// What came of a slice, written down: its states and counts, and what was taken for it and not used is given back.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { AppId } from '../../lib/ids.ts'
import { releaseMessages } from '../../sending/reserve.ts'
import type { Db } from '../../storage/db.ts'
import { changeCounts, transitionsFrom } from '../counts/store.ts'
import { arrivalCounts, countEmailOutcomes, isBounced, markArrivals, recordArrivals } from '../email/count.ts'
import { recordSoftBouncesOfAnswered } from '../email/suppress-bounced.ts'
import type { Engine } from '../engine/engine.ts'
import type { DeliveryEvent } from '../feedback/delivery-event.ts'
import { findWantedEvents, insertDeliveryEvents } from '../feedback/delivery-event-store.ts'
import { reportRunActions } from '../feedback/run-actions.ts'
import { scheduleUnknownReport } from '../settle/report-unknown.ts'
import { lockUncanceled, reopenMessage } from '../settle/store.ts'
import {
  type Attempt,
  capOf,
  claimOf,
  countsForLimit,
  dimensionsOf,
  INTERRUPTED,
  messageIdsOf,
  ownReferenceOf,
} from './batch.ts'
import { deleteBatch } from './batch-store.ts'
import type { ComposedDelivery } from './compose.ts'
import { removeSends } from './frequency-cap.ts'
import { isRefused, judgeOutcome, type PauseRequest, pauseRequestOf } from './judge-outcome.ts'
import type { MarkedBatch } from './mark-sending.ts'
import { putPause } from './provider-pause-store.ts'
import { changeDeliveries, type DeliveryChange } from './store.ts'

type JudgedDelivery = { delivery: ComposedDelivery; outcome: ChannelOutcome; change: DeliveryChange }

/**
 * Also by who has lost the line meanwhile: where nobody has taken its slice over, or those of it that were given up as unknown.
 * Answers whether the provider wants a pause.
 */
export async function recordOutcomes(
  { random, recordRunActions, queue }: Pick<Engine, 'random' | 'recordRunActions' | 'queue'>,
  db: Db,
  attempt: Attempt,
  { sent, second }: MarkedBatch,
  outcomes: readonly ChannelOutcome[],
  now: Date,
): Promise<PauseRequest | undefined> {
  const { appId, shard: line } = attempt
  const judged = sent.map((it, i): JudgedDelivery => {
    const outcome = outcomes[i] as ChannelOutcome
    const atLeastOnce = it.message.options.atLeastOnce ?? false
    const change = judgeOutcome(it.due, outcome, { now, random, atLeastOnce })
    return {
      delivery: it,
      outcome,
      change: { ...change, ...dimensionsOf(it), providerRef: ownReferenceOf(it) ?? change.providerRef },
    }
  })
  const [isOurs, wanted] = await Promise.all([deleteBatch(db, appId, claimOf(attempt)), findWantedEvents(db, appId)])
  await cancelRetries(db, attempt, judged, now)
  const changed = new Set(isOurs ? await changeSent(db, attempt, judged, now) : [])
  const revived = new Set(isOurs ? [] : await changeUnknown(db, attempt, judged, now))
  // With all its deliveries settled, their message may have been called done.
  const waiting = [...revived].filter(({ state }) => state === 'pending')
  for (const id of new Set(waiting.map(({ messageId }) => messageId))) await reopenMessage(db, appId, id)
  const pause = judged.map(({ outcome }) => pauseRequestOf(outcome, now)).find((it) => it !== undefined)
  if (pause) await putPause(db, appId, { ...pause, provider: line.provider, since: now })
  const written = judged.filter(({ change }) => changed.has(change) || revived.has(change))
  const refused = written.filter(({ outcome }) => isRefused(outcome))
  await returnToCap(db, attempt, refused, now)
  const counts = [
    ...transitionsFrom({ state: 'pending' }, [...changed]),
    // They were counted as unknown by who took the line over.
    ...transitionsFrom({ state: 'unknown', reason: INTERRUPTED }, [...revived]),
    ...arrivalCounts(written),
  ]
  await Promise.all([
    changeCounts(db, appId, line.number, counts),
    countEmailOutcomes(db, appId, line.number, written, now),
    emitEvents(db, appId, wanted, written, now),
  ])
  const arrived = written.filter(({ change }) => change.deliveredAt !== null).map(({ delivery: it }) => it.due)
  await reportRunActions(recordRunActions, db, appId, arrived)
  if (line.provider === 'email') await recordSoftBouncesOfAnswered(db, appId, written, now)
  const count = refused.filter(({ delivery: it }) => countsForLimit(it)).length
  if (second && count > 0) await releaseMessages(db, appId, [{ second, count }], now)
  await scheduleUnknownReport(
    queue,
    db,
    appId,
    written.map(({ change }) => change),
    now,
  )
  return pause
}

async function changeSent(
  db: Db,
  attempt: Attempt,
  judged: readonly JudgedDelivery[],
  now: Date,
): Promise<DeliveryChange[]> {
  const { appId, shard: line } = attempt
  if (line.provider !== 'email') return changeDeliveries(db, appId, judged.map(changeOf), { state: 'pending' })
  // Of nearly all mails nothing has come back before their answer: that they arrived is news, without a look at them first.
  markArrivals(judged, now)
  const unheard = await changeDeliveries(db, appId, judged.map(changeOf), { state: 'pending', isUnheard: true })
  const isChanged = new Set(unheard)
  const rest = judged.filter(({ change }) => !isChanged.has(change))
  await recordArrivals(db, appId, rest, now)
  return [...unheard, ...(await changeDeliveries(db, appId, rest.map(changeOf), { state: 'pending' }))]
}

/** Those that were given up as unknown meanwhile. */
async function changeUnknown(
  db: Db,
  { appId, shard: line, fence }: Attempt,
  judged: readonly JudgedDelivery[],
  now: Date,
) {
  if (line.provider === 'email') await recordArrivals(db, appId, judged, now)
  return changeDeliveries(db, appId, judged.map(changeOf), { state: 'unknown', fence })
}

const changeOf = ({ change }: JudgedDelivery) => change

/** Ends that somebody asked to be told of. */
async function emitEvents(
  db: Db,
  appId: AppId,
  wanted: Awaited<ReturnType<typeof findWantedEvents>>,
  judged: readonly JudgedDelivery[],
  now: Date,
) {
  const events = judged.flatMap((judged): DeliveryEvent[] => {
    const { messageId, subscriptionId, userId, platform } = judged.delivery.due
    const reason = reasonOf(judged)
    return kindsOf(judged)
      .filter((kind) => wanted.has(kind))
      .map((kind) => ({ kind, at: now, messageId, subscriptionId, userId, platform, reason }))
  })
  await insertDeliveryEvents(db, appId, events)
}

/** Of a bounce its class, as of one that comes back later. */
const reasonOf = ({ outcome, change }: JudgedDelivery) =>
  isBounced(outcome) && 'reason' in outcome ? outcome.reason : (change.reason ?? undefined)

/** A mail that was refused for its recipient bounced, at once; that is told instead of a failure. */
function kindsOf({ outcome, change: { state, deliveredAt, bouncedAt } }: JudgedDelivery): DeliveryEvent['kind'][] {
  if (isBounced(outcome)) return bouncedAt ? ['bounced'] : []
  if (state === 'sent') return deliveredAt ? ['sent', 'delivered'] : ['sent']
  return state === 'failed' ? ['failed'] : []
}

/** Who canceled a message may have closed what was waiting already; nothing of it waits again. */
async function cancelRetries(db: Db, { appId }: Attempt, judged: readonly JudgedDelivery[], now: Date) {
  const again = judged.filter(({ change }) => change.state === 'pending')
  if (again.length === 0) return
  const uncanceled = await lockUncanceled(db, appId, messageIdsOf(again.map(({ delivery: it }) => it)))
  for (const { delivery: it, change } of again)
    if (!uncanceled.has(it.message.id)) Object.assign(change, { state: 'canceled', settledAt: now })
}

async function returnToCap(db: Db, { appId, settings }: Attempt, refused: readonly JudgedDelivery[], now: Date) {
  const capped = refused.map(({ delivery: it }) => it).filter((it) => capOf(settings, it))
  const cap = capped[0] && capOf(settings, capped[0])
  if (!cap) return
  await removeSends(
    db,
    appId,
    cap,
    capped.map(({ due }) => due),
    now,
  )
}
