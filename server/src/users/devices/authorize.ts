// Which user a request may name and change; lib/authority.ts says on whose behalf it acts.

import { type Authority, forAnotherUser } from '../../lib/authority.ts'
import { missingAuthorization, subscriptionNotFound } from '../../lib/errors.ts'
import { EXTERNAL_ID, ONESIGNAL_ID, readUserRef, type UserRef } from '../aliases/identity.ts'
import { isAddressType, type SubscriptionType } from '../subscriptions/subscription.ts'

/**
 * How an SDK may name a user in a path: by the user's id, which nobody can guess, or, with a token, by the token's
 * external id.
 */
export const mayBeNamedBySdk = (label: string | undefined, hasToken: boolean) =>
  label === ONESIGNAL_ID || (hasToken && label === EXTERNAL_ID)

/** The user that a path names. Does not reveal whether a user whom the caller may not name exists. */
export function readTargetUser(label: string, value: string, authority: Authority): UserRef {
  const ref = readUserRef(label, value)
  if (authority.kind === 'key' || 'id' in ref) return ref
  // A token proves nothing when the app has no key to verify it with.
  if (authority.kind === 'device') throw missingAuthorization()
  if (ref.label !== EXTERNAL_ID || ref.value !== authority.externalId) throw forAnotherUser()
  return ref
}

type AliasOwner = { aliases: ReadonlyMap<string, string> }

/** Nobody has signed in as this user; only the device that created it knows its id. */
export const isAnonymous = (user: AliasOwner) => !user.aliases.has(EXTERNAL_ID)

/**
 * A verified user may touch only their own user. Devices are not refused here: what they see and change is limited
 * instead.
 */
export function refuseOtherUser(user: AliasOwner, authority: Authority) {
  if (authority.kind === 'verified' && user.aliases.get(EXTERNAL_ID) !== authority.externalId) throw forAnotherUser()
}

/**
 * Whether knowing the id of this subscription is enough to access it. For a device it is, if it is a push subscription;
 * with identity verification it is not if the subscription belongs to somebody else. Callers treat a subscription that
 * may not be accessed as one that does not exist.
 */
export function mayAccessSubscription(
  subscription: { type: SubscriptionType },
  owner: AliasOwner,
  authority: Authority,
): boolean {
  if (authority.kind === 'key') return true
  if (authority.kind === 'verified' && owner.aliases.get(EXTERNAL_ID) === authority.externalId) return true
  return !isAddressType(subscription.type) && (authority.kind === 'device' || isAnonymous(owner))
}

/** The same check for what belongs to a push subscription. The error does not reveal the owner. */
export function refuseForeignDevice(owner: AliasOwner, authority: Authority) {
  if (!mayAccessSubscription({ type: 'iOSPush' }, owner, authority)) throw subscriptionNotFound()
}
