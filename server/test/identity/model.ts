// What the identity store must do, written down a second time as plainly as possible: one command after the other on a
// copy of the state, which is thrown away when the command is refused. It shares no code with the server.
// Ids are names like "§user 3"; whoever compares puts the server's ids in their place.

export type Identity = Record<string, string>
export type Target = { label: string; value: string } | { user: string }
export type Draft = {
  id?: string
  type?: string
  token?: string
  enabled?: boolean
  notification_types?: number
  session_count?: number
  sdk?: string
}
export type Purchase = { sku: string; iso: string; amount: string; count?: number }
export type Properties = {
  tags?: Record<string, string | number>
  language?: string
  amount_spent?: number
  purchases?: Purchase[]
}
export type Deltas = { session_count?: number; session_time?: number; purchases?: Purchase[] }
export type PlayerFields = {
  external_user_id?: string
  tags?: Record<string, string>
  notification_types?: number
  language?: string
  session_count?: number
}

export type Command =
  | { kind: 'create user'; identity?: Identity; properties?: Properties; subscriptions?: Draft[] }
  | { kind: 'update aliases'; target: Target; identity: Identity }
  | { kind: 'update aliases by subscription'; subscription: string; identity: Identity }
  | { kind: 'delete alias'; target: Target; label: string }
  | { kind: 'create subscription'; target: Target; draft: Draft }
  | { kind: 'update subscription'; subscription: string; draft: Draft }
  | { kind: 'update subscription by token'; type: string; token: string; draft: Draft }
  | { kind: 'transfer subscription'; subscription: string; identity: Identity }
  | { kind: 'delete subscription'; subscription: string }
  | { kind: 'update user'; target: Target; properties?: Properties; deltas?: Deltas; selected?: string }
  | { kind: 'delete user'; target: Target }
  | { kind: 'add player'; device_type: number; identifier?: string; fields: PlayerFields }
  | { kind: 'edit player'; player: string; identifier?: string; fields: PlayerFields }
  | { kind: 'player session'; player: string }
  | { kind: 'player purchase'; player: string; purchases: Purchase[] }
  | { kind: 'player focus'; player: string; seconds: number }
  | { kind: 'delete player'; player: string }
  | { kind: 'tags by external id'; externalId: string; tags: Record<string, string> }
  | { kind: 'view user'; target: Target }
  | { kind: 'view identity'; target: Target }
  | { kind: 'view identity by subscription'; subscription: string }
  | { kind: 'view player'; player: string }

export type ModelUser = {
  id: string
  aliases: Record<string, string>
  tags: Record<string, string>
  language: string | null
  /** In cents. */
  spent: number
  purchases: Required<Purchase>[]
  sessionCount: number
  sessionTime: number
  firstActive: number
  lastActive: number
}

export type ModelSubscription = {
  id: string
  owner: string
  type: string
  spelling: string
  token: string | null
  enabled: boolean
  notificationTypes: number | null
  sdk: string
  language: string | null
  sessionCount: number
  sessionTime: number
  createdAt: number
  lastActive: number
}

export type State = {
  made: number
  users: Map<string, ModelUser>
  subscriptions: Map<string, ModelSubscription>
  /** Every id there ever was, so that a command can name what is gone. */
  knownUsers: string[]
  knownSubscriptions: string[]
}

export type Answer =
  | { status: number; body: unknown }
  | { status: number; problem: { code: string; meta?: unknown } }
  /** The old operations say what is wrong in words alone. */
  | { status: number; legacyProblem: true }

export const emptyState = (): State => ({
  made: 0,
  users: new Map(),
  subscriptions: new Map(),
  knownUsers: [],
  knownSubscriptions: [],
})

class Refused extends Error {
  readonly status: number
  readonly problem: { code: string; meta?: unknown }
  constructor(status: number, code: string, meta?: unknown) {
    super(code)
    this.status = status
    this.problem = { code, ...(meta !== undefined && { meta }) }
  }
}

const bad = () => new Refused(400, 'request-0')
const noUser = () => new Refused(404, 'user-0')
const noSubscription = () => new Refused(404, 'subscription-0')
const noPlayer = () => new Refused(404, 'player-0')
const tooManySubscriptions = () => new Refused(409, 'Subscription Limit Exceeded', { limit: 20 })

/** What the command does and what it answers, at this time (Unix seconds). The given state is left alone. */
export function execute(state: State, command: Command, now: number): { state: State; answer: Answer } {
  const next = structuredClone(state)
  try {
    return { answer: run(next, command, now), state: next }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    const { status, problem } = error
    // A request that conflicts with itself is told the id of what it would have made. That id is gone with it; its name
    // is not given again.
    const same = { ...state, made: next.made }
    if (!isLegacy(command)) return { state: same, answer: { status, problem } }
    // The old interface knows no conflicts.
    return { state: same, answer: { status: status === 409 ? 400 : status, legacyProblem: true } }
  }
}

const isLegacy = ({ kind }: Command) => kind.includes('player') || kind === 'tags by external id'

function run(state: State, command: Command, now: number): Answer {
  switch (command.kind) {
    case 'create user':
      return createUser(state, command, now)
    case 'update aliases': {
      if (Object.keys(command.identity).length === 0) throw bad()
      return updateAliases(state, mustFind(state, command.target), command.identity)
    }
    case 'update aliases by subscription': {
      if (Object.keys(command.identity).length === 0) throw bad()
      const subscription = state.subscriptions.get(command.subscription)
      if (!subscription) throw noSubscription()
      return updateAliases(state, ownerOf(state, subscription), command.identity)
    }
    case 'delete alias': {
      if (command.label === 'onesignal_id') throw bad()
      const user = mustFind(state, command.target)
      if (!(command.label in user.aliases)) throw new Refused(404, 'alias-0')
      delete user.aliases[command.label]
      return { status: 200, body: { identity: identityOf(user) } }
    }
    case 'create subscription': {
      checkDraft(command.draft)
      const user = mustFind(state, command.target)
      const { subscription, isNew } = subscribe(state, user, command.draft, now)
      return { status: isNew ? 201 : 202, body: { subscription: subscriptionOf(subscription) } }
    }
    case 'update subscription': {
      checkType(command.draft.type)
      const subscription = state.subscriptions.get(command.subscription)
      if (!subscription) throw noSubscription()
      changeSubscription(state, subscription, command.draft)
      return { status: 200, body: { subscription: subscriptionOf(subscription) } }
    }
    case 'update subscription by token': {
      checkType(command.type)
      checkType(command.draft.type)
      const subscription = byToken(state, canonical(command.type), command.token)
      if (!subscription) throw noSubscription()
      changeSubscription(state, subscription, command.draft)
      return { status: 202, body: { subscription: subscriptionOf(subscription) } }
    }
    case 'transfer subscription': {
      const [entry, ...more] = Object.entries(command.identity)
      if (!entry || more.length > 0) throw bad()
      const subscription = state.subscriptions.get(command.subscription)
      if (!subscription) throw noSubscription()
      const [label, value] = entry
      const user = mustFind(state, label === 'onesignal_id' ? { user: value } : { label, value })
      give(state, subscription, user)
      return { status: 200, body: { identity: identityOf(user) } }
    }
    case 'delete subscription': {
      if (!state.subscriptions.delete(command.subscription)) throw noSubscription()
      return { status: 202, body: {} }
    }
    case 'update user': {
      const user = mustFind(state, command.target)
      const { deltas = {} } = command
      if (command.selected !== undefined) {
        const selected = state.subscriptions.get(command.selected)
        if (!selected || selected.owner !== user.id) throw noSubscription()
        selected.sessionCount += deltas.session_count ?? 0
        selected.sessionTime += deltas.session_time ?? 0
        if (deltas.session_count) selected.lastActive = now
      } else if (deltas.session_count) for (const it of owned(state, user)) it.lastActive = now
      const { amount_spent: _, ...properties } = command.properties ?? {}
      changeProperties(user, properties, deltas, now)
      return { status: 202, body: { properties: propertiesOf(user) } }
    }
    case 'delete user': {
      const user = mustFind(state, command.target)
      for (const it of owned(state, user)) state.subscriptions.delete(it.id)
      state.users.delete(user.id)
      return { status: 202, body: { identity: { onesignal_id: user.id } } }
    }
    case 'view user': {
      const user = mustFind(state, command.target)
      const subscriptions = owned(state, user).map((it) => ({ at: it.createdAt, item: subscriptionOf(it) }))
      return {
        status: 200,
        body: {
          identity: identityOf(user),
          properties: propertiesOf(user),
          subscriptions: { oldestFirst: subscriptions },
        },
      }
    }
    case 'view identity':
      return { status: 200, body: { identity: identityOf(mustFind(state, command.target)) } }
    case 'view identity by subscription': {
      const subscription = state.subscriptions.get(command.subscription)
      if (!subscription) throw noSubscription()
      return { status: 200, body: { identity: identityOf(ownerOf(state, subscription)) } }
    }
    default:
      return runLegacy(state, command, now)
  }
}

// ---- users and aliases

const find = (state: State, target: Target): ModelUser | undefined =>
  'user' in target
    ? state.users.get(target.user)
    : [...state.users.values()].find((user) => user.aliases[target.label] === target.value)

function mustFind(state: State, target: Target): ModelUser {
  const user = find(state, target)
  if (!user) throw noUser()
  return user
}

function addUser(state: State, now: number): ModelUser {
  const user: ModelUser = {
    id: `§user ${++state.made}`,
    aliases: {},
    tags: {},
    language: null,
    spent: 0,
    purchases: [],
    sessionCount: 0,
    sessionTime: 0,
    firstActive: now,
    lastActive: now,
  }
  state.users.set(user.id, user)
  state.knownUsers.push(user.id)
  return user
}

const identityOf = (user: ModelUser) => ({ onesignal_id: user.id, ...user.aliases })

function updateAliases(state: State, user: ModelUser, { onesignal_id, ...aliases }: Identity): Answer {
  if (onesignal_id !== undefined && onesignal_id !== user.id) throw bad()
  assign(state, user, aliases)
  return { status: 200, body: { identity: identityOf(user) } }
}

/** All or nothing: a refusal throws the whole state away. */
function assign(state: State, user: ModelUser, aliases: Identity) {
  const claimed = Object.entries(aliases).filter(([label, value]) => {
    const holder = find(state, { label, value })
    return holder && holder !== user
  })
  if (claimed.length > 0) throw new Refused(409, 'user-2', Object.fromEntries(claimed))
  Object.assign(user.aliases, aliases)
  const custom = Object.keys(user.aliases).filter((label) => label !== 'external_id')
  if (custom.length > 10) throw new Refused(409, 'Alias Limit Exceeded', { limit: 10 })
}

function createUser(state: State, command: Extract<Command, { kind: 'create user' }>, now: number): Answer {
  const { identity = {}, properties = {}, subscriptions = [] } = command
  if ('onesignal_id' in identity) throw bad()
  if (Object.keys(identity).length === 0 && subscriptions.length === 0) throw bad()
  for (const draft of subscriptions) checkDraft(draft)
  const known = createTarget(state, identity, subscriptions)
  const user = known ?? addUser(state, now)
  assign(state, user, identity)
  changeProperties(user, properties, {}, now)
  if (properties.amount_spent !== undefined) user.spent = Math.round(properties.amount_spent * 100)
  const given = subscriptions.map((draft) => subscribe(state, user, draft, now).subscription)
  return {
    status: known ? 202 : 201,
    body: { identity: identityOf(user), properties: propertiesOf(user), subscriptions: given.map(subscriptionOf) },
  }
}

/** Whom a Create user request means: the owner of its aliases or, without aliases, of its subscriptions. */
function createTarget(state: State, identity: Identity, drafts: Draft[]): ModelUser | undefined {
  const known = Object.entries(identity).filter(([label, value]) => find(state, { label, value }))
  const owners = new Set(known.map(([label, value]) => find(state, { label, value })))
  if (owners.size > 1) {
    const labels = Object.fromEntries(known)
    throw new Refused(409, 'user-2', { ...labels, conflicting_aliases: labels })
  }
  if (Object.keys(identity).length > 0) return [...owners][0]
  const meant = drafts.map((draft) => meantBy(state, draft))
  const holders = new Set(meant.filter((it) => it !== undefined).map((it) => it.owner))
  if (holders.size > 1) throw new Refused(409, 'user-3', { subscriptions: meant.map((it) => it?.id ?? null) })
  const [holder] = holders
  return holder === undefined ? undefined : state.users.get(holder)
}

// ---- properties

function changeProperties(user: ModelUser, properties: Properties, deltas: Deltas, now: number) {
  for (const [key, value] of Object.entries(properties.tags ?? {})) {
    if (value === '') delete user.tags[key]
    else user.tags[key] = String(value)
  }
  if (properties.language !== undefined) user.language = properties.language || null
  user.sessionCount += deltas.session_count ?? 0
  user.sessionTime += deltas.session_time ?? 0
  if (deltas.session_count) user.lastActive = now
  for (const purchase of [...(properties.purchases ?? []), ...(deltas.purchases ?? [])]) {
    const count = purchase.count ?? 1
    user.spent += Math.round(Number(purchase.amount.replace('$', '')) * 100) * count
    user.purchases.push({ ...purchase, count })
  }
}

const propertiesOf = (user: ModelUser) => ({
  tags: user.tags,
  ...(user.language !== null && { language: user.language }),
  first_active: user.firstActive,
  last_active: user.lastActive,
  session_count: user.sessionCount,
  session_time: user.sessionTime,
  amount_spent: user.spent / 100,
  purchases: user.purchases.slice(-100),
})

// ---- subscriptions

const TYPES = ['iOSPush', 'AndroidPush', 'ChromePush', 'Email', 'SMS']
const DEVICES: Record<number, string> = { 0: 'iOSPush', 1: 'AndroidPush', 5: 'ChromePush', 11: 'Email', 14: 'SMS' }

function canonical(spelling: string): string {
  const type = TYPES.find((it) => it.toLowerCase() === spelling.toLowerCase())
  if (!type) throw bad()
  return type
}
const checkType = (spelling: string | undefined) => spelling === undefined || canonical(spelling)

function checkToken(type: string, token: string | undefined) {
  if (type === 'Email' && !/^[^@\s]+@[^@\s]+\.[a-z]+$/i.test(token ?? '')) throw bad()
  if (type === 'SMS' && !/^\+[1-9]\d+$/.test(token ?? '')) throw bad()
}

function checkDraft({ id, type, token }: Draft) {
  if (type === undefined) {
    if (id === undefined) throw bad()
    return
  }
  const isTransfer = id !== undefined && !token
  if (!isTransfer) checkToken(canonical(type), token)
  else canonical(type)
}

const ownerOf = (state: State, subscription: ModelSubscription) => state.users.get(subscription.owner) as ModelUser
const owned = (state: State, user: ModelUser) => [...state.subscriptions.values()].filter((it) => it.owner === user.id)
const sameToken = (type: string, token: string) => (type === 'Email' ? token.toLowerCase() : token)

const byToken = (state: State, type: string, token: string | null | undefined) =>
  token
    ? [...state.subscriptions.values()].find(
        (it) => it.type === type && it.token !== null && sameToken(type, it.token) === sameToken(type, token),
      )
    : undefined

function meantBy(state: State, { id, type, token }: Draft): ModelSubscription | undefined {
  const named = id === undefined ? undefined : state.subscriptions.get(id)
  if (named) return named
  if (type === undefined) throw noSubscription()
  return byToken(state, canonical(type), token)
}

function give(state: State, subscription: ModelSubscription, user: ModelUser) {
  if (subscription.owner === user.id) return
  if (owned(state, user).length >= 20) throw tooManySubscriptions()
  subscription.owner = user.id
}

function addSubscription(
  state: State,
  user: ModelUser,
  spelling: string,
  token: string | undefined,
  draft: Draft,
  now: number,
): ModelSubscription {
  if (owned(state, user).length >= 20) throw tooManySubscriptions()
  const subscription: ModelSubscription = {
    id: `§subscription ${++state.made}`,
    owner: user.id,
    type: canonical(spelling),
    spelling,
    token: token || null,
    enabled: true,
    notificationTypes: null,
    sdk: '',
    language: null,
    sessionCount: 0,
    sessionTime: 0,
    createdAt: now,
    lastActive: now,
  }
  setFields(subscription, draft)
  state.subscriptions.set(subscription.id, subscription)
  state.knownSubscriptions.push(subscription.id)
  return subscription
}

function subscribe(state: State, user: ModelUser, draft: Draft, now: number) {
  const known = meantBy(state, draft)
  if (!known) {
    return { isNew: true, subscription: addSubscription(state, user, draft.type as string, draft.token, draft, now) }
  }
  give(state, known, user)
  changeSubscription(state, known, draft)
  return { isNew: false, subscription: known }
}

function changeSubscription(state: State, it: ModelSubscription, draft: Draft) {
  if (draft.type !== undefined && canonical(draft.type) !== it.type) throw bad()
  if (draft.token) {
    checkToken(it.type, draft.token)
    const holder = byToken(state, it.type, draft.token)
    if (holder && holder !== it) throw new Refused(409, 'subscription-1', { subscription_id: holder.id })
    it.token = draft.token
  }
  setFields(it, draft)
}

function setFields(it: ModelSubscription, { enabled, notification_types, session_count, sdk }: Draft) {
  if (notification_types !== undefined) it.notificationTypes = notification_types
  else if (enabled === false && (it.notificationTypes === null || it.notificationTypes > 0)) it.notificationTypes = -31
  else if (enabled === true && (it.notificationTypes === -31 || it.notificationTypes === -2)) it.notificationTypes = 1
  if (enabled !== undefined) it.enabled = enabled
  if (session_count !== undefined) it.sessionCount = session_count
  if (sdk !== undefined) it.sdk = sdk
}

const notificationTypes = (it: ModelSubscription) => it.notificationTypes ?? (it.enabled ? 1 : -31)

const subscriptionOf = (it: ModelSubscription) => ({
  id: it.id,
  app_id: '§app',
  type: it.spelling,
  token: it.token ?? '',
  enabled: it.enabled,
  notification_types: notificationTypes(it),
  session_time: it.sessionTime,
  session_count: it.sessionCount,
  sdk: it.sdk,
  device_model: '',
  device_os: '',
  rooted: false,
  test_type: 0,
  app_version: '',
  net_type: 0,
  carrier: '',
  web_auth: '',
  web_p256: '',
})

// ---- the old interface: a player is a subscription

type Legacy = Extract<Command, { player: string } | { kind: 'add player' } | { kind: 'tags by external id' }>

function runLegacy(state: State, command: Legacy, now: number): Answer {
  const done = { status: 200, body: { success: true } }
  if (command.kind === 'add player') return addPlayer(state, command, now)
  if (command.kind === 'tags by external id') {
    const user = find(state, { label: 'external_id', value: command.externalId })
    if (!user) throw noPlayer()
    changeProperties(user, { tags: command.tags }, {}, now)
    return done
  }
  const player = state.subscriptions.get(command.player)
  if (!player) throw noPlayer()
  const user = ownerOf(state, player)
  switch (command.kind) {
    case 'edit player': {
      const { external_user_id: external } = command.fields
      const unlinks = external === '' && 'external_id' in user.aliases
      const next = unlinks ? addUser(state, now) : playerUser(state, player, external, now)
      give(state, player, next)
      changeSubscription(state, player, { ...command.fields, ...(command.identifier && { token: command.identifier }) })
      setPlayerFields(next, player, command.fields, now)
      return { status: 200, body: { success: true, id: player.id } }
    }
    case 'player session':
      player.sessionCount += 1
      player.lastActive = now
      changeProperties(user, {}, { session_count: 1 }, now)
      return done
    case 'player purchase':
      changeProperties(user, { purchases: command.purchases }, {}, now)
      return done
    case 'player focus':
      player.sessionTime += command.seconds
      player.lastActive = now
      user.sessionTime += command.seconds
      user.lastActive = now
      return done
    case 'delete player':
      state.subscriptions.delete(player.id)
      return done
    case 'view player':
      return { status: 200, body: playerOf(user, player) }
  }
}

function addPlayer(state: State, command: Extract<Command, { kind: 'add player' }>, now: number): Answer {
  const { fields, identifier } = command
  const type = DEVICES[command.device_type]
  if (!type) throw bad()
  checkToken(type, identifier)
  const known = byToken(state, type, identifier)
  // A web worker asks which player its endpoint belongs to.
  if (known && fields.notification_types === -20) return { status: 200, body: { success: true, id: known.id } }
  const user = playerUser(state, known, fields.external_user_id, now)
  let player = known
  if (player) {
    give(state, player, user)
    setFields(player, fields)
  } else player = addSubscription(state, user, type, identifier, fields, now)
  setPlayerFields(user, player, fields, now)
  return { status: 200, body: { success: true, id: player.id } }
}

/** Whoever has the external id; else the present user takes it, unless that one is somebody else already. */
function playerUser(state: State, player: ModelSubscription | undefined, external: string | undefined, now: number) {
  const present = player && ownerOf(state, player)
  if (!external) return present ?? addUser(state, now)
  const named = find(state, { label: 'external_id', value: external })
  if (named) return named
  const user = present && !('external_id' in present.aliases) ? present : addUser(state, now)
  user.aliases.external_id = external
  return user
}

function setPlayerFields(user: ModelUser, player: ModelSubscription, fields: PlayerFields, now: number) {
  if (fields.language !== undefined) player.language = fields.language
  const { tags, language } = fields
  changeProperties(user, { ...(tags && { tags }), ...(language && { language }) }, {}, now)
}

const playerOf = (user: ModelUser, it: ModelSubscription) => ({
  id: it.id,
  identifier: it.token,
  session_count: it.sessionCount,
  language: it.language ?? user.language,
  timezone: null,
  game_version: null,
  device_os: null,
  device_type: Number(Object.entries(DEVICES).find(([, type]) => type === it.type)?.[0]),
  device_model: null,
  ad_id: null,
  tags: user.tags,
  last_active: it.lastActive,
  playtime: it.sessionTime,
  amount_spent: user.spent / 100,
  created_at: it.createdAt,
  invalid_identifier: it.token === null || !it.enabled || (it.notificationTypes ?? 1) <= 0,
  badge_count: 0,
  sdk: it.sdk === '' ? null : it.sdk,
  test_type: null,
  ip: null,
  external_user_id: user.aliases.external_id ?? null,
  notification_types: notificationTypes(it),
  country: null,
  lat: null,
  long: null,
})
