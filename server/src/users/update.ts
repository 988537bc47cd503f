import { type Authority, KEY } from '../lib/authority.ts'
import { invalidUuid, subscriptionNotFound, userNotFound } from '../lib/errors.ts'
import { type AppId, isUuid, type SubscriptionId } from '../lib/ids.ts'
import type { UserRef } from './aliases/identity.ts'
import type { ChangeUsers } from './change.ts'
import { refuseOtherUser } from './devices/authorize.ts'
import { deviceProperties, limitDeviceChange } from './devices/view.ts'
import {
  addSessions,
  applyPropertyChange,
  type PropertyChange,
  propertiesObject,
  readProperties,
} from './properties/properties.ts'
import type { UpdateUserBody } from './schema.ts'
import type { OwnerRef, User } from './user.ts'
import type { WorkingSet } from './working-set.ts'

/** The subscription that an Update user request selects with its header. */
export function readSelectedSubscription(header: string | undefined): SubscriptionId | undefined {
  if (header === undefined || header === '') return undefined
  if (!isUuid(header)) throw invalidUuid('OneSignal-Subscription-Id', header)
  return header.toLowerCase()
}

/**
 * Sets properties and adds deltas. Sessions count for the user and for the selected subscription. Without a selected
 * one it is unknown which device the user was active on, so all their subscriptions become active, except for a device,
 * which acts only for its own.
 */
export function updateUser(
  change: ChangeUsers,
  appId: AppId,
  ref: UserRef,
  body: UpdateUserBody,
  selected: SubscriptionId | undefined,
  authority: Authority = KEY,
) {
  const given = readProperties(body.properties, body.deltas)
  const properties = authority.kind === 'device' ? limitDeviceChange(given) : given
  const refs: OwnerRef[] = selected === undefined ? [ref] : [ref, { subscriptionId: selected }]
  return change(appId, {
    refs,
    needs: { subscriptions: selected !== undefined || isSeen(properties), purchases: true },
    apply(state, now) {
      const user = state.find(ref)
      if (!user) throw userNotFound()
      refuseOtherUser(user, authority)
      if (selected !== undefined) addSession(state, user, selected, properties, now, authority)
      else if (isSeen(properties) && authority.kind !== 'device') refresh(state, user, properties, now)
      changeProperties(state, user, properties, now)
      return {
        properties: authority.kind === 'device' ? deviceProperties(now, properties) : propertiesObject(user.properties),
      }
    },
  })
}

export function changeProperties(state: WorkingSet, user: User, change: PropertyChange, now: string) {
  state.setProperties(user, applyPropertyChange(user.properties, change, now))
  state.addPurchases(user, change.purchases)
}

const isSeen = ({ sessionCount, lastActive }: PropertyChange) => sessionCount > 0 || lastActive !== undefined

function refresh(state: WorkingSet, { subscriptions }: User, change: PropertyChange, now: string) {
  const lastActive = change.lastActive ?? now
  for (const it of subscriptions.values()) state.putSubscription({ ...it, lastActive })
}

function addSession(
  state: WorkingSet,
  user: User,
  id: SubscriptionId,
  { sessionCount, sessionTime, lastActive }: PropertyChange,
  now: string,
  authority: Authority,
) {
  const subscription = user.subscriptions.get(id)
  if (!subscription) {
    // An SDK takes a 404 to mean that its user was lost, and names a subscription with every request, even one that has
    // moved.
    if (authority.kind === 'key') throw subscriptionNotFound()
    return
  }
  if (sessionCount === 0 && sessionTime === 0 && lastActive === undefined) return
  state.putSubscription({
    ...subscription,
    sessionCount: addSessions(subscription.sessionCount, sessionCount),
    sessionTime: addSessions(subscription.sessionTime, sessionTime),
    lastActive: lastActive ?? (sessionCount > 0 ? now : subscription.lastActive),
  })
}
