// What became of mail, counted by domain and inbox provider, in the transaction that writes it down.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { isBounce } from '../../channels/email/classify-bounce.ts'
import { countEmails } from '../../email/metrics/count.ts'
import type { EmailCount } from '../../email/metrics/facts.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { JudgedDelivery, UnsentDelivery } from '../engine/channel.ts'
import { deliveryKey, lockArrivals } from './store.ts'

/** Refused for its recipient, and so an end. */
export const isBounced = (outcome: ChannelOutcome) =>
  (outcome.kind === 'gone' || outcome.kind === 'failed') && isBounce(outcome.reason)

const isArrival = ({ outcome }: JudgedDelivery) => outcome.kind === 'sent' || isBounced(outcome)

/** When a mail was taken, or bounced, as if nobody had said so before. */
export function markArrivals(judged: readonly JudgedDelivery[], now: Date): void {
  for (const { outcome, change } of judged.filter(isArrival))
    if (outcome.kind === 'sent') change.deliveredAt = now
    else change.bouncedAt = now
}

/**
 * The same, said once: by this or by who heard of it before, since the answer and a report can cross. What is not news stays null.
 * The deliveries are locked by it.
 */
export async function recordArrivals(
  db: Db,
  appId: AppId,
  judged: readonly JudgedDelivery[],
  now: Date,
): Promise<void> {
  const arrived = judged.filter(isArrival)
  if (arrived.length === 0) return
  const found = await lockArrivals(
    db,
    appId,
    arrived.map(({ change }) => change),
  )
  const known = new Map(found.map((it) => [deliveryKey(it), it]))
  for (const { outcome, change } of arrived) {
    const before = known.get(deliveryKey(change))
    // A mail that came back before its answer was written down had arrived by then.
    if (outcome.kind === 'sent') change.deliveredAt = before?.deliveredAt ? null : (before?.bouncedAt ?? now)
    else change.bouncedAt = before?.bouncedAt ? null : now
  }
}

/** Sent is what was answered for good, taken or not; failed is what was never handed over. */
export async function countEmailOutcomes(
  db: Db,
  appId: AppId,
  part: number,
  judged: readonly JudgedDelivery[],
  at: Date,
): Promise<void> {
  const counts = judged.flatMap(({ delivery, outcome, change }): EmailCount[] => {
    const { sendingDomain: domain = null, inboxProvider: provider = null } = delivery.details.dimensions ?? {}
    if (domain === null || provider === null || (change.state !== 'sent' && change.state !== 'failed')) return []
    if (change.state === 'failed' && !isBounced(outcome)) return [{ domain, provider, at, failed: 1 }]
    return [{ domain, provider, at, sent: 1, delivered: change.deliveredAt ? 1 : 0, bounced: change.bouncedAt ? 1 : 0 }]
  })
  if (counts.length > 0) await countEmails(db, appId, part, counts)
}

/** Those that ended before they were handed over: tried until their time was over, or never put together. */
export async function countFailedEmails(
  db: Db,
  appId: AppId,
  part: number,
  ended: readonly UnsentDelivery[],
  at: Date,
) {
  const counts = ended.flatMap(({ state, attempts, sendingDomain, inboxProvider }): EmailCount[] => {
    if (sendingDomain === null || inboxProvider === null) return []
    const isFailed = state === 'failed' || (state === 'expired' && attempts > 0)
    return isFailed ? [{ domain: sendingDomain, provider: inboxProvider, at, failed: 1 }] : []
  })
  if (counts.length > 0) await countEmails(db, appId, part, counts)
}
