import { aliasesClaimed, aliasLimitExceeded, invalid } from '../../lib/errors.ts'
import { isAnonymous } from '../devices/authorize.ts'
import type { User } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import { type Alias, MAX_CUSTOM_ALIASES, ONESIGNAL_ID } from './identity.ts'

/** Add or replace aliases: all of them or none. Labels that are not named stay. */
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
 * Add aliases on behalf of a device, which is not told what became of them. One that somebody has is not taken from them,
 * and a label that a known person has already keeps its value: it may have come from the app's back end.
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

/** `onesignal_id` may be sent along when it says what is so already; it is never set. */
export function refuseOtherOnesignalId(user: User, onesignalId: string | undefined) {
  if (onesignalId !== undefined && onesignalId !== user.id) throw invalid(`${ONESIGNAL_ID} cannot be set`)
}
