// Aliases: which ones are well-formed, and how a request addresses a user by one.

import { invalid, invalidUuid } from '../../lib/errors.ts'
import { isUuid, type UserId } from '../../lib/ids.ts'
import { codePoints, isStorable } from '../../lib/text.ts'

export const MAX_CUSTOM_ALIASES = 10
const MAX_LENGTH = 128

export const ONESIGNAL_ID = 'onesignal_id'
export const EXTERNAL_ID = 'external_id'

export type Alias = { label: string; value: string }

/** How a request names a user: by the id that the server assigned, or by an alias. */
export type UserRef = { id: UserId } | Alias

/** A user addressed by path. An alias that could not exist simply finds no user; a malformed id is refused. */
export function readUserRef(label: string, value: string): UserRef {
  if (label !== ONESIGNAL_ID) return { label, value }
  if (!isUuid(value)) throw invalidUuid(ONESIGNAL_ID, value)
  return { id: value.toLowerCase() }
}

/**
 * Checks the aliases of a request body. Returns `onesignal_id` separately, because whether it is allowed depends on the
 * operation.
 */
export function readIdentity(identity: Record<string, string>): { aliases: Alias[]; onesignalId: string | undefined } {
  const aliases: Alias[] = []
  let onesignalId: string | undefined
  for (const [label, value] of Object.entries(identity)) {
    if (label === ONESIGNAL_ID) onesignalId = value.toLowerCase()
    else {
      check('label', label)
      check(`value of "${label}"`, value)
      aliases.push({ label, value })
    }
  }
  return { aliases, onesignalId }
}

function check(what: string, text: string) {
  if (text === '') throw invalid(`an alias ${what} must not be empty`)
  if (codePoints(text) > MAX_LENGTH) throw invalid(`an alias ${what} must have at most ${MAX_LENGTH} characters`)
  if (!isStorable(text)) throw invalid(`an alias ${what} must be valid text`)
}

/** `onesignal_id` first, then `external_id`, then the rest by label, so that the order is stable. */
export function identityObject(id: UserId, aliases: Iterable<readonly [string, string]>): Record<string, string> {
  const sorted = [...aliases].sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
  const identity: Record<string, string> = Object.create(null)
  identity[ONESIGNAL_ID] = id
  for (const [label, value] of sorted) identity[label] = value
  return identity
}

const rank = (label: string) => (label === EXTERNAL_ID ? 0 : 1)
