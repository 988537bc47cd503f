// What a device without an identity token sees of a user, and how much it may add. It sees the two ids, its own push
// subscription, and what its own request contained. Everything else that is stored may have come from somebody else.

import { invalid } from '../../lib/errors.ts'
import { type Alias, EXTERNAL_ID, identityObject } from '../aliases/identity.ts'
import { newProperties } from '../new-user.ts'
import { parseAmount } from '../properties/amount.ts'
import { applyPropertyChange, costOf, type PropertyChange, propertiesObject } from '../properties/properties.ts'
import type { User } from '../user.ts'

/** Aliases are echoed whether or not they were stored, so that nobody learns which are taken. */
export function deviceIdentity({ id, aliases }: Pick<User, 'id' | 'aliases'>, echoed: readonly Alias[] = []) {
  const externalId = aliases.get(EXTERNAL_ID)
  return identityObject(id, [
    ...(externalId === undefined ? [] : [[EXTERNAL_ID, externalId] as const]),
    ...echoed.filter(({ label }) => label !== EXTERNAL_ID).map(({ label, value }) => [label, value] as const),
  ])
}

/** The properties of a user of whom only the contents of this request are known. */
export function deviceProperties(now: string, change?: PropertyChange) {
  const blank = newProperties(now)
  return propertiesObject(change ? applyPropertyChange(blank, change, now) : blank)
}

const MAX_SESSIONS = 1_000
const MAX_SESSION_SECONDS = 31 * 86_400
const MAX_PURCHASE = parseAmount('1000000000')

/**
 * What one request of a device may add. Without bounds a device could drive the sum to its maximum: the refusal would
 * reveal how much was there, and would keep everybody from adding more. The amount spent is the sum of purchases, so
 * devices cannot set it.
 */
export function limitDeviceChange(change: PropertyChange): PropertyChange {
  if (change.sessionCount > MAX_SESSIONS) throw invalid(`session_count must be at most ${MAX_SESSIONS}`)
  if (change.sessionTime > MAX_SESSION_SECONDS) throw invalid(`session_time must be at most ${MAX_SESSION_SECONDS}`)
  if (change.purchases.some((purchase) => costOf(purchase) > MAX_PURCHASE))
    throw invalid('a purchase must be of at most 1000000000 in all')
  const { amountSpent: _, ...bounded } = change
  return bounded
}
