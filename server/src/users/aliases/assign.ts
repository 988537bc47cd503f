import { aliasesClaimed, aliasLimitExceeded, invalid } from '../../lib/errors.ts'
import { isAnonymous } from '../devices/authorize.ts'
import type { User } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import { type Alias, MAX_CUSTOM_ALIASES, ONESIGNAL_ID } from './identity.ts'

/** Adds or replaces aliases, all of them or none. Labels that are not named keep their values. */
export function assignAliases(state: WorkingSet, user: User, aliases: Alias[]) {
  const claimed = aliases.filter((alias) => {
    const owner = state.find(alias)
    return owner !== undefined && owner !== user
  })
  if (claimed.length > 0) throw aliasesClaimed(Object.fromEntries(claimed.map(({ label, value }) => [label, value])))
  for (const alias of aliases) if (user.aliases.get(alias.label) !== alias.value) state.setAlias(user, alias)
  if (countCustom(user) > MAX_CUSTOM_ALIASES) throw aliasLimitExceeded(MAX_CUSTOM_ALIASES)
}

/**
 * Adds aliases on behalf of a device, which is not told which of them were stored. An alias that another user has is
 * not taken away, and a label that an identified user already has keeps its value, which may have come from the app's
 * back end.
 */
export function addFreeAliases(state: WorkingSet, user: User, aliases: readonly Alias[]) {
  const mayReplace = isAnonymous(user)
  for (const alias of aliases) {
    const isTaken = state.find(alias) !== undefined
    const isSet = user.aliases.has(alias.label)
    const isFull = !isSet && countCustom(user) >= MAX_CUSTOM_ALIASES
    if (!isTaken && !isFull && (mayReplace || !isSet)) state.setAlias(user, alias)
  }
}

const countCustom = (user: User) => user.aliases.size - (isAnonymous(user) ? 0 : 1)

/** A request may repeat the user's own `onesignal_id`, but can never set another. */
export function refuseOtherOnesignalId(user: User, onesignalId: string | undefined) {
  if (onesignalId !== undefined && onesignalId !== user.id) throw invalid(`${ONESIGNAL_ID} cannot be set`)
}
