// Idempotency keys: for 30 days, a request with the same key gets the answer of the first one.

import { findAllApps } from '../../apps/store.ts'
import { AppError, invalid } from '../../lib/errors.ts'
import { type AppId, isUuid } from '../../lib/ids.ts'
import { sha256 } from '../../lib/secrets.ts'
import type { Db } from '../../storage/db.ts'
import type { MergeOutcome } from '../../storage/merge.ts'
import { type IdempotencyKey, idempotencyKeyNames } from '../message.ts'
import type { CreateMessageBody } from '../schema.ts'
import { deleteKeysBefore, findTakenKeys, type TakenKey } from './store.ts'
import type { AcceptedMessage, RequestKeys } from './submission.ts'

const RETENTION_MS = 30 * 86_400_000
const DELETE_BATCH_SIZE = 10_000

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
  return { keys, requestHash: sha256(canonicalJson(rest)).toString('hex') }
}

/** Writes equal values as the same text, whatever the order of their fields. */
function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, inner]) => `${JSON.stringify(name)}:${canonicalJson(inner)}`).join()}}`
}

/** Keys that were taken at this time or earlier are free again. */
export const oldestKeyTime = (now: Date) => new Date(now.getTime() - RETENTION_MS)

/**
 * Finds the message that an earlier request with one of these keys created. Throws if that request differed from this
 * one.
 */
export async function findReplay(
  { db, now }: { db: Db; now: () => Date },
  appId: AppId,
  { keys, requestHash }: RequestKeys,
): Promise<AcceptedMessage | undefined> {
  if (keys.length === 0) return undefined
  const takenKeys = await findTakenKeys(db, appId, keys, oldestKeyTime(now()))
  const replay = replayOf({ keys, requestHash }, takenKeys)
  if (replay && 'error' in replay) throw replay.error
  return replay?.value
}

/** Decides what a request gets when its keys are taken; returns undefined if none of them is. */
export function replayOf(
  { keys, requestHash }: RequestKeys,
  takenKeys: readonly TakenKey[],
): MergeOutcome<AcceptedMessage> | undefined {
  const taken = takenKeys.find(({ name, key }) => keys.some((own) => own.name === name && own.key === key))
  if (!taken) return undefined
  if (taken.requestHash === requestHash) return { value: { id: taken.messageId, ...taken.answer, isReplay: true } }
  const title = `${taken.name} was used for another request`
  return { error: new AppError('invalid', { code: 'request-0', title }) }
}

/** Only frees space: expired keys are ignored wherever keys are read. */
export async function deleteExpiredMessageKeys(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db))
    while ((await deleteKeysBefore(db, id, oldestKeyTime(now), DELETE_BATCH_SIZE)) === DELETE_BATCH_SIZE);
}
