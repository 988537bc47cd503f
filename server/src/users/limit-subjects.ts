// Limits that count per user need to know which user an alias stands for before the request is admitted.

import { authorityOf } from '../lib/authority.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import { addressGroup } from '../lib/networks.ts'
import { EXTERNAL_ID, ONESIGNAL_ID, type UserRef } from './aliases/identity.ts'
import type { UserReader } from './read.ts'

export type FindLimitSubjects = (appId: AppId, ref: UserRef) => Promise<string[]> | string[]

const REMEMBERED = 20_000
const MAX_AGE_MS = 10_000

/**
 * The user's id, however the request names it. Cached for some seconds: requests for an alias that moves in between
 * count against its former owner, which does no other harm.
 */
export function createFindLimitSubjects(reader: UserReader, clock: Clock): FindLimitSubjects {
  const remembered = new Map<string, { subject: string; until: number }>()
  return (appId, ref) => {
    if ('id' in ref) return [ref.id]
    const key = `${appId}\0${ref.label}\0${ref.value}`
    const found = remembered.get(key)
    const now = clock.leaseMs()
    if (found && found.until > now) return [found.subject]
    return reader.owner(appId, ref).then((id) => {
      if (id === undefined) return []
      if (remembered.size >= REMEMBERED) remembered.clear()
      remembered.set(key, { subject: id, until: now + MAX_AGE_MS })
      return [id]
    })
  }
}

const MAX_NAME = 128

type SdkRequest = {
  caller: Parameters<typeof authorityOf>[0]
  ip: string
  params: Record<string, string>
  body: unknown
}

/**
 * What the limits count a request of an SDK against. No user is looked up for it: a counter that belongs to a user
 * would reveal that the user exists, and a stranger could use it up. A device is counted by its IP address together
 * with what it names.
 */
export function limitSubjectsOfSdk({ caller, ip, params, body }: SdkRequest): string[] {
  const authority = authorityOf(caller)
  if (authority.kind === 'verified') return [`verified\0${authority.externalId}`]
  const { identity } = (body ?? {}) as { identity?: unknown }
  const externalId = isObject(identity) ? (identity as Record<string, unknown>)[EXTERNAL_ID] : undefined
  const names = [params.alias_id, params.subscription_id, externalId].filter((name) => typeof name === 'string')
  // Nothing is validated yet, and counters are kept for a while, so the names are cut.
  return names.map((name) => `device\0${addressGroup(ip)}\0${name.slice(0, MAX_NAME).toLowerCase()}`)
}

/** A subscription by its token; email addresses are case-insensitive. */
export const limitSubjectOfToken = (type: string, token: string) => {
  const kind = type.toLowerCase()
  return `${kind}\0${kind === 'email' ? token.toLowerCase() : token}`
}

const MOST_ALIASES = 20
const MOST_SUBSCRIPTIONS = 20

/**
 * What the limits count a Create user request against: the users that its aliases belong to, the aliases themselves
 * while nobody has them, and the subscriptions it contains.
 */
export async function limitSubjectsOfNewUser(find: FindLimitSubjects, appId: AppId, body: unknown): Promise<string[]> {
  const { identity, subscriptions } = (body ?? {}) as { identity?: unknown; subscriptions?: unknown }
  // The limits are checked before the body is validated, so nothing can be assumed about its shape.
  const aliases = isObject(identity) ? Object.entries(identity).filter(isTextPair).slice(0, MOST_ALIASES) : []
  const owners = await Promise.all(aliases.map(([label, value]) => findAlias(find, appId, label, value)))
  const brought = Array.isArray(subscriptions) ? subscriptions.slice(0, MOST_SUBSCRIPTIONS) : []
  return [
    ...new Set([
      ...owners.flat(),
      ...aliases.map(([label, value]) => `${label}\0${value}`),
      ...brought.flatMap(subscriptionSubject),
    ]),
  ]
}

function subscriptionSubject(draft: unknown): string[] {
  const { id, type, token } = (draft ?? {}) as { id?: unknown; type?: unknown; token?: unknown }
  if (typeof id === 'string' && id !== '') return [id.toLowerCase()]
  return typeof token === 'string' && typeof type === 'string' && token !== '' ? [limitSubjectOfToken(type, token)] : []
}

const findAlias = (find: FindLimitSubjects, appId: AppId, label: string, value: string) =>
  label === ONESIGNAL_ID ? [] : find(appId, { label, value })
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const isTextPair = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string'
