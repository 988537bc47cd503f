// Whose user a request may name and touch; lib/authority.ts says who is asking.

import { type Authority, forAnotherUser } from '../../lib/authority.ts'
import { missingAuthorization, subscriptionNotFound } from '../../lib/errors.ts'
import { EXTERNAL_ID, ONESIGNAL_ID, readUserRef, type UserRef } from '../aliases/identity.ts'
import { isAddressType, type SubscriptionType } from '../subscriptions/subscription.ts'

/** Whom an SDK may name in a path: by the id that nobody can guess, or, with a token, by the external id that it is for. */
export const mayBeNamedBySdk = (label: string | undefined, hasToken: boolean) =>
  label === ONESIGNAL_ID || (hasToken && label === EXTERNAL_ID)

/** The user that a path names. Whether there is one whom the caller may not name is not told. */
export function readTargetUser(label: string, value: string, authority: Authority): UserRef {
  const ref = readUserRef(label, value)
  if (authority.kind === 'key' || 'id' in ref) return ref
  // What looks like a token proves nothing where the app has no key to verify it with.
  if (authority.kind === 'device') throw missingAuthorization()
  if (ref.label !== EXTERNAL_ID || ref.value !== authority.externalId) throw forAnotherUser()
  return ref
}

type AliasOwner = { aliases: ReadonlyMap<string, string> }

/** Nobody has signed in as this user; whoever knows its id made it. */
export const isAnonymous = (user: AliasOwner) => !user.aliases.has(EXTERNAL_ID)

/** A verified user touches their own user alone. Devices are not refused here: what they see and change is limited instead. */
export function refuseOtherUser(user: AliasOwner, authority: Authority) {
  if (authority.kind === 'verified' && user.aliases.get(EXTERNAL_ID) !== authority.externalId) throw forAnotherUser()
}

/**
 * May the caller touch this subscription because it knows its id? A device may, if it is one for push; with identity
 * verification that is not enough where the subscription is another person's. What may not be touched is not there.
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

/** The same for what hangs on a push subscription: whose it is, is not told. */
export function refuseForeignDevice(owner: AliasOwner, authority: Authority) {
  if (!mayAccessSubscription({ type: 'iOSPush' }, owner, authority)) throw subscriptionNotFound()
}
