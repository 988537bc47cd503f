// Compares a batch's state before and after its commands, and finds the users who have really changed. Writing a value
// that is already stored is not a change.

import type { UserId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { StoredProperties } from '../properties/stored.ts'
import type { Subscription } from '../subscriptions/subscription.ts'
import type { User } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import type { NewFeedEntry } from './feed.ts'

/** Covers only users that still exist. */
export function findFeedEntries(state: WorkingSet): NewFeedEntry[] {
  const { before, users } = state
  const news: NewFeedEntry[] = []
  const changed = changedOwners(state)
  for (const { userId } of state.purchases) changed.add(userId)
  for (const user of users.values()) {
    const was = before.users.get(user.id)
    if (!was || changed.has(user.id) || isChanged(user, was)) news.push({ userId: user.id, kind: 'change' })
    if (user.properties.sessionCount > (was?.properties.sessionCount ?? 0))
      news.push({ userId: user.id, kind: 'session' })
  }
  return news
}

/** The users who have, or had, a subscription that was added, removed, moved or changed. */
function changedOwners({ before, subscriptions }: WorkingSet): Set<UserId> {
  const owners = new Set<UserId>()
  for (const it of subscriptions.values()) {
    const was = before.subscriptions.get(it.id)
    if (was && isSameSubscription(was, it)) continue
    owners.add(it.userId)
    if (was) owners.add(was.userId)
  }
  for (const was of before.subscriptions.values()) if (!subscriptions.has(was.id)) owners.add(was.userId)
  return owners
}

type UserBefore = { properties: StoredProperties; aliases: ReadonlyMap<string, string> }

const isChanged = ({ properties, aliases }: User, was: UserBefore) =>
  !isSameProperties(properties, was.properties) || !isSame(Object.fromEntries(aliases), Object.fromEntries(was.aliases))

/** Ignores purchases, which the commands record in the working set. */
const isSameProperties = (a: StoredProperties, b: StoredProperties) =>
  a === b ||
  (isSame(a.tags, b.tags) && isSame({ ...a, tags: null, purchases: null }, { ...b, tags: null, purchases: null }))

const isSameSubscription = (a: Subscription, b: Subscription) =>
  a === b || isSame({ ...a, updatedAt: null }, { ...b, updatedAt: null })

function isSame(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => ownProperty(a, name) === ownProperty(b, name))
}
