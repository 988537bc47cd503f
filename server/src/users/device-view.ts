// What a device without an identity token is shown of a user: the two ids, its own push subscription, and what its own
// request said. Everything else that is stored may have come from somebody else.

import { type Alias, EXTERNAL_ID, identityObject } from './identity.ts'
import type { User } from './neighbourhood.ts'
import { newProperties } from './new-user.ts'
import { changedProperties, type PropertyChange, propertiesObject } from './properties.ts'

/** Aliases are echoed whether or not they were stored, so that nobody learns which are taken. */
export function deviceIdentity({ id, aliases }: Pick<User, 'id' | 'aliases'>, echoed: readonly Alias[] = []) {
  const externalId = aliases.get(EXTERNAL_ID)
  return identityObject(id, [
    ...(externalId === undefined ? [] : [[EXTERNAL_ID, externalId] as const]),
    ...echoed.filter(({ label }) => label !== EXTERNAL_ID).map(({ label, value }) => [label, value] as const),
  ])
}

/** The properties of somebody of whom nothing is known but what the request said. */
export function deviceProperties(now: string, change?: PropertyChange) {
  const blank = newProperties(now)
  return propertiesObject(change ? changedProperties(blank, change, now) : blank)
}
