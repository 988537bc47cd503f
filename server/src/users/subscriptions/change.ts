import { type Authority, forAnotherUser, KEY, needsIdentityToken } from '../../lib/authority.ts'
import { AppError, invalid, subscriptionNotFound, userNotFound } from '../../lib/errors.ts'
import type { AppId, NewId, SubscriptionId } from '../../lib/ids.ts'
import {
  type Alias,
  EXTERNAL_ID,
  identityObject,
  ONESIGNAL_ID,
  readIdentity,
  readUserRef,
  type UserRef,
} from '../aliases/identity.ts'
import type { ChangeUsers } from '../change.ts'
import { mayAccessSubscription, refuseOtherUser } from '../devices/authorize.ts'
import { assignInstall, installRefs, retirePreviousSubscription } from '../devices/install.ts'
import { becomeUser } from '../devices/sign-in.ts'
import { deviceIdentity } from '../devices/view.ts'
import type { SubscriptionDraft } from '../schema.ts'
import type { OwnerRef } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import {
  applySubscriptionRequest,
  findRequestedSubscription,
  makeRoomForSubscription,
  permittedRefs,
  readSubscription,
  type SubscriptionRequest,
  subscribe,
  subscriptionRefs,
  subscriptionTypeIsFixed,
} from './subscribe.ts'
import {
  hashToken,
  isAddressType,
  readSubscriptionChange,
  readSubscriptionType,
  type Subscription,
  subscriptionObject,
} from './subscription.ts'

/** Creates a subscription for the user with this alias. An existing subscription is moved to the user or changed. */
export function addSubscription(
  change: ChangeUsers,
  newId: NewId,
  appId: AppId,
  ref: UserRef,
  draft: SubscriptionDraft,
  authority: Authority = KEY,
  installId?: string,
) {
  const request = readSubscription(draft, 'subscription')
  if (authority.kind === 'device' && request.kind && isAddressType(request.kind.type))
    throw needsIdentityToken('Giving a user an email address or a phone number')
  return change(appId, {
    refs: [ref, ...permittedRefs(authority, subscriptionRefs(request)), ...installRefs(installId)],
    needs: { subscriptions: true },
    apply(state, now) {
      const user = state.find(ref)
      if (!user) throw userNotFound()
      refuseOtherUser(user, authority)
      retirePreviousSubscription(state, installId, [request], now, authority)
      const { subscription, isNew } = subscribe(state, user, request, now, newId, authority)
      assignInstall(state, installId, [subscription], now)
      return { isNew, subscription: subscriptionObject(appId, subscription) }
    },
  })
}

function findOwned(state: WorkingSet, id: SubscriptionId, authority: Authority): Subscription {
  const subscription = state.subscriptions.get(id)
  const owner = subscription && state.users.get(subscription.userId)
  if (!subscription || !owner || !mayAccessSubscription(subscription, owner, authority)) throw subscriptionNotFound()
  return subscription
}

/** Validates an update: neither the id nor the type can change. */
const readUpdate = (draft: SubscriptionDraft): SubscriptionRequest => {
  const kind = draft.type ? { type: readSubscriptionType(draft.type), spelling: draft.type } : undefined
  const token = draft.token || null
  return {
    id: undefined,
    kind,
    token,
    tokenHash: kind && token !== null ? hashToken(kind.type, token) : null,
    change: readSubscriptionChange(draft),
  }
}

export function updateSubscription(
  change: ChangeUsers,
  appId: AppId,
  id: SubscriptionId,
  draft: SubscriptionDraft,
  authority: Authority = KEY,
  installId?: string,
) {
  const request = readUpdate(draft)
  if (authority.kind === 'device' && request.kind && isAddressType(request.kind.type)) throw subscriptionTypeIsFixed()
  return change(appId, {
    refs: [{ subscriptionId: id }, ...permittedRefs(authority, subscriptionRefs(request)), ...installRefs(installId)],
    needs: { subscriptions: true },
    apply(state, now) {
      const known = findOwned(state, id, authority)
      const changed = applySubscriptionRequest(state, known, request, now, authority)
      state.putSubscription(changed)
      retirePreviousSubscription(state, installId, [{ ...request, id }], now, authority)
      assignInstall(state, installId, [changed], now)
      return { subscription: subscriptionObject(appId, changed) }
    },
  })
}

/** The same, for a subscription found by type and token, which name at most one. */
export function updateSubscriptionByToken(
  change: ChangeUsers,
  appId: AppId,
  tokenType: string,
  token: string,
  draft: SubscriptionDraft,
) {
  const type = readSubscriptionType(tokenType)
  const tokenHash = hashToken(type, token)
  const request = readUpdate(draft)
  return change(appId, {
    refs: [{ type, tokenHash }, ...subscriptionRefs(request)] as OwnerRef[],
    needs: { subscriptions: true },
    apply(state, now) {
      const known = state.findByToken(type, tokenHash)
      if (!known) throw subscriptionNotFound()
      const changed = applySubscriptionRequest(state, known, request, now)
      state.putSubscription(changed)
      return { subscription: subscriptionObject(appId, changed) }
    },
  })
}

/** Keeps the user, even when this was its last subscription. */
export function removeSubscription(change: ChangeUsers, appId: AppId, id: SubscriptionId, authority: Authority = KEY) {
  return change(appId, {
    refs: [{ subscriptionId: id }],
    needs: { subscriptions: true },
    apply(state) {
      state.removeSubscription(findOwned(state, id, authority))
    },
  })
}

/** Transfers the subscription to the user that owns this single alias. */
export function transferSubscription(
  change: ChangeUsers,
  newId: NewId,
  appId: AppId,
  id: SubscriptionId,
  identity: Record<string, string>,
  authority: Authority = KEY,
) {
  const target = readTransferTarget(identity)
  const isById = 'id' in target
  if (authority.kind === 'verified' && !isById && !isOwnId(target, authority)) throw forAnotherUser()
  if (authority.kind === 'device' && !isById && target.label !== EXTERNAL_ID)
    throw needsIdentityToken(`Transferring to a user by "${target.label}"`)
  const request: SubscriptionRequest = { id, kind: undefined, token: null, tokenHash: null, change: {} }
  return change(appId, {
    refs: [{ subscriptionId: id }, target] as OwnerRef[],
    needs: { subscriptions: true },
    apply(state, now) {
      const subscription = findRequestedSubscription(state, request, authority)
      if (!subscription) throw subscriptionNotFound()
      // A device that names an external id signs in with it, and does not learn whether somebody has it.
      const user =
        authority.kind === 'device' && !isById
          ? becomeUser(state, target, state.users.get(subscription.userId), now, newId).user
          : state.find(target)
      if (!user) throw userNotFound()
      refuseOtherUser(user, authority)
      const current = state.subscriptions.get(id) as Subscription
      if (current.userId !== user.id) {
        makeRoomForSubscription(state, user, authority)
        state.putSubscription({ ...current, userId: user.id, updatedAt: now })
      }
      return { identity: authority.kind === 'device' ? deviceIdentity(user) : identityObject(user.id, user.aliases) }
    },
  })
}

const isOwnId = ({ label, value }: Alias, { externalId }: { externalId: string }) =>
  label === EXTERNAL_ID && value === externalId

function readTransferTarget(identity: Record<string, string>): UserRef {
  const entries = Object.entries(identity)
  const [entry] = entries
  if (!entry || entries.length > 1) throw invalid('identity must hold exactly one alias of the user to transfer to')
  if (entry[0] === ONESIGNAL_ID) return readUserRef(ONESIGNAL_ID, entry[1])
  const [alias] = readIdentity(identity).aliases
  if (!alias) throw new AppError('invalid', { code: 'request-0', title: 'identity must hold an alias' })
  return alias
}
