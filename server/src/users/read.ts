// Views. Concurrent ones share one statement, on the primary: an acknowledged write is always visible.

import type { Authority } from '../lib/authority.ts'
import { subscriptionNotFound, userNotFound } from '../lib/errors.ts'
import type { AppId, SubscriptionId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { identityObject, type UserRef } from './aliases/identity.ts'
import { mayAccessSubscription, refuseOtherUser } from './devices/authorize.ts'
import { deviceIdentity, deviceProperties } from './devices/view.ts'
import { loadReferencedUsers } from './load-store.ts'
import { propertiesObject } from './properties/properties.ts'
import { findIdentities, findOwners, type IdentityRow } from './reference-store.ts'
import { isAddressType, subscriptionObject } from './subscriptions/subscription.ts'
import type { OwnerRef, User } from './user.ts'

export type UserReader = {
  identity(appId: AppId, ref: OwnerRef): Promise<IdentityRow | undefined>
  user(appId: AppId, ref: OwnerRef): Promise<User | undefined>
  owner(appId: AppId, ref: OwnerRef): Promise<UserId | undefined>
}

export function createUserReader({ db, merger }: { db: Db; merger: Merger }): UserReader {
  return {
    identity: merger.merged({
      name: 'users.identity',
      parallel: 2,
      run: async (appId, refs: OwnerRef[]) => (await findIdentities(db, appId, refs)).map(asValue),
    }),
    owner: merger.merged({
      name: 'users.owner',
      parallel: 2,
      run: async (appId, refs: OwnerRef[]) => (await findOwners(db, appId, refs)).map(asValue),
    }),
    user: merger.merged({
      name: 'users.view',
      parallel: 2,
      run: async (appId, refs: OwnerRef[]) =>
        (await loadReferencedUsers(db, appId, refs, { subscriptions: true, purchases: true })).map(asValue),
    }),
  }
}

const asValue = <Value>(value: Value) => ({ value })

export async function viewIdentity(reader: UserReader, appId: AppId, ref: UserRef, authority: Authority) {
  const found = await reader.identity(appId, ref)
  if (!found) throw userNotFound()
  const aliases = new Map(Object.entries(found.aliases ?? {}))
  refuseOtherUser({ aliases }, authority)
  return identityAnswer({ id: found.userId, aliases }, authority)
}

export async function viewIdentityBySubscription(
  reader: UserReader,
  appId: AppId,
  subscriptionId: SubscriptionId,
  authority: Authority,
) {
  const user = await reader.user(appId, { subscriptionId })
  const subscription = user?.subscriptions.get(subscriptionId)
  if (!subscription || !mayAccessSubscription(subscription, user as User, authority)) throw subscriptionNotFound()
  return identityAnswer(user as User, authority)
}

const identityAnswer = (user: Pick<User, 'id' | 'aliases'>, { kind }: Authority) => ({
  identity: kind === 'device' ? deviceIdentity(user) : identityObject(user.id, user.aliases),
})

export async function viewUser(reader: UserReader, appId: AppId, ref: OwnerRef, authority: Authority) {
  const user = await findUser(reader, appId, ref)
  refuseOtherUser(user, authority)
  return {
    identity: identityObject(user.id, user.aliases),
    properties: propertiesObject(user.properties),
    subscriptions: [...user.subscriptions.values()].map((it) => subscriptionObject(appId, it)),
  }
}

/** The same for a device: the only subscription it sees is the one that it names as its own. */
export async function viewUserForDevice(
  reader: UserReader,
  appId: AppId,
  ref: OwnerRef,
  selected: SubscriptionId | undefined,
  now: Date,
) {
  const user = await findUser(reader, appId, ref)
  const own = selected === undefined ? undefined : user.subscriptions.get(selected)
  return {
    identity: deviceIdentity(user),
    properties: deviceProperties(now.toISOString()),
    // iOS takes a list without its own subscription to mean that the subscription was lost; without a list it assumes
    // nothing.
    ...(own && !isAddressType(own.type) && { subscriptions: [subscriptionObject(appId, own)] }),
  }
}

async function findUser(reader: UserReader, appId: AppId, ref: OwnerRef): Promise<User> {
  const user = await reader.user(appId, ref)
  if (!user) throw userNotFound()
  return user
}
