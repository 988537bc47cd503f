// The legacy device model on top of the current one: a player is a subscription together with its user. It goes through
// the same changes, so the legacy routes obey every rule of the current ones.

import { AppError, invalid, subscriptionLimitExceeded } from '../../lib/errors.ts'
import { type AppId, isUuid, type NewId, type SubscriptionId } from '../../lib/ids.ts'
import { assignAliases } from '../aliases/assign.ts'
import { type Alias, EXTERNAL_ID, readIdentity } from '../aliases/identity.ts'
import type { ChangeUsers } from '../change.ts'
import { applyImportedActivity } from '../create.ts'
import { newUser } from '../new-user.ts'
import { addSessions, type PropertyChange, readProperties, readTime } from '../properties/properties.ts'
import type { Purchase } from '../schema.ts'
import { isReachable } from '../subscriptions/reachable.ts'
import {
  applySubscriptionRequest,
  MAX_SUBSCRIPTIONS,
  type SubscriptionRequest,
  tokenRefs,
} from '../subscriptions/subscribe.ts'
import {
  deviceNumberOfType,
  hashToken,
  newSubscription,
  readSubscriptionChange,
  readToken,
  type Subscription,
  type SubscriptionChange,
  typeOfDeviceNumber,
} from '../subscriptions/subscription.ts'
import { changeProperties } from '../update.ts'
import type { OwnerRef, User } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'
import type { AddPlayerBody, EditPlayerBody, PlayerObject } from './schema.ts'

/** "A temporary web record": the service worker only asks which player an endpoint belongs to. */
const LOOKUP_ONLY = -20

export const playerNotFound = () => new AppError('not-found', { code: 'player-0', title: 'No user with this id found' })

export function readPlayerId(id: string): SubscriptionId {
  if (!isUuid(id)) throw playerNotFound()
  return id.toLowerCase()
}

type PlayerFields = Omit<EditPlayerBody, 'app_id'>

export function addPlayer(
  change: ChangeUsers,
  newId: NewId,
  appId: AppId,
  body: AddPlayerBody,
): Promise<SubscriptionId> {
  const type = typeOfDeviceNumber(body.device_type)
  if (!type) throw invalid(`device_type ${body.device_type} is not known`)
  const token = readToken(type, body.identifier)
  const tokenHash = token === null ? null : hashToken(type, token)
  const external = readExternalId(body.external_user_id)
  const fields = readFields(body)
  const properties = readUserFields(body)
  const activity = {
    firstActive: readTime('created_at', body.created_at),
    lastActive: readTime('last_active', body.last_active),
  }
  return change(appId, {
    refs: [...(external ? [external] : []), ...(tokenHash === null ? [] : [{ type, tokenHash }])] as OwnerRef[],
    needs: { subscriptions: true },
    apply(state, now) {
      const known = tokenHash === null ? undefined : state.findByToken(type, tokenHash)
      if (known && body.notification_types === LOOKUP_ONLY) return known.id
      const users = state.users.size
      const user = userOfPlayer(state, known, external, now, newId)
      const isNewUser = state.users.size > users
      const subscription: Subscription = known
        ? { ...applySubscriptionRequest(state, known, requestOf(fields), now), userId: user.id }
        : newSubscription(newId(), user.id, { type, spelling: type, token, tokenHash }, now, fields)
      move(state, user, known, subscription)
      applyImportedActivity(state, subscription, !known, activity)
      changeProperties(state, user, { ...properties, ...(isNewUser ? activity : widened(user, activity)) }, now)
      return subscription.id
    },
  })
}

type ImportedActivity = Pick<PropertyChange, 'firstActive' | 'lastActive'>

/**
 * A user may have older players and may use others, so the user keeps the earliest first and the latest last activity.
 */
const widened = ({ properties }: User, { firstActive, lastActive }: ImportedActivity): ImportedActivity => ({
  firstActive: firstActive !== undefined && firstActive < properties.firstActive ? firstActive : undefined,
  lastActive: lastActive !== undefined && lastActive > properties.lastActive ? lastActive : undefined,
})

export function editPlayer(change: ChangeUsers, newId: NewId, appId: AppId, id: SubscriptionId, body: PlayerFields) {
  const unlinks = body.external_user_id === ''
  const external = readExternalId(body.external_user_id)
  const fields = readFields(body)
  const properties = readUserFields(body)
  return change(appId, {
    refs: [{ subscriptionId: id }, ...(external ? [external] : []), ...newTokenRefs(body)] as OwnerRef[],
    needs: { subscriptions: true },
    apply(state, now) {
      const known = findPlayer(state, id)
      const owner = state.users.get(known.userId) as User
      const user =
        unlinks && owner.aliases.has(EXTERNAL_ID)
          ? addUser(state, now, newId)
          : userOfPlayer(state, known, external, now, newId)
      const changed = applySubscriptionRequest(state, known, requestOf(fields, body.identifier), now)
      move(state, user, known, { ...changed, userId: user.id })
      changeProperties(state, user, properties, now)
    },
  })
}

/** Counts a new session for the player and its user, and stores whatever else the device reports. */
export function startSession(change: ChangeUsers, appId: AppId, id: SubscriptionId, body: PlayerFields) {
  const { sessionCount: _, ...fields } = readFields(body)
  const properties = { ...readUserFields(body), sessionCount: 1 }
  const run = (state: WorkingSet, known: Subscription, user: User, now: string) => {
    const changed = applySubscriptionRequest(state, known, requestOf(fields, body.identifier), now)
    state.putSubscription({ ...changed, sessionCount: addSessions(known.sessionCount, 1), lastActive: now })
    changeProperties(state, user, properties, now)
  }
  return onPlayer(change, appId, id, run, newTokenRefs(body))
}

export function addPlaytime(change: ChangeUsers, appId: AppId, id: SubscriptionId, seconds: number) {
  const properties = readProperties({}, { session_time: seconds })
  return onPlayer(change, appId, id, (state, known, user, now) => {
    state.putSubscription({ ...known, sessionTime: addSessions(known.sessionTime, seconds), lastActive: now })
    changeProperties(state, user, { ...properties, lastActive: now }, now)
  })
}

export function addPlayerPurchases(change: ChangeUsers, appId: AppId, id: SubscriptionId, purchases: Purchase[]) {
  const properties = readProperties({}, { purchases })
  return onPlayer(change, appId, id, (state, _, user, now) => changeProperties(state, user, properties, now))
}

export function removePlayer(change: ChangeUsers, appId: AppId, id: SubscriptionId) {
  return onPlayer(change, appId, id, (state, known) => state.removeSubscription(known))
}

export function changeTagsByExternalId(
  change: ChangeUsers,
  appId: AppId,
  externalId: string,
  tags: Record<string, string | number | boolean | null> | undefined,
) {
  const properties = readProperties({ tags: tags ?? {} })
  const ref = { label: EXTERNAL_ID, value: externalId }
  return change(appId, {
    refs: [ref],
    apply(state, now) {
      const user = state.find(ref)
      if (!user) throw playerNotFound()
      changeProperties(state, user, properties, now)
    },
  })
}

function onPlayer(
  change: ChangeUsers,
  appId: AppId,
  id: SubscriptionId,
  run: (state: WorkingSet, player: Subscription, user: User, now: string) => void,
  refs: OwnerRef[] = [],
) {
  return change(appId, {
    refs: [{ subscriptionId: id }, ...refs],
    needs: { subscriptions: true },
    apply(state, now) {
      const player = findPlayer(state, id)
      run(state, player, state.users.get(player.userId) as User, now)
    },
  })
}

function findPlayer(state: WorkingSet, id: SubscriptionId): Subscription {
  const player = state.subscriptions.get(id)
  if (!player) throw playerNotFound()
  return player
}

function readExternalId(value: string | null | undefined): Alias | undefined {
  if (!value) return undefined
  return readIdentity({ [EXTERNAL_ID]: value }).aliases[0]
}

/** The subscriptions that may hold the player's new token. Only the loaded player says which type the token is of. */
const newTokenRefs = ({ identifier }: PlayerFields): OwnerRef[] => (identifier ? tokenRefs(undefined, identifier) : [])

/** The fields that belong to the device. */
function readFields(body: PlayerFields): SubscriptionChange {
  const { language, country, lat, long } = readUserFields(body).columns
  const change: Record<string, unknown> = {
    ...readSubscriptionChange({ ...body, app_version: body.game_version }),
    language,
    country,
    lat,
    long,
    timezoneSeconds: body.timezone,
    adId: body.ad_id,
    badgeCount: body.badge_count,
  }
  for (const name in change) if (change[name] === undefined || change[name] === null) delete change[name]
  return change
}

/**
 * The fields that belong to the user. Null means that the device does not know the value, not that it is to be cleared.
 */
const readUserFields = ({ tags, language, country, lat, long, ip }: PlayerFields): PropertyChange =>
  readProperties({
    tags,
    language: language ?? undefined,
    country: country ?? undefined,
    lat: lat ?? undefined,
    long: long ?? undefined,
    ip: ip ?? undefined,
  })

const requestOf = (change: SubscriptionChange, identifier?: string | null): SubscriptionRequest => ({
  id: undefined,
  kind: undefined,
  token: identifier || null,
  tokenHash: null,
  change,
})

/**
 * The user that this player belongs to from now on: the one with that external id. If nobody has it, the player's
 * present user takes it, unless that user already has another.
 */
function userOfPlayer(
  state: WorkingSet,
  known: Subscription | undefined,
  external: Alias | undefined,
  now: string,
  newId: NewId,
): User {
  const owner = known && state.users.get(known.userId)
  if (!external) return owner ?? addUser(state, now, newId)
  const found = state.find(external)
  if (found) return found
  const user = owner && !owner.aliases.has(EXTERNAL_ID) ? owner : addUser(state, now, newId)
  assignAliases(state, user, [external])
  return user
}

function addUser(state: WorkingSet, now: string, newId: NewId): User {
  const user = newUser(newId(), now)
  state.addUser(user)
  return user
}

function move(state: WorkingSet, user: User, known: Subscription | undefined, subscription: Subscription) {
  if (known?.userId !== user.id && user.subscriptions.size >= MAX_SUBSCRIPTIONS)
    throw subscriptionLimitExceeded(MAX_SUBSCRIPTIONS)
  state.putSubscription(subscription)
}

const seconds = (iso: string) => Math.floor(Date.parse(iso) / 1000)

export const playerObject = (user: User, it: Subscription): PlayerObject => ({
  id: it.id,
  identifier: it.token,
  session_count: it.sessionCount,
  language: it.language ?? user.properties.language,
  timezone: it.timezoneSeconds,
  game_version: it.appVersion,
  device_os: it.deviceOs,
  device_type: deviceNumberOfType(it.type),
  device_model: it.deviceModel,
  ad_id: it.adId,
  tags: user.properties.tags,
  last_active: seconds(it.lastActive),
  playtime: it.sessionTime,
  amount_spent: Number(user.properties.amountSpent),
  created_at: seconds(it.createdAt),
  invalid_identifier: !isReachable(it),
  badge_count: it.badgeCount ?? 0,
  sdk: it.sdk,
  test_type: it.testType,
  ip: user.properties.ip,
  external_user_id: user.aliases.get(EXTERNAL_ID) ?? null,
  notification_types: it.notificationTypes ?? (it.enabled ? 1 : -31),
  country: it.country ?? user.properties.country,
  lat: it.lat ?? user.properties.lat,
  long: it.long ?? user.properties.long,
})
