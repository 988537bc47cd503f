// Suppresses an address that does not exist at once, and one that is full or failing after repeated soft bounces.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { bounceReasons } from '../../channels/email/classify-bounce.ts'
import { recordSoftBounces, suppressAddresses } from '../../email/suppressions/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { DeliveryChange } from '../deliver/store.ts'
import type { ChannelContext, ComposedDelivery, JudgedDelivery, UnsentDelivery } from '../engine/channel.ts'
import { isBounced } from './count.ts'
import { findEmailAddresses } from './store.ts'

/** A failure here is harmless: the next message to the address bounces again. */
export async function suppressBounced(
  { db, clock, log }: ChannelContext,
  appId: AppId,
  sent: readonly ComposedDelivery[],
  outcomes: readonly ChannelOutcome[],
): Promise<void> {
  const reason = bounceReasons.hard
  const hard = sent.flatMap(({ due }, i) => {
    const outcome = outcomes[i] as ChannelOutcome
    return due.token !== null && isBounced(outcome) && 'reason' in outcome && outcome.reason === reason
      ? [due.token.toLowerCase()]
      : []
  })
  const list = [...new Set(hard)].map((address) => ({ address, reason }))
  try {
    await suppressAddresses(db, appId, list, clock.now())
  } catch (error) {
    log.warn({ appId, reason: (error as Error).message }, 'Could not suppress addresses that bounced')
  }
}

const SOFT: readonly (string | null)[] = [bounceReasons.soft, bounceReasons.full]

/** A delivery that was deferred until it expired counts as refused. */
const isSoftEnd = ({ state, reason }: Pick<DeliveryChange, 'state' | 'reason'>) =>
  (state === 'failed' || state === 'expired') && SOFT.includes(reason)

/**
 * Records the soft bounces in provider answers. A bounce that was reported before its answer arrived is recorded
 * already.
 */
export async function recordSoftBouncesOfAnswered(
  db: Db,
  appId: AppId,
  judged: readonly JudgedDelivery[],
  now: Date,
): Promise<void> {
  const addresses = judged.flatMap(({ delivery: { due }, outcome, change }) => {
    const isNews = !isBounced(outcome) || change.bouncedAt !== null
    return isSoftEnd(change) && isNews && due.token !== null ? [due.token.toLowerCase()] : []
  })
  await recordSoftBounces(db, appId, addresses, now)
}

/** Records the soft bounces of deliveries that were deferred until they expired. */
export async function recordSoftBouncesOfExpired(
  db: Db,
  appId: AppId,
  ended: readonly UnsentDelivery[],
  now: Date,
): Promise<void> {
  const ids = ended.filter(isSoftEnd).map(({ subscriptionId }) => subscriptionId)
  if (ids.length === 0) return
  const known = await findEmailAddresses(db, appId, [...new Set(ids)])
  const addresses = ids.flatMap((id) => known.get(id)?.toLowerCase() ?? [])
  await recordSoftBounces(db, appId, addresses, now)
}
