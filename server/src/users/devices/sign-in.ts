// Create user for an SDK without an identity token: it creates a user for this install, or becomes the user with an
// external id. Nothing in the answer depends on whether the external id, an alias or an address already existed.

import type { Authority } from '../../lib/authority.ts'
import { aliasLimitExceeded, invalid, subscriptionLimitExceeded } from '../../lib/errors.ts'
import type { AppId, NewId } from '../../lib/ids.ts'
import { addFreeAliases } from '../aliases/assign.ts'
import { type Alias, EXTERNAL_ID, MAX_CUSTOM_ALIASES } from '../aliases/identity.ts'
import {
  type CreatedUser,
  type CreateUserContext,
  prepareNewUser,
  readDraft,
  refsOfDraft,
  type UserDraft,
} from '../create.ts'
import { newUser } from '../new-user.ts'
import { columnsOf } from '../properties/columns.ts'
import type { CreateUserBody } from '../schema.ts'
import {
  findRequestedSubscription,
  MAX_BY_DEVICES,
  type SubscriptionRequest,
  subscribe,
} from '../subscriptions/subscribe.ts'
import {
  isAddressType,
  newSubscription,
  type Subscription,
  type SubscriptionChange,
  subscriptionObject,
} from '../subscriptions/subscription.ts'
import { changeProperties } from '../update.ts'
import type { User } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import { isAnonymous } from './authorize.ts'
import { assignInstall, retirePreviousSubscription } from './install.ts'
import { deviceIdentity, deviceProperties, limitDeviceChange } from './view.ts'

const DEVICE: Authority = { kind: 'device' }

export async function signIn(ctx: CreateUserContext, appId: AppId, body: CreateUserBody, installId?: string) {
  const draft = readDraft(body, installId)
  checkDraft(draft)
  draft.properties = limitDeviceChange(draft.properties)
  const external = draft.aliases.find(({ label }) => label === EXTERNAL_ID)
  const fresh = isPlainInstall(draft) ? prepareNewUser(ctx, draft) : undefined
  const created: CreatedUser =
    fresh && (await ctx.insertNewUser(appId, fresh))
      ? { isNew: true, ...fresh }
      : await ctx.change(appId, {
          refs: refsOfDraft(draft),
          needs: { subscriptions: true, purchases: true },
          apply: (state, now) => applySignIn(state, draft, external, now, ctx.newId),
        })
  return {
    // Does not reveal whether the external id already belonged to somebody.
    status: created.isNew && !external ? 201 : 202,
    body: {
      identity: deviceIdentity(created.user, draft.aliases),
      properties: deviceProperties(ctx.now().toISOString(), draft.properties),
      subscriptions: created.subscriptions.map((it) => subscriptionObject(appId, it)),
    },
  }
}

/**
 * Checks the limits against the request alone, because a check against what is stored would reveal how much is stored.
 */
function checkDraft({ aliases, subscriptions }: UserDraft) {
  if (aliases.filter(({ label }) => label !== EXTERNAL_ID).length > MAX_CUSTOM_ALIASES)
    throw aliasLimitExceeded(MAX_CUSTOM_ALIASES)
  const addresses = subscriptions.filter(isAddressRequest).map(({ kind, tokenHash }) => `${kind?.type} ${tokenHash}`)
  if (addresses.length > MAX_BY_DEVICES.addresses) throw subscriptionLimitExceeded(MAX_BY_DEVICES.addresses)
  if (subscriptions.length - addresses.length > MAX_BY_DEVICES.push)
    throw subscriptionLimitExceeded(MAX_BY_DEVICES.push)
  if (new Set(addresses).size < addresses.length) throw invalid('subscriptions must not hold the same address twice')
}

const isAddressRequest = ({ kind }: SubscriptionRequest) => kind !== undefined && isAddressType(kind.type)

/** A first start: only push subscriptions. */
const isPlainInstall = ({ aliases, subscriptions }: UserDraft) =>
  aliases.length === 0 && !subscriptions.some(isAddressRequest)

function applySignIn(
  state: WorkingSet,
  draft: UserDraft,
  external: Alias | undefined,
  now: string,
  newId: NewId,
): CreatedUser {
  const previous = findAnonymousHolder(state, draft.subscriptions)
  const { user, isNew } = external
    ? becomeUser(state, external, previous, now, newId)
    : previous
      ? { user: previous, isNew: false }
      : { user: addUser(state, now, newId), isNew: true }
  addFreeAliases(
    state,
    user,
    draft.aliases.filter((alias) => alias !== external),
  )
  changeProperties(state, user, draft.properties, now)
  retirePreviousSubscription(state, draft.installId, draft.subscriptions, now, DEVICE)
  const subscriptions = draft.subscriptions.map((request) =>
    isAddressRequest(request)
      ? registerAddress(state, user, isNew && !external, request, now, newId)
      : subscribe(state, user, request, now, newId, DEVICE).subscription,
  )
  assignInstall(state, draft.installId, subscriptions, now)
  const final = subscriptions.map((it) => state.subscriptions.get(it.id) ?? it)
  return { isNew, user: { ...user, aliases: new Map(user.aliases) }, subscriptions: final }
}

/**
 * The anonymous user that this install has belonged to. A user with an external id is left behind: that is signing out.
 */
function findAnonymousHolder(state: WorkingSet, requests: SubscriptionRequest[]): User | undefined {
  for (const request of requests) {
    if (isAddressRequest(request)) continue
    const holder = state.users.get(findRequestedSubscription(state, request, DEVICE)?.userId ?? '')
    if (holder && isAnonymous(holder)) return holder
  }
  return undefined
}

/**
 * The user with this external id, created if there is none. A new user inherits what is known of the install's
 * anonymous user, but gets a new id: keeping the old one would reveal that the external id was free. Moving all
 * subscriptions would reveal it as well, so only those that the request names are moved.
 */
export function becomeUser(
  state: WorkingSet,
  external: Alias,
  previous: User | undefined,
  now: string,
  newId: NewId,
): { user: User; isNew: boolean } {
  const known = state.find(external)
  if (known) return { user: known, isNew: false }
  const user = addUser(state, now, newId)
  state.setAlias(user, external)
  if (previous && isAnonymous(previous)) inherit(state, user, previous)
  return { user, isNew: true }
}

function inherit(state: WorkingSet, user: User, previous: User) {
  const { tags, firstActive } = previous.properties
  const { testUserName: _, ...columns } = columnsOf(previous.properties)
  state.setProperties(user, { ...user.properties, ...columns, tags, firstActive })
  for (const [label, value] of [...previous.aliases]) {
    state.removeAlias(previous, label)
    state.setAlias(user, { label, value })
  }
}

/**
 * An address is stored only for an anonymous user whom this very request creates, and only if nobody has it: with an
 * external id it would be waiting there for the real person. The answer is the same either way, with an id that leads
 * nowhere, so that using it reveals no more. A stranger cannot decide whether the address is subscribed.
 */
function registerAddress(
  state: WorkingSet,
  user: User,
  isStored: boolean,
  { kind, token, tokenHash, change }: SubscriptionRequest,
  now: string,
  newId: NewId,
): Subscription {
  if (!kind || tokenHash === null) throw invalid('an email address or phone number is required')
  const make = (change: SubscriptionChange) =>
    newSubscription(newId(), user.id, { ...kind, token, tokenHash }, now, change)
  const { enabled: _, notificationTypes: __, ...device } = change
  if (isStored && !state.findByToken(kind.type, tokenHash)) state.putSubscription(make(device))
  return make(change)
}

function addUser(state: WorkingSet, now: string, newId: NewId): User {
  const user = newUser(newId(), now)
  state.addUser(user)
  return user
}
