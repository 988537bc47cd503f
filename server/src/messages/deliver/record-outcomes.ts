// Writes the outcomes of a batch: states, counts and events. Gives back what was reserved from caps and the application
// limit but not used.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { releaseMessages } from '../../sending/reserve.ts'
import type { Db } from '../../storage/db.ts'
import { type CountChange, changeCounts, groupConsecutive, transitionsFrom } from '../counts/store.ts'
import type { JudgedDelivery, MessageChannel } from '../engine/channel.ts'
import type { Engine } from '../engine/types.ts'
import type { DeliveryEvent, EventKind } from '../feedback/delivery-event.ts'
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
import { removeSends } from './frequency-cap.ts'
import { isRefused, judgeOutcome, type PauseRequest, pauseRequestOf } from './judge-outcome.ts'
import type { MarkedBatch } from './mark-sending.ts'
import { putPause } from './provider-pause-store.ts'
import { changeDeliveries, type DeliveryChange, type ExpectedState } from './store.ts'

type AnsweredBatch = Pick<MarkedBatch, 'sent' | 'second'> & { outcomes: readonly ChannelOutcome[] }

/**
 * Also called by a worker that lost its shard: it writes a batch that nobody has recovered yet, and the deliveries of a
 * recovered one that became unknown. Returns the pause that the provider asks for.
 */
export async function recordOutcomes(
  { random, recordRunActions, queue }: Pick<Engine, 'random' | 'recordRunActions' | 'queue'>,
  db: Db,
  attempt: Attempt,
  { sent, second, outcomes }: AnsweredBatch,
  now: Date,
): Promise<PauseRequest | undefined> {
  const { appId, shard, fence, channel } = attempt
  const judged = sent.map((delivery, i): JudgedDelivery => {
    const outcome = outcomes[i] as ChannelOutcome
    const atLeastOnce = delivery.message.options.atLeastOnce ?? false
    const change = judgeOutcome(delivery.due, outcome, { now, random, atLeastOnce, retryPolicy: channel.retryPolicy })
    const providerRef = ownReferenceOf(delivery) ?? change.providerRef
    return { delivery, outcome, change: { ...change, ...dimensionsOf(delivery), providerRef } }
  })
  const [isOurs, wanted] = await Promise.all([deleteBatch(db, appId, claimOf(attempt)), findWantedEvents(db, appId)])
  await cancelRetries(db, attempt, judged, now)
  const writeAs = (expected: ExpectedState) => writeOutcomes(db, attempt, judged, expected, now)
  const changed = new Set(isOurs ? await writeAs({ state: 'pending' }) : [])
  const resolved = new Set(isOurs ? [] : await writeAs({ state: 'unknown', fence }))
  // All deliveries of the message were settled, so it may be done already.
  const retried = [...resolved].filter(({ state }) => state === 'pending')
  for (const id of new Set(retried.map(({ messageId }) => messageId))) await reopenMessage(db, appId, id)
  const pause = judged.map(({ outcome }) => pauseRequestOf(outcome, now)).find((request) => request !== undefined)
  if (pause) await putPause(db, appId, { ...pause, provider: shard.provider, since: now })
  const written = judged.filter(({ change }) => changed.has(change) || resolved.has(change))
  const refused = written.filter(({ outcome }) => isRefused(outcome))
  await returnToCap(db, attempt, refused, now)
  const counts = [
    ...transitionsFrom({ state: 'pending' }, [...changed]),
    // The worker that recovered the shard counted them as unknown.
    ...transitionsFrom({ state: 'unknown', reason: INTERRUPTED }, [...resolved]),
    ...arrivalCounts(written),
  ]
  await Promise.all([
    changeCounts(db, appId, shard.number, counts),
    channel.countOutcomes?.(db, appId, shard.number, written, now),
    insertDeliveryEvents(db, appId, eventsOf(channel, written, wanted, now)),
  ])
  const arrived = written.filter(({ change }) => change.deliveredAt !== null)
  await reportRunActions(
    recordRunActions,
    db,
    appId,
    arrived.map(({ delivery }) => delivery.due),
  )
  await channel.followOutcomes?.(db, appId, written, now)
  const unused = refused.filter(({ delivery }) => countsForLimit(delivery)).length
  if (second && unused > 0) await releaseMessages(db, appId, [{ second, count: unused }], now)
  await scheduleUnknownReport(
    queue,
    db,
    appId,
    written.map(({ change }) => change),
    now,
  )
  return pause
}

function writeOutcomes(
  db: Db,
  { appId, channel }: Attempt,
  judged: readonly JudgedDelivery[],
  expected: ExpectedState,
  now: Date,
): Promise<DeliveryChange[]> {
  if (channel.writeOutcomes) return channel.writeOutcomes(db, appId, judged, expected, now)
  return changeDeliveries(
    db,
    appId,
    judged.map(({ change }) => change),
    expected,
  )
}

/** Delivered and bounced deliveries are counted beside the states of their message. */
function arrivalCounts(judged: readonly JudgedDelivery[]): CountChange[] {
  const countAs = (state: 'delivered' | 'bounced', deliveries: readonly JudgedDelivery[]) =>
    groupConsecutive(
      deliveries.map(({ change: { messageId, platform } }) => ({ messageId, platform, state, reason: null })),
    )
  return [
    ...countAs(
      'delivered',
      judged.filter(({ change }) => change.deliveredAt),
    ),
    ...countAs(
      'bounced',
      judged.filter(({ change }) => change.bouncedAt),
    ),
  ]
}

/** Only creates events of the kinds that some event webhook of the app wants. */
const eventsOf = (
  channel: MessageChannel,
  judged: readonly JudgedDelivery[],
  wanted: ReadonlySet<EventKind>,
  now: Date,
): DeliveryEvent[] =>
  judged.flatMap(({ delivery, outcome, change }): DeliveryEvent[] => {
    const { messageId, subscriptionId, userId, platform } = delivery.due
    const isBounce = channel.isBounce?.(outcome) ?? false
    // A bounce in the provider's answer is reported with its class, like a bounce that is reported later.
    const reason = isBounce && 'reason' in outcome ? outcome.reason : (change.reason ?? undefined)
    return eventKindsOf(change, isBounce)
      .filter((kind) => wanted.has(kind))
      .map((kind) => ({ kind, at: now, messageId, subscriptionId, userId, platform, reason }))
  })

/** A bounce is reported instead of a failure, and only once. */
function eventKindsOf({ state, deliveredAt, bouncedAt }: DeliveryChange, isBounce: boolean): DeliveryEvent['kind'][] {
  if (isBounce) return bouncedAt ? ['bounced'] : []
  if (state === 'sent') return deliveredAt ? ['sent', 'delivered'] : ['sent']
  return state === 'failed' ? ['failed'] : []
}

/** A cancel may have already closed what was pending, so no delivery of a canceled message may become pending again. */
async function cancelRetries(db: Db, { appId }: Attempt, judged: readonly JudgedDelivery[], now: Date) {
  const retried = judged.filter(({ change }) => change.state === 'pending')
  if (retried.length === 0) return
  const uncanceled = await lockUncanceled(db, appId, messageIdsOf(retried.map(({ delivery }) => delivery)))
  for (const { delivery, change } of retried)
    if (!uncanceled.has(delivery.message.id)) Object.assign(change, { state: 'canceled', settledAt: now })
}

async function returnToCap(db: Db, { appId, settings }: Attempt, refused: readonly JudgedDelivery[], now: Date) {
  const capped = refused.map(({ delivery }) => delivery).filter((delivery) => capOf(settings, delivery))
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
