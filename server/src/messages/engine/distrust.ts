// Where it is the app that is set up wrongly, a provider may call addresses gone that are not. Its users must not be unsubscribed for
// that.

import type { Outcome } from '../../channels/channel.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { Provider } from '../delivery.ts'
import { hasEverSent } from './count-store.ts'

/** Fewer can be bad by chance: somebody tries it out with tokens of old. */
const LEAST = 3

const isBadToken = (outcome: Outcome) => outcome.kind === 'gone' && outcome.reason === 'BadDeviceToken'

/** Google's word for a token that another project made. */
export const OTHER_SENDER = 'SENDER_ID_MISMATCH'
const isOfOther = (outcome: Outcome) => outcome.kind === 'gone' && outcome.reason === OTHER_SENDER

export async function distrust(db: Db, appId: AppId, provider: Provider, outcomes: Outcome[]): Promise<Outcome[]> {
  if (provider === 'apns') return distrustApple(db, appId, outcomes)
  return provider === 'fcm' ? distrustGoogle(outcomes) : outcomes
}

/** Apple calls a token bad that belongs to its other environment. An app whose first messages all end so has chosen the wrong one. */
async function distrustApple(db: Db, appId: AppId, outcomes: Outcome[]): Promise<Outcome[]> {
  if (outcomes.length < LEAST || !outcomes.every(isBadToken)) return outcomes
  if (await hasEverSent(db, appId, ['iOSPush', 'macOSPush'])) return outcomes
  return outcomes.map(() => ({ kind: 'misconfigured', reason: 'BadDeviceToken' }))
}

/** With the service account of another project every token is another's. It is believed where it was not so for others just now. */
function distrustGoogle(outcomes: Outcome[]): Outcome[] {
  if (!outcomes.some(isOfOther) || outcomes.some(({ kind }) => kind === 'sent')) return outcomes
  return outcomes.map((it) => (isOfOther(it) ? { kind: 'failed', reason: OTHER_SENDER } : it))
}
