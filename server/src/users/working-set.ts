// The users that a batch of changes is about, loaded and locked, with everything they own, as plain values. Commands
// change it in memory; what differs from the loaded state is then written as sets. Each change adds its inverse to a
// list, so that a command that throws can be undone.

import type { AuditEntry } from '../apps/store.ts'
import type { SubscriptionId, UserId } from '../lib/ids.ts'
import type { Alias, UserRef } from './aliases/identity.ts'
import type { StoredProperties, StoredPurchase } from './properties/stored.ts'
import type { Subscription, SubscriptionType } from './subscriptions/subscription.ts'
import type { NewPurchases, OwnerRef, User } from './user.ts'

export type Note = Omit<AuditEntry, 'id'>

export type LoadedState = {
  users: ReadonlyMap<UserId, { properties: StoredProperties; aliases: ReadonlyMap<string, string> }>
  subscriptions: ReadonlyMap<SubscriptionId, Subscription>
}

export type WorkingSet = ReturnType<typeof createWorkingSet>

const aliasKey = (label: string, value: string) => `${label}\0${value}`
const tokenKey = (type: SubscriptionType, tokenHash: string) => `${type}\0${tokenHash}`

export function createWorkingSet(loaded: User[]) {
  const users = new Map<UserId, User>()
  const byAlias = new Map<string, UserId>()
  const subscriptions = new Map<SubscriptionId, Subscription>()
  const byToken = new Map<string, SubscriptionId>()
  const byInstall = new Map<string, SubscriptionId>()
  const purchases: NewPurchases[] = []
  const audit: Note[] = []
  let undo: (() => void)[] = []

  function index(user: User) {
    users.set(user.id, user)
    for (const [label, value] of user.aliases) byAlias.set(aliasKey(label, value), user.id)
    for (const subscription of user.subscriptions.values()) indexSubscription(subscription)
  }
  function indexSubscription(it: Subscription) {
    subscriptions.set(it.id, it)
    if (it.tokenHash !== null) byToken.set(tokenKey(it.type, it.tokenHash), it.id)
    if (it.installId !== null) byInstall.set(it.installId, it.id)
  }
  for (const user of loaded) index(user)

  // Properties and subscriptions are replaced, never changed in place, so keeping references to them is enough.
  const before: LoadedState = {
    users: new Map(loaded.map((it) => [it.id, { properties: it.properties, aliases: new Map(it.aliases) }])),
    subscriptions: new Map(subscriptions),
  }

  function put<Key, Value>(map: Map<Key, Value>, key: Key, value: Value | undefined) {
    const had = map.has(key)
    const before = map.get(key) as Value
    undo.push(() => (had ? map.set(key, before) : map.delete(key)))
    if (value === undefined) map.delete(key)
    else map.set(key, value)
  }
  function push<Value>(list: Value[], value: Value) {
    list.push(value)
    undo.push(() => list.pop())
  }

  const owner = (it: Subscription) => users.get(it.userId) as User

  const changes = {
    addUser(user: User) {
      put(users, user.id, user)
    },
    removeUser(user: User) {
      for (const label of [...user.aliases.keys()]) changes.removeAlias(user, label)
      for (const it of [...user.subscriptions.values()]) changes.removeSubscription(it)
      put(users, user.id, undefined)
    },
    setProperties(user: User, properties: StoredProperties) {
      const before = user.properties
      undo.push(() => {
        user.properties = before
      })
      user.properties = properties
    },
    addPurchases(user: User, bought: StoredPurchase[]) {
      if (bought.length > 0) push(purchases, { userId: user.id, purchases: bought })
    },
    setAlias(user: User, { label, value }: Alias) {
      changes.removeAlias(user, label)
      put(user.aliases, label, value)
      put(byAlias, aliasKey(label, value), user.id)
    },
    removeAlias(user: User, label: string) {
      const value = user.aliases.get(label)
      if (value === undefined) return
      put(user.aliases, label, undefined)
      put(byAlias, aliasKey(label, value), undefined)
    },
    /** Adds the subscription, or replaces the one with the same id, which may have another owner, token or fields. */
    putSubscription(it: Subscription) {
      const before = subscriptions.get(it.id)
      if (before) {
        if (before.tokenHash !== null) put(byToken, tokenKey(before.type, before.tokenHash), undefined)
        if (before.installId !== null) put(byInstall, before.installId, undefined)
        if (before.userId !== it.userId) put(owner(before).subscriptions, it.id, undefined)
      }
      put(subscriptions, it.id, it)
      if (it.tokenHash !== null) put(byToken, tokenKey(it.type, it.tokenHash), it.id)
      if (it.installId !== null) put(byInstall, it.installId, it.id)
      put(owner(it).subscriptions, it.id, it)
    },
    removeSubscription(it: Subscription) {
      put(subscriptions, it.id, undefined)
      if (it.tokenHash !== null) put(byToken, tokenKey(it.type, it.tokenHash), undefined)
      if (it.installId !== null) put(byInstall, it.installId, undefined)
      put(owner(it).subscriptions, it.id, undefined)
    },
    note(entry: Note) {
      push(audit, entry)
    },
  }

  return {
    ...changes,
    before,
    users: users as ReadonlyMap<UserId, User>,
    subscriptions: subscriptions as ReadonlyMap<SubscriptionId, Subscription>,
    purchases: purchases as readonly NewPurchases[],
    audit: audit as readonly Note[],
    find(ref: UserRef): User | undefined {
      const id = 'id' in ref ? ref.id : byAlias.get(aliasKey(ref.label, ref.value))
      return id === undefined ? undefined : users.get(id)
    },
    findByToken(type: SubscriptionType, tokenHash: string): Subscription | undefined {
      const id = byToken.get(tokenKey(type, tokenHash))
      return id === undefined ? undefined : subscriptions.get(id)
    },
    findByInstall(installId: string): Subscription | undefined {
      const id = byInstall.get(installId)
      return id === undefined ? undefined : subscriptions.get(id)
    },
    /** The user that a reference points at in the present state. */
    ownerOf(ref: OwnerRef): UserId | undefined {
      if ('id' in ref) return users.get(ref.id)?.id
      if ('label' in ref) return byAlias.get(aliasKey(ref.label, ref.value))
      if ('subscriptionId' in ref) return subscriptions.get(ref.subscriptionId)?.userId
      const id = 'installId' in ref ? byInstall.get(ref.installId) : byToken.get(tokenKey(ref.type, ref.tokenHash))
      return id === undefined ? undefined : subscriptions.get(id)?.userId
    },
    /** Applies the whole command or, when it throws, nothing. */
    attempt<Result>(command: () => Result): Result {
      undo = []
      try {
        return command()
      } catch (error) {
        for (const step of undo.reverse()) step()
        throw error
      }
    },
  }
}
