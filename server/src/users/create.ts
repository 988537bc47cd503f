// Create user: creates a user, or changes the one that the request's aliases or tokens already belong to.

import { type Authority, forAnotherUser, KEY } from '../lib/authority.ts'
import { AppError, aliasesClaimed, invalid } from '../lib/errors.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { assignAliases } from './aliases/assign.ts'
import { type Alias, EXTERNAL_ID, identityObject, MAX_CUSTOM_ALIASES, readIdentity } from './aliases/identity.ts'
import type { ChangeUsers } from './change.ts'
import { assignInstall, installRefs, retirePreviousSubscription } from './devices/install.ts'
import type { InsertNewUser } from './insert-new-users.ts'
import { newUser } from './new-user.ts'
import { applyPropertyChange, type PropertyChange, propertiesObject, readProperties } from './properties/properties.ts'
import type { CreateUserBody } from './schema.ts'
import {
  findRequestedSubscription,
  MAX_SUBSCRIPTIONS,
  readSubscription,
  type SubscriptionRequest,
  subscribe,
  subscriptionRefs,
} from './subscriptions/subscribe.ts'
import { newSubscription, type Subscription, subscriptionObject } from './subscriptions/subscription.ts'
import { changeProperties } from './update.ts'
import type { OwnerRef, User } from './user.ts'
import type { WorkingSet } from './working-set.ts'

export type CreateUserContext = { change: ChangeUsers; insertNewUser: InsertNewUser; newId: NewId; now: () => Date }

export type UserDraft = {
  aliases: Alias[]
  subscriptions: SubscriptionRequest[]
  properties: PropertyChange
  installId: string | undefined
}

export type CreatedUser = { isNew: boolean; user: User; subscriptions: Subscription[] }

export async function createUser(
  ctx: CreateUserContext,
  appId: AppId,
  body: CreateUserBody,
  authority: Authority = KEY,
  installId?: string,
): Promise<CreatedUser> {
  const draft = withVerifiedId(readDraft(body, installId), authority)
  if (draft.aliases.length === 0 && draft.subscriptions.length === 0)
    throw invalid('a user needs an identity with at least one alias, or at least one subscription')
  const fresh = authority.kind === 'key' ? prepareNewUser(ctx, draft) : undefined
  if (fresh && (await ctx.insertNewUser(appId, fresh))) return { isNew: true, ...fresh }
  return ctx.change(appId, {
    refs: refsOfDraft(draft),
    needs: { subscriptions: true, purchases: true },
    apply: (state, now) => applyDraft(state, draft, now, ctx.newId, authority),
  })
}

export const refsOfDraft = ({ aliases, subscriptions, installId }: UserDraft): OwnerRef[] => [
  ...aliases,
  ...subscriptions.flatMap(subscriptionRefs),
  ...installRefs(installId),
]

/** An identity token says who the user is, whether or not the body does. */
function withVerifiedId(draft: UserDraft, authority: Authority): UserDraft {
  if (authority.kind !== 'verified') return draft
  const { externalId } = authority
  const given = draft.aliases.find(({ label }) => label === EXTERNAL_ID)
  if (given && given.value !== externalId) throw forAnotherUser()
  return given ? draft : { ...draft, aliases: [{ label: EXTERNAL_ID, value: externalId }, ...draft.aliases] }
}

export function readDraft({ identity, subscriptions, properties }: CreateUserBody, installId?: string): UserDraft {
  const { aliases, onesignalId } = readIdentity(identity ?? {})
  if (onesignalId !== undefined) throw invalid('onesignal_id is assigned by the service and cannot be set')
  return {
    aliases,
    subscriptions: (subscriptions ?? []).map((draft, i) => readSubscription(draft, `subscriptions[${i}]`)),
    properties: readProperties(properties, {}, 'create'),
    installId,
  }
}

/**
 * The user that this draft creates if everything in it is new: the common case, written by one merged statement without
 * locks. Undefined if the draft needs more than that: it names subscriptions by id, has sessions or purchases, imports
 * earlier activity, or breaks a limit.
 */
export function prepareNewUser(
  { newId, now }: CreateUserContext,
  draft: UserDraft,
): { user: User; subscriptions: Subscription[] } | undefined {
  const { aliases, properties } = draft
  const custom = aliases.filter(({ label }) => label !== EXTERNAL_ID).length
  if (custom > MAX_CUSTOM_ALIASES || draft.subscriptions.length > MAX_SUBSCRIPTIONS) return undefined
  if (properties.purchases.length > 0 || properties.lastActive !== undefined) return undefined
  if (properties.firstActive !== undefined && draft.subscriptions.length > 0) return undefined
  const at = now().toISOString()
  const user = newUser(newId(), at)
  user.properties = applyPropertyChange(user.properties, properties, at)
  for (const { label, value } of aliases) user.aliases.set(label, value)
  const tokens = new Set<string>()
  const subscriptions: Subscription[] = []
  for (const { id, kind, token, tokenHash, change } of draft.subscriptions) {
    const isPlain = id === undefined && kind && change.sessionCount === undefined && change.sessionTime === undefined
    if (!isPlain || tokens.has(`${kind.type}${tokenHash}`)) return undefined
    if (tokenHash !== null) tokens.add(`${kind.type}${tokenHash}`)
    const it = newSubscription(newId(), user.id, { ...kind, token, tokenHash }, at, change)
    user.subscriptions.set(it.id, it)
    subscriptions.push(it)
  }
  // Only devices have an install, and a new install brings only push subscriptions.
  const last = subscriptions.at(-1)
  if (last && draft.installId !== undefined) last.installId = draft.installId
  return { user, subscriptions }
}

function applyDraft(state: WorkingSet, draft: UserDraft, now: string, newId: NewId, authority: Authority): CreatedUser {
  const known = findTarget(state, draft, authority)
  const user = known ?? newUser(newId(), now)
  if (!known) state.addUser(user)
  assignAliases(state, user, draft.aliases)
  changeProperties(state, user, draft.properties, now)
  retirePreviousSubscription(state, draft.installId, draft.subscriptions, now, authority)
  const subscriptions = draft.subscriptions.map((request) => {
    const { subscription, isNew } = subscribe(state, user, request, now, newId, authority)
    return applyImportedActivity(state, subscription, isNew, draft.properties)
  })
  assignInstall(state, draft.installId, subscriptions, now)
  // A subscription that the request names twice is answered twice, in its final state.
  const final = subscriptions.map((it) => state.subscriptions.get(it.id) ?? it)
  // A copy, because later commands of the batch go on changing the user, and those changes do not belong in this
  // answer.
  return { isNew: !known, user: { ...user, aliases: new Map(user.aliases) }, subscriptions: final }
}

/** An import of users says when they were active. The creation time of an existing subscription does not change. */
export function applyImportedActivity(
  state: WorkingSet,
  subscription: Subscription,
  isNew: boolean,
  { firstActive, lastActive }: Pick<PropertyChange, 'firstActive' | 'lastActive'>,
): Subscription {
  const createdAt = isNew ? firstActive : undefined
  if (createdAt === undefined && lastActive === undefined) return subscription
  const seen = {
    ...subscription,
    ...(createdAt !== undefined && { createdAt }),
    ...(lastActive !== undefined && { lastActive }),
  }
  state.putSubscription(seen)
  return seen
}

/**
 * The user that the aliases name or, without aliases, the owner of the subscriptions. A verified user always gets their
 * own.
 */
function findTarget(state: WorkingSet, { aliases, subscriptions }: UserDraft, authority: Authority): User | undefined {
  if (authority.kind === 'verified') return state.find({ label: EXTERNAL_ID, value: authority.externalId })
  const owners = new Set(aliases.map((alias) => state.find(alias)).filter((owner) => owner !== undefined))
  if (owners.size > 1) throw severalUsers(state, aliases)
  if (aliases.length > 0) return owners.values().next().value
  const holders = new Set(
    subscriptions
      .map((request) => findRequestedSubscription(state, request, authority)?.userId)
      .filter((holder) => holder !== undefined),
  )
  if (holders.size > 1)
    throw new AppError('conflict', {
      code: 'user-3',
      title: 'The subscriptions belong to different users; name the user with an identity',
      meta: {
        subscriptions: subscriptions.map((request) => findRequestedSubscription(state, request, authority)?.id ?? null),
      },
    })
  const [holder] = holders
  return holder === undefined ? undefined : state.users.get(holder)
}

/** `meta` is flat, as the service's logs show it, and repeated under the name that the client library reads. */
function severalUsers(state: WorkingSet, aliases: Alias[]): AppError {
  const known = aliases.filter((alias) => state.find(alias) !== undefined)
  const labels = Object.fromEntries(known.map(({ label, value }) => [label, value]))
  return aliasesClaimed({ ...labels, conflicting_aliases: labels })
}

export const createdAnswer = (appId: AppId, { user, subscriptions }: CreatedUser) => ({
  identity: identityObject(user.id, user.aliases),
  properties: propertiesObject(user.properties),
  subscriptions: subscriptions.map((it) => subscriptionObject(appId, it)),
})
