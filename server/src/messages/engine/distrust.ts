// Apple calls a token bad that belongs to its other environment. An app whose first messages all end so has most likely chosen the
// wrong one: its users must not be unsubscribed for that.

import type { Outcome } from '../../channels/channel.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { Provider } from '../delivery.ts'
import { hasEverSent } from './count-store.ts'

/** Fewer can be bad by chance: somebody tries it out with tokens of old. */
const LEAST = 3

const isBadToken = (outcome: Outcome) => outcome.kind === 'gone' && outcome.reason === 'BadDeviceToken'

export async function distrust(db: Db, appId: AppId, provider: Provider, outcomes: Outcome[]): Promise<Outcome[]> {
  if (provider !== 'apns' || outcomes.length < LEAST || !outcomes.every(isBadToken)) return outcomes
  if (await hasEverSent(db, appId, ['iOSPush', 'macOSPush'])) return outcomes
  return outcomes.map(() => ({ kind: 'misconfigured', reason: 'BadDeviceToken' }))
}
