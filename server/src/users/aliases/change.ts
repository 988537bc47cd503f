import { type Authority, forAnotherUser, KEY, needsIdentityToken } from '../../lib/authority.ts'
import { aliasesClaimed, aliasNotFound, invalid, subscriptionNotFound, userNotFound } from '../../lib/errors.ts'
import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { ChangeUsers } from '../change.ts'
import { isAnonymous, mayAccessSubscription, refuseOtherUser } from '../devices/authorize.ts'
import { deviceIdentity } from '../devices/view.ts'
import { isAddressType } from '../subscriptions/subscription.ts'
import type { OwnerRef, User } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import { addFreeAliases, assignAliases, refuseOtherOnesignalId } from './assign.ts'
import { type Alias, EXTERNAL_ID, identityObject, ONESIGNAL_ID, readIdentity, type UserRef } from './identity.ts'

type AliasTarget = UserRef | { subscriptionId: SubscriptionId }

function findTarget(state: WorkingSet, target: AliasTarget, authority: Authority): User {
  if (!('subscriptionId' in target)) {
    const user = state.find(target)
    if (!user) throw userNotFound()
    return user
  }
  const subscription = state.subscriptions.get(target.subscriptionId)
  const user = subscription && state.users.get(subscription.userId)
  if (!user || !mayAccessSubscription(subscription, user, authority)) throw subscriptionNotFound()
  return user
}

const hasAddress = ({ subscriptions }: User) => [...subscriptions.values()].some(({ type }) => isAddressType(type))

const identityAnswer = (user: User) => ({ identity: identityObject(user.id, user.aliases) })

/** Creates or replaces aliases. Only the identity changes, and no user is created. */
export function updateAliases(
  change: ChangeUsers,
  appId: AppId,
  target: AliasTarget,
  identity: Record<string, string>,
  authority: Authority = KEY,
) {
  if (Object.keys(identity).length === 0) throw invalid('identity must hold at least one alias')
  const { aliases, onesignalId } = readIdentity(identity)
  const external = aliases.find(({ label }) => label === EXTERNAL_ID)?.value
  if (authority.kind === 'verified' && external !== undefined && external !== authority.externalId)
    throw forAnotherUser()
  const isClaim = authority.kind === 'verified' && external !== undefined
  return change(appId, {
    refs: [target, ...aliases] as OwnerRef[],
    needs: { subscriptions: 'subscriptionId' in target || isClaim },
    apply(state) {
      const user = findTarget(state, target, authority)
      // The holder of an identity token may give its external id to the anonymous user of the device, unless that user
      // has an address: the address may have been registered for somebody else, and the back end may have written to it
      // since.
      if (!isClaim || !isAnonymous(user)) refuseOtherUser(user, authority)
      else if (hasAddress(user)) throw aliasesClaimed({ [EXTERNAL_ID]: external })
      refuseOtherOnesignalId(user, onesignalId)
      if (authority.kind === 'device') return updateForDevice(state, user, aliases)
      assignAliases(state, user, aliases)
      return identityAnswer(user)
    },
  })
}

/**
 * A device never gets an external id this way: the answer is always that somebody has it, whether or not it is taken.
 * SDKs then sign in with Create user, which reveals nothing. Other aliases are set if they are free, and the answer
 * does not say which were.
 */
function updateForDevice(state: WorkingSet, user: User, aliases: Alias[]) {
  const external = aliases.find(({ label }) => label === EXTERNAL_ID)
  if (external && user.aliases.get(EXTERNAL_ID) !== external.value)
    throw aliasesClaimed({ [EXTERNAL_ID]: external.value })
  addFreeAliases(
    state,
    user,
    aliases.filter((alias) => alias !== external),
  )
  return { identity: deviceIdentity(user, aliases) }
}

export function removeAlias(
  change: ChangeUsers,
  appId: AppId,
  ref: UserRef,
  label: string,
  authority: Authority = KEY,
) {
  if (label === ONESIGNAL_ID) throw invalid(`${ONESIGNAL_ID} cannot be removed`)
  return change(appId, {
    refs: [ref],
    apply(state) {
      const user = findTarget(state, ref, authority)
      refuseOtherUser(user, authority)
      if (authority.kind === 'device') return removeForDevice(state, user, label)
      if (!user.aliases.has(label)) throw aliasNotFound()
      state.removeAlias(user, label)
      return identityAnswer(user)
    },
  })
}

/** Gives the same answer when the alias does not exist, because a device never learns whether an alias is set. */
function removeForDevice(state: WorkingSet, user: User, label: string) {
  if (label === EXTERNAL_ID || !isAnonymous(user)) throw needsIdentityToken('Removing an alias')
  state.removeAlias(user, label)
  return { identity: deviceIdentity(user) }
}
