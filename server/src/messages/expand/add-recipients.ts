// Adds users to open messages. Journeys call this in the transaction that moves the users on, which also writes their
// deliveries, so that either both happen or neither.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { recipientCountPart } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'
import { deliverJobs } from '../jobs.ts'
import { candidatesInRuns, type RunRecipient } from './candidates.ts'
import { ALL_SHARDS, type ExpandedGroup, shardsFor } from './insert-deliveries.ts'
import { lockOpenForShare, lockOpenForUpdate, writeThrottledTo } from './open-message-store.ts'
import {
  type ExpandingMessage,
  isPlainMessage,
  pendingOf,
  type SendingSetup,
  totalOf,
  writeDeliveries,
} from './write-deliveries.ts'

/** `part`: from 0 to 3; callers that add to one message at the same time use different parts. */
export type AddOptions = SendingSetup & { part: number }

export type AddContext = Pick<Engine, 'queue' | 'growth'>

/** The providers that can deliver to the recipients. Call it before the transaction: it may need another connection. */
export async function findReadyProviders(
  { clock, prepareMonths, sender }: Engine,
  appId: AppId,
): Promise<SendingSetup['ready']> {
  await prepareMonths(clock.now())
  return sender.ready(appId)
}

/**
 * Writes nothing and returns false when one of the messages is no longer open: its time is over, it was canceled, or it
 * was deleted. Adding a run again changes nothing. Order of the locks: messages, deliveries, counts, and last jobs,
 * because workers that deliver wait for their rows.
 */
export async function addRecipients(
  { queue, growth }: AddContext,
  db: Db,
  appId: AppId,
  recipients: readonly RunRecipient[],
  options: AddOptions,
  now: Date,
): Promise<boolean> {
  const byMessage = Map.groupBy(recipients, ({ messageId }) => messageId)
  const ids = [...byMessage.keys()]
  // A template cannot set a throttle, so the app's setting decides.
  const lock = options.settings.throttlePerMinute ? lockOpenForUpdate : lockOpenForShare
  const openMessages = await lock(db, appId, ids, now)
  if (openMessages.length < ids.length) return false
  const written: ExpandedGroup[] = []
  for (const messages of groupByStatement(openMessages, options)) {
    const added = messages.flatMap(({ id }) => byMessage.get(id) ?? [])
    // The order of a run's messages is kept within a shard, so all deliveries to a subscription must be in the same
    // one.
    const isOrdered = added.some(({ step }) => step > 0)
    const input = {
      setup: options,
      messages,
      candidates: candidatesInRuns(appId, added),
      shards: isOrdered ? ALL_SHARDS : shardsFor(added.length),
      countPart: recipientCountPart(options.part),
    }
    const result = await writeDeliveries(db, appId, input, now)
    if (result.throttledTo) await writeThrottledTo(db, appId, messages[0].id, result.throttledTo)
    written.push(...result.written)
  }
  await queue.enqueue(db, deliverJobs(appId, pendingOf(written)))
  for (const [id, groups] of Map.groupBy(written, ({ messageId }) => messageId)) growth.record(id, totalOf(groups))
  return true
}

/** Plain messages share one statement; each of the others needs its own. */
function groupByStatement(
  messages: readonly ExpandingMessage[],
  { settings }: SendingSetup,
): [ExpandingMessage, ...ExpandingMessage[]][] {
  const [first, ...rest] = messages.filter((message) => isPlainMessage(message, settings))
  const others = messages.filter((message) => !isPlainMessage(message, settings))
  const groups: [ExpandingMessage, ...ExpandingMessage[]][] = others.map((message) => [message])
  return first ? [[first, ...rest], ...groups] : groups
}
