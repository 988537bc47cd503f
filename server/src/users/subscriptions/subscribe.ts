// Gives a user a subscription: a new one, one of its own to change, or another user's to take over.

import { type Authority, KEY } from '../../lib/authority.ts'
import { AppError, invalid, invalidUuid, subscriptionLimitExceeded, subscriptionNotFound } from '../../lib/errors.ts'
import { isUuid, type NewId, type SubscriptionId } from '../../lib/ids.ts'
import { mayAccessSubscription } from '../devices/authorize.ts'
import type { SubscriptionDraft } from '../schema.ts'
import type { OwnerRef, User } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import {
  hashToken,
  isAddressType,
  isRetired,
  newSubscription,
  readSubscriptionChange,
  readSubscriptionType,
  readToken,
  type Subscription,
  type SubscriptionChange,
  type SubscriptionType,
  subscriptionTypes,
  withSubscribedState,
} from './subscription.ts'

export const MAX_SUBSCRIPTIONS = 20
/**
 * How many subscriptions of each kind devices may add, together no more than a user can have: how many push
 * subscriptions still fit must not reveal whether an address was stored.
 */
export const MAX_BY_DEVICES = { push: 15, addresses: 5 }

/** A validated subscription of a request. */
export type SubscriptionRequest = {
  id: SubscriptionId | undefined
  kind: { type: SubscriptionType; spelling: string } | undefined
  token: string | null
  tokenHash: string | null
  change: SubscriptionChange
}

export function readSubscription(draft: SubscriptionDraft, where: string): SubscriptionRequest {
  const id = draft.id || undefined
  if (id !== undefined && !isUuid(id)) throw invalidUuid(`${where}.id`, id)
  if (id === undefined && !draft.type) throw invalid(`${where}.type is required`)
  const kind = draft.type ? { type: readSubscriptionType(draft.type), spelling: draft.type } : undefined
  // A request with only the id transfers the subscription as it is; a token that comes along is checked against the
  // stored type.
  const token = kind && !(id && !draft.token) ? readToken(kind.type, draft.token) : draft.token || null
  return {
    id: id?.toLowerCase(),
    kind,
    token,
    tokenHash: kind && token !== null ? hashToken(kind.type, token) : null,
    change: readSubscriptionChange(draft),
  }
}

export function subscriptionRefs({ id, kind, token }: SubscriptionRequest): OwnerRef[] {
  const refs: OwnerRef[] = id === undefined ? [] : [{ subscriptionId: id }]
  if (token !== null) refs.push(...tokenRefs(kind?.type, token))
  return refs
}

/**
 * References to the subscriptions that may hold this token. Without a type the token is meant for a subscription that
 * is not loaded yet, so it can be of any type.
 */
export const tokenRefs = (type: SubscriptionType | undefined, token: string): OwnerRef[] =>
  (type === undefined ? subscriptionTypes : [type]).map((type) => ({ type, tokenHash: hashToken(type, token) }))

/** The subscription that a request means: found by its id, or else by its token. */
export function findRequestedSubscription(
  state: WorkingSet,
  request: SubscriptionRequest,
  authority: Authority,
): Subscription | undefined {
  const byId = request.id === undefined ? undefined : state.subscriptions.get(request.id)
  if (byId && mayClaim(state, byId, request, authority)) return byId
  // The id no longer exists, and the request lacks the fields to create a subscription.
  if (request.id !== undefined && !request.kind) throw subscriptionNotFound()
  if (!request.kind || request.tokenHash === null) return undefined
  const holder = state.findByToken(request.kind.type, request.tokenHash)
  // Knowing the push token proves that the caller is the device; an address stays with its owner.
  if (holder && isAddressType(holder.type) && !mayClaim(state, holder, request, authority)) throw tokenTaken()
  return holder
}

/**
 * Whether the caller may claim it: by its id, where that is enough, or by its push token, which only the device knows.
 */
function mayClaim(
  state: WorkingSet,
  subscription: Subscription,
  { token }: SubscriptionRequest,
  authority: Authority,
): boolean {
  const owner = state.users.get(subscription.userId)
  if (!owner || mayAccessSubscription(subscription, owner, authority)) return true
  if (isAddressType(subscription.type) || token === null) return false
  return hashToken(subscription.type, token) === subscription.tokenHash
}

export const subscriptionTypeIsFixed = () => invalid('the type of a subscription cannot change')

const tokenTaken = (meta?: Record<string, unknown>) =>
  new AppError('conflict', {
    code: 'subscription-1',
    title: 'Another subscription has this token',
    ...(meta && { meta }),
  })

/** Gives the user this subscription. `isNew` says whether it was created. */
export function subscribe(
  state: WorkingSet,
  user: User,
  request: SubscriptionRequest,
  now: string,
  newId: NewId,
  authority: Authority,
): { subscription: Subscription; isNew: boolean } {
  const known = findRequestedSubscription(state, request, authority)
  if (known?.userId !== user.id) makeRoomForSubscription(state, user, authority)
  const subscription = known
    ? { ...applySubscriptionRequest(state, known, request, now, authority), userId: user.id }
    : createdSubscription(user, request, now, newId)
  state.putSubscription(subscription)
  return { subscription, isNew: !known }
}

/** Makes room for one more. Retired subscriptions are removed, oldest first, because nothing can reach them. */
export function makeRoomForSubscription(state: WorkingSet, { subscriptions }: User, { kind }: Authority): void {
  const countPush = () => [...subscriptions.values()].filter(({ type }) => !isAddressType(type)).length
  for (;;) {
    const isFull = subscriptions.size >= MAX_SUBSCRIPTIONS
    const isFullForDevices = kind === 'device' && countPush() >= MAX_BY_DEVICES.push
    if (!isFull && !isFullForDevices) return
    const retired = [...subscriptions.values()].find(isRetired)
    if (!retired) throw subscriptionLimitExceeded(isFull ? MAX_SUBSCRIPTIONS : MAX_BY_DEVICES.push)
    state.removeSubscription(retired)
  }
}

/** The references that a caller's request may resolve. A device may not reach the owner of an address. */
export const permittedRefs = (authority: Authority, refs: OwnerRef[]): OwnerRef[] =>
  authority.kind === 'device' ? refs.filter((ref) => !('type' in ref && isAddressType(ref.type))) : refs

function createdSubscription(
  user: User,
  { kind, token, tokenHash, change }: SubscriptionRequest,
  now: string,
  newId: NewId,
) {
  if (!kind) throw invalid('subscription.type is required')
  return newSubscription(newId(), user.id, { ...kind, token, tokenHash }, now, change)
}

/**
 * The subscription with the request's fields applied. Its type is fixed, and a token that another subscription holds is
 * refused.
 */
export function applySubscriptionRequest(
  state: WorkingSet,
  known: Subscription,
  request: SubscriptionRequest,
  now: string,
  authority: Authority = KEY,
): Subscription {
  if (request.kind && request.kind.type !== known.type) throw subscriptionTypeIsFixed()
  const changed: Subscription = { ...known, ...withSubscribedState(request.change, known), updatedAt: now }
  if (request.token === null) return changed
  const token = readToken(known.type, request.token)
  if (token === null) return changed
  const tokenHash = hashToken(known.type, token)
  const holder = state.findByToken(known.type, tokenHash)
  // Only the app's own back end learns which subscription it is.
  if (holder && holder.id !== known.id)
    throw tokenTaken(authority.kind === 'key' ? { subscription_id: holder.id } : undefined)
  return { ...changed, token, tokenHash }
}
