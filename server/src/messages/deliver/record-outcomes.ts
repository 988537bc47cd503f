// What came of a slice, written down: its states and counts, and what was taken for it and not used is given back.

import type { Outcome } from '../../channels/channel.ts'
import type { AppId } from '../../lib/ids.ts'
import { release } from '../../sending/reserve.ts'
import type { Db } from '../../storage/db.ts'
import { changeCounts, moved } from '../counts/store.ts'
import { arrivalFacts, countEmailOutcomes, isBounced, noteArrivals, sayArrived } from '../email/count.ts'
import { noteSoftRefusals } from '../email/suppress-bounced.ts'
import type { Engine } from '../engine/engine.ts'
import type { DeliveryEvent } from '../feedback/delivery-event.ts'
import { findWantedEvents, insertDeliveryEvents } from '../feedback/delivery-event-store.ts'
import { tellActions } from '../feedback/run-actions.ts'
import { tellUnknownLater } from '../settle/report-unknown.ts'
import { lockUncanceled, reopenMessage } from '../settle/store.ts'
import { type Attempt, capOf, claimOf, countedUnder, countsForLimit, INTERRUPTED, idsOf, ownName } from './batch.ts'
import { deleteSlice } from './batch-store.ts'
import type { Composed } from './compose.ts'
import { unnote } from './frequency-cap.ts'
import { changeAfter, isRefused, type Pause, pauseOf } from './judge-outcome.ts'
import type { Marked } from './mark-sending.ts'
import { putPause } from './provider-pause-store.ts'
import { changeDeliveries, type DeliveryChange } from './store.ts'

type Judged = { it: Composed; outcome: Outcome; change: DeliveryChange }

/**
 * Also by who has lost the line meanwhile: where nobody has taken its slice over, or those of it that were given up as unknown.
 * Answers whether the provider wants a pause.
 */
export async function recordOutcomes(
  { random, noteActions, queue }: Pick<Engine, 'random' | 'noteActions' | 'queue'>,
  db: Db,
  attempt: Attempt,
  { sent, second }: Marked,
  outcomes: readonly Outcome[],
  now: Date,
): Promise<Pause | undefined> {
  const { appId, line } = attempt
  const judged = sent.map((it, i): Judged => {
    const outcome = outcomes[i] as Outcome
    const atLeastOnce = it.message.options.atLeastOnce ?? false
    const change = changeAfter(it.due, outcome, { now, random, atLeastOnce })
    return { it, outcome, change: { ...change, ...countedUnder(it), providerRef: ownName(it) ?? change.providerRef } }
  })
  const [isOurs, wanted] = await Promise.all([deleteSlice(db, appId, claimOf(attempt)), findWantedEvents(db, appId)])
  await endCanceled(db, attempt, judged, now)
  const changed = new Set(isOurs ? await changeSent(db, attempt, judged, now) : [])
  const revived = new Set(isOurs ? [] : await changeUnknown(db, attempt, judged, now))
  // With all its deliveries settled, their message may have been called done.
  const waiting = [...revived].filter(({ state }) => state === 'pending')
  for (const id of new Set(waiting.map(({ messageId }) => messageId))) await reopenMessage(db, appId, id)
  const pause = judged.map(({ outcome }) => pauseOf(outcome, now)).find((it) => it !== undefined)
  if (pause) await putPause(db, appId, { ...pause, provider: line.provider, since: now })
  const written = judged.filter(({ change }) => changed.has(change) || revived.has(change))
  const refused = written.filter(({ outcome }) => isRefused(outcome))
  await giveBackCap(db, attempt, refused, now)
  const counts = [
    ...moved({ state: 'pending' }, [...changed]),
    // They were counted as unknown by who took the line over.
    ...moved({ state: 'unknown', reason: INTERRUPTED }, [...revived]),
    ...arrivalFacts(written),
  ]
  await Promise.all([
    changeCounts(db, appId, line.part, counts),
    countEmailOutcomes(db, appId, line.part, written, now),
    tellEvents(db, appId, wanted, written, now),
  ])
  const arrived = written.filter(({ change }) => change.deliveredAt !== null).map(({ it }) => it.due)
  await tellActions(noteActions, db, appId, arrived)
  if (line.provider === 'email') await noteSoftRefusals(db, appId, written, now)
  const count = refused.filter(({ it }) => countsForLimit(it)).length
  if (second && count > 0) await release(db, appId, [{ second, count }], now)
  await tellUnknownLater(
    queue,
    db,
    appId,
    written.map(({ change }) => change),
    now,
  )
  return pause
}

async function changeSent(db: Db, attempt: Attempt, judged: readonly Judged[], now: Date): Promise<DeliveryChange[]> {
  const { appId, line } = attempt
  if (line.provider !== 'email') return changeDeliveries(db, appId, judged.map(changeOf), { state: 'pending' })
  // Of nearly all mails nothing has come back before their answer: that they arrived is news, without a look at them first.
  sayArrived(judged, now)
  const unheard = await changeDeliveries(db, appId, judged.map(changeOf), { state: 'pending', isUnheard: true })
  const isChanged = new Set(unheard)
  const rest = judged.filter(({ change }) => !isChanged.has(change))
  await noteArrivals(db, appId, rest, now)
  return [...unheard, ...(await changeDeliveries(db, appId, rest.map(changeOf), { state: 'pending' }))]
}

/** Those that were given up as unknown meanwhile. */
async function changeUnknown(db: Db, { appId, line, fence }: Attempt, judged: readonly Judged[], now: Date) {
  if (line.provider === 'email') await noteArrivals(db, appId, judged, now)
  return changeDeliveries(db, appId, judged.map(changeOf), { state: 'unknown', fence })
}

const changeOf = ({ change }: Judged) => change

/** Ends that somebody asked to be told of. */
async function tellEvents(
  db: Db,
  appId: AppId,
  wanted: Awaited<ReturnType<typeof findWantedEvents>>,
  judged: readonly Judged[],
  now: Date,
) {
  const events = judged.flatMap((judged): DeliveryEvent[] => {
    const { messageId, subscriptionId, userId, platform } = judged.it.due
    const reason = reasonOf(judged)
    return kindsOf(judged)
      .filter((kind) => wanted.has(kind))
      .map((kind) => ({ kind, at: now, messageId, subscriptionId, userId, platform, reason }))
  })
  await insertDeliveryEvents(db, appId, events)
}

/** Of a bounce its class, as of one that comes back later. */
const reasonOf = ({ outcome, change }: Judged) =>
  isBounced(outcome) && 'reason' in outcome ? outcome.reason : (change.reason ?? undefined)

/** A mail that was refused for its recipient bounced, at once; that is told instead of a failure. */
function kindsOf({ outcome, change: { state, deliveredAt, bouncedAt } }: Judged): DeliveryEvent['kind'][] {
  if (isBounced(outcome)) return bouncedAt ? ['bounced'] : []
  if (state === 'sent') return deliveredAt ? ['sent', 'delivered'] : ['sent']
  return state === 'failed' ? ['failed'] : []
}

/** Who canceled a message may have closed what was waiting already; nothing of it waits again. */
async function endCanceled(db: Db, { appId }: Attempt, judged: readonly Judged[], now: Date) {
  const again = judged.filter(({ change }) => change.state === 'pending')
  if (again.length === 0) return
  const uncanceled = await lockUncanceled(db, appId, idsOf(again.map(({ it }) => it)))
  for (const { it, change } of again)
    if (!uncanceled.has(it.message.id)) Object.assign(change, { state: 'canceled', settledAt: now })
}

async function giveBackCap(db: Db, { appId, settings }: Attempt, refused: readonly Judged[], now: Date) {
  const capped = refused.map(({ it }) => it).filter((it) => capOf(settings, it))
  const cap = capped[0] && capOf(settings, capped[0])
  if (!cap) return
  await unnote(
    db,
    appId,
    cap,
    capped.map(({ due }) => due),
    now,
  )
}
