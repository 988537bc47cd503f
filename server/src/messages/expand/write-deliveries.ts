// Writes the deliveries of candidates, with a decision about each, and their counts.

import type { AppId } from '../../lib/ids.ts'
import { readSending } from '../../sending/read.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import { areHoldsUnchanged } from '../../sending/store.ts'
import type { Db } from '../../storage/db.ts'
import { changeCounts } from '../counts/store.ts'
import { throttlePerMinuteOf } from '../deliver/throttle.ts'
import type { Provider } from '../delivery.ts'
import { lifetimeSecondsOf } from '../lifetime.ts'
import { chooseProviders } from './choose-providers.ts'
import { dueTimingOf, firstDue, throttledUntil } from './due-times.ts'
import {
  type DueTiming,
  type ExpandedGroup,
  type Expansion,
  insertDeliveries,
  type MessagePlan,
} from './insert-deliveries.ts'
import type { UnexpandedMessage } from './store.ts'

/** How the app can send. It is read once for many messages. */
export type SendingSetup = { ready: ReadonlySet<Provider>; settings: DeliverySettings }

export type ExpandingMessage = UnexpandedMessage & { expandAt: Date }

export type WriteInput = Pick<Expansion, 'candidates' | 'shards'> & {
  setup: SendingSetup
  /** There may be several messages only if they are plain. */
  messages: readonly [ExpandingMessage, ...ExpandingMessage[]]
  /** The part of the counts that belongs to this writer. */
  countPart: number
}

/** `throttledTo`: until when send times are taken, for a throttled message. */
export type WrittenDeliveries = { written: ExpandedGroup[]; throttledTo: Date | null }

/**
 * A plain message is due at once for everybody and has no restrictions on its recipients, so one statement can expand
 * many of them.
 */
export const isPlainMessage = (message: UnexpandedMessage, settings: DeliverySettings) =>
  !message.options.delayedOption &&
  !message.options.warmUp &&
  !message.options.isTest &&
  !throttlePerMinuteOf(message, settings)

export async function writeDeliveries(
  db: Db,
  appId: AppId,
  { setup, messages, candidates, shards, countPart }: WriteInput,
  now: Date,
): Promise<WrittenDeliveries> {
  const [first] = messages
  // If the throttle was removed meanwhile, nobody would release the send times of these deliveries.
  const isCurrent = !throttlePerMinuteOf(first, setup.settings) || (await areHoldsUnchanged(db, appId, setup.settings))
  const settings = isCurrent ? setup.settings : (await readSending(db, appId, now)).settings
  const timing = await dueTimingOf(db, appId, first, candidates, settings)
  const expansion: Expansion = {
    plans: messages.map((message) => planOf(message, timing, now)),
    providers: messages.flatMap((message) => chooseProviders(message, setup.ready)),
    candidates,
    timing,
    shards,
    onlyTestUsers: first.options.isTest ?? false,
  }
  const written = await insertDeliveries(db, appId, expansion, now)
  await changeCounts(db, appId, countPart, written)
  return { written, throttledTo: throttledUntil(first, timing, totalOf(pendingOf(written)), now) }
}

/** The deliveries that are to be sent. */
export const pendingOf = (written: readonly ExpandedGroup[]) => written.filter(({ state }) => state === 'pending')

export const totalOf = (groups: readonly { count: number }[]) => groups.reduce((sum, { count }) => sum + count, 0)

const planOf = (message: ExpandingMessage, timing: DueTiming, now: Date): MessagePlan => ({
  id: message.id,
  lane: message.lane,
  expandAt: message.expandAt,
  dueAt: firstDue(message, timing, now),
  lifetimeSeconds: lifetimeSecondsOf(message.options),
  includesUnsubscribed: message.options.includeUnsubscribed ?? false,
})
