// Idempotency: a request that was taken is remembered for 30 days by its key, and who brings the key again gets its answer.

import { findAllApps } from '../../apps/store.ts'
import { invalid } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { sha256 } from '../../lib/secrets.ts'
import type { Db } from '../../storage/db.ts'
import { type IdempotencyKey, idempotencyKeyNames } from '../message.ts'
import type { CreateMessageBody } from '../schema.ts'
import { deleteKeysBefore } from '../store.ts'

const KEPT_MS = 30 * 86_400_000
const KEYS_AT_ONCE = 10_000

/** Keys and, where there are any, what tells the request from another one: all of it but the keys. */
export type RequestKeys = { keys: IdempotencyKey[]; requestHash: string }

export function readKeys(body: CreateMessageBody): RequestKeys {
  const keys: IdempotencyKey[] = []
  for (const name of idempotencyKeyNames) {
    const key = body[name]
    if (!key) continue
    if (!isUuid(key)) throw invalid(`${name} must be a UUID`)
    keys.push({ name, key: key.toLowerCase() })
  }
  if (keys.length === 0) return { keys, requestHash: '' }
  const { idempotency_key: _, external_id: __, ...rest } = body
  return { keys, requestHash: sha256(canonical(rest)).toString('hex') }
}

/** The same text for the same request, in whatever order its fields came. */
function canonical(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, inner]) => `${JSON.stringify(name)}:${canonical(inner)}`).join()}}`
}

/** Keys that were taken no later than this are free again. */
export const oldestKeyTime = (now: Date) => new Date(now.getTime() - KEPT_MS)

/** That old keys no longer count is decided where they are used; this only makes room. */
export async function deleteExpiredMessageKeys(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db))
    while ((await deleteKeysBefore(db, id, oldestKeyTime(now), KEYS_AT_ONCE)) === KEYS_AT_ONCE);
}
