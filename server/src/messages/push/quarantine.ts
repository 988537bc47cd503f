// Where it is the app that is set up wrongly, a provider may call addresses gone that are not. Its users must not be unsubscribed for
// that.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { pushFactsOf } from '../../channels/push/catalog.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { hasEverSent } from '../counts/store.ts'
import type { Provider } from '../delivery.ts'

/** Fewer can be bad by chance: somebody tries it out with tokens of old. */
const MIN_OUTCOMES = 3

/** Google's word for a token that another project made. */
export const OTHER_SENDER = 'SENDER_ID_MISMATCH'
const isOfOther = (outcome: ChannelOutcome) => outcome.kind === 'gone' && outcome.reason === OTHER_SENDER

export async function quarantineGone(
  db: Db,
  appId: AppId,
  provider: Provider,
  outcomes: ChannelOutcome[],
): Promise<ChannelOutcome[]> {
  if (provider === 'fcm') return distrustGoogle(outcomes)
  if (provider === 'email' || provider === 'sms') return outcomes
  const { unknownToken: word, subscriptionTypes } = pushFactsOf(provider)
  const isUnknownToken = (outcome: ChannelOutcome) =>
    outcome.kind === 'gone' && word !== undefined && outcome.reason === word
  // An app whose first messages all end so has the credentials of another, or of Apple's other environment.
  if (outcomes.length < MIN_OUTCOMES || !outcomes.every(isUnknownToken)) return outcomes
  if (await hasEverSent(db, appId, subscriptionTypes)) return outcomes
  return outcomes.map(() => ({ kind: 'misconfigured', reason: word ?? '' }))
}

/** With the service account of another project every token is another's. It is believed where it was not so for others just now. */
function distrustGoogle(outcomes: ChannelOutcome[]): ChannelOutcome[] {
  if (!outcomes.some(isOfOther) || outcomes.some(({ kind }) => kind === 'sent')) return outcomes
  return outcomes.map((it) => (isOfOther(it) ? { kind: 'failed', reason: OTHER_SENDER } : it))
}
