// Counts the outcomes of emails by domain and inbox provider, in the transaction that records them.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { isBounce } from '../../channels/email/classify-bounce.ts'
import { countEmails } from '../../email/metrics/count.ts'
import type { EmailCount } from '../../email/metrics/facts.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { JudgedDelivery, UnsentDelivery } from '../engine/channel.ts'
import { deliveryKey, lockArrivals } from './store.ts'

/** The email was refused because of its recipient, which is final. */
export const isBounced = (outcome: ChannelOutcome) =>
  (outcome.kind === 'gone' || outcome.kind === 'failed') && isBounce(outcome.reason)

const isArrival = ({ outcome }: JudgedDelivery) => outcome.kind === 'sent' || isBounced(outcome)

/** Sets when an email was accepted or bounced, assuming that no feedback has reported it before. */
export function markArrivals(judged: readonly JudgedDelivery[], now: Date): void {
  for (const { outcome, change } of judged.filter(isArrival))
    if (outcome.kind === 'sent') change.deliveredAt = now
    else change.bouncedAt = now
}

/**
 * Like `markArrivals`, but takes earlier feedback into account, because the answer and a report can cross: each arrival
 * is recorded once. Times that were recorded before stay null in the change. Locks the deliveries.
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
    // An email that bounced before its answer was recorded had arrived by that time.
    if (outcome.kind === 'sent') change.deliveredAt = before?.deliveredAt ? null : (before?.bouncedAt ?? now)
    else change.bouncedAt = before?.bouncedAt ? null : now
  }
}

/** `sent` counts emails with a final answer, accepted or refused; `failed` counts those that were never handed over. */
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

/**
 * Counts emails that ended before they were handed over: those retried until they expired, and those that could not be
 * composed.
 */
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
