import { aliasesClaimed, aliasLimitExceeded, invalid } from '../lib/errors.ts'
import { type Alias, EXTERNAL_ID, MAX_CUSTOM_ALIASES, ONESIGNAL_ID } from './identity.ts'
import type { Neighbourhood, User } from './neighbourhood.ts'

/** Add or replace aliases: all of them or none. Labels that are not named stay. */
export function assignAliases(state: Neighbourhood, user: User, aliases: Alias[]) {
  const claimed = aliases.filter((alias) => {
    const owner = state.find(alias)
    return owner !== undefined && owner !== user
  })
  if (claimed.length > 0) throw aliasesClaimed(Object.fromEntries(claimed.map(({ label, value }) => [label, value])))
  for (const alias of aliases) if (user.aliases.get(alias.label) !== alias.value) state.setAlias(user, alias)
  const custom = user.aliases.size - (user.aliases.has(EXTERNAL_ID) ? 1 : 0)
  if (custom > MAX_CUSTOM_ALIASES) throw aliasLimitExceeded(MAX_CUSTOM_ALIASES)
}

/** `onesignal_id` may be sent along when it says what is so already; it is never set. */
export function refuseOtherId(user: User, onesignalId: string | undefined) {
  if (onesignalId !== undefined && onesignalId !== user.id) throw invalid(`${ONESIGNAL_ID} cannot be set`)
}
