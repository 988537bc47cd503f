// Whoever leads users through steps adds them to the message of the step that they are at, and their deliveries are written at once,
// in the transaction that moves them on: they are led on and sent to, or neither.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { recipientCountPart } from '../delivery.ts'
import type { Engine } from '../engine/engine.ts'
import { deliverJobs } from '../jobs.ts'
import type { MessageId, RunId } from '../message.ts'
import { ALL_SHARDS, candidatesInRuns, type ExpandedGroup, shardsFor } from './insert-deliveries.ts'
import { lockOpenForShare, lockOpenForUpdate, writeThrottledTo } from './open-message-store.ts'
import {
  type ExpandingMessage,
  isPlainMessage,
  pendingOf,
  type SendingSetup,
  totalOf,
  writeDeliveries,
} from './write-deliveries.ts'

/**
 * A run belongs to one user. `step`: the place of this message among all that the run sends, from 1; what has a lower one and the same
 * subscription is settled before. 0: nothing can come before or after it.
 */
export type RunRecipient = { messageId: MessageId; userId: UserId; runId: RunId; step: number }

/** `part`: whoever adds to the same message has another, from 0 to 3. */
export type AddOptions = SendingSetup & { part: number }

export type AddContext = Pick<Engine, 'queue' | 'growth'>

/** Who can bring what is added. Asked before the transaction: it may take another connection. */
export async function findReadyProviders(
  { clock, prepareMonths, sender }: Engine,
  appId: AppId,
): Promise<SendingSetup['ready']> {
  await prepareMonths(clock.now())
  return sender.ready(appId)
}

/**
 * False, and nothing is written, when one of the messages is not open (any more): its time is over, it was canceled, or it is gone.
 * Adding a run again changes nothing. Order of the locks: messages, deliveries, counts, jobs. Last of all: deliverers wait for the
 * jobs.
 */
export async function addRecipients(
  { queue, growth }: AddContext,
  db: Db,
  appId: AppId,
  recipients: readonly RunRecipient[],
  adding: AddOptions,
  now: Date,
): Promise<boolean> {
  const byMessage = Map.groupBy(recipients, ({ messageId }) => messageId)
  const ids = [...byMessage.keys()]
  // What a message says itself of a throttle, a template cannot: the app's setting decides.
  const lock = adding.settings.throttlePerMinute ? lockOpenForUpdate : lockOpenForShare
  const messages = await lock(db, appId, ids, now)
  if (messages.length < ids.length) return false
  const written: ExpandedGroup[] = []
  for (const group of groupByStatement(messages, adding)) {
    const those = group.flatMap(({ id }) => byMessage.get(id) ?? [])
    // Only within a line can one delivery wait for another: the order of a run needs one that a subscription always has.
    const shards = those.some(({ step }) => step > 0) ? ALL_SHARDS : shardsFor(those.length)
    const whom = { candidates: candidatesInRuns(appId, those), shards }
    const result = await writeDeliveries(db, appId, adding, group, whom, recipientCountPart(adding.part), now)
    if (result.throttledTo) await writeThrottledTo(db, appId, group[0].id, result.throttledTo)
    written.push(...result.written)
  }
  await queue.enqueue(db, deliverJobs(appId, pendingOf(written)))
  for (const [id, list] of Map.groupBy(written, ({ messageId }) => messageId)) growth.record(id, totalOf(list))
  return true
}

/** Plain ones in one statement, each of the others in its own. */
function groupByStatement(
  messages: readonly ExpandingMessage[],
  { settings }: SendingSetup,
): [ExpandingMessage, ...ExpandingMessage[]][] {
  const [first, ...rest] = messages.filter((message) => isPlainMessage(message, settings))
  const others = messages.filter((message) => !isPlainMessage(message, settings))
  return [
    ...(first ? [[first, ...rest] as [ExpandingMessage, ...ExpandingMessage[]]] : []),
    ...others.map((it): [ExpandingMessage] => [it]),
  ]
}
