// Providers also call addresses gone when the app's credentials are wrong. Its users must not be unsubscribed for that.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { pushFactsOf } from '../../channels/push/catalog.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { hasEverSent } from '../counts/store.ts'
import type { Provider } from '../delivery.ts'

/** Fewer bad tokens can be chance, such as a trial with old tokens. */
const MIN_OUTCOMES = 3

/** Google's answer for a token of another project. */
export const OTHER_SENDER = 'SENDER_ID_MISMATCH'
const isOtherSender = (outcome: ChannelOutcome) => outcome.kind === 'gone' && outcome.reason === OTHER_SENDER

export async function quarantineGone(
  db: Db,
  appId: AppId,
  provider: Provider,
  outcomes: ChannelOutcome[],
): Promise<ChannelOutcome[]> {
  if (provider === 'fcm') return quarantineOtherSender(outcomes)
  if (provider === 'email' || provider === 'sms') return outcomes
  const { unknownToken: reason, subscriptionTypes } = pushFactsOf(provider)
  if (reason === undefined || outcomes.length < MIN_OUTCOMES) return outcomes
  // If all first messages of an app end like this, it has the credentials of another app, or of Apple's other
  // environment.
  if (!outcomes.every((outcome) => outcome.kind === 'gone' && outcome.reason === reason)) return outcomes
  if (await hasEverSent(db, appId, subscriptionTypes)) return outcomes
  return outcomes.map(() => ({ kind: 'misconfigured', reason }))
}

/**
 * With another project's service account every token looks foreign. The answer counts only if others of the batch were
 * sent.
 */
function quarantineOtherSender(outcomes: ChannelOutcome[]): ChannelOutcome[] {
  if (!outcomes.some(isOtherSender) || outcomes.some(({ kind }) => kind === 'sent')) return outcomes
  return outcomes.map((outcome) => (isOtherSender(outcome) ? { kind: 'failed', reason: OTHER_SENDER } : outcome))
}
