// Candidates of messages become deliveries: the rows with what was decided about each, and their counts.

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
import { firstDue, throttledUntil, timingOf } from './due-times.ts'
import {
  type DueTiming,
  type ExpandedGroup,
  type Expansion,
  insertDeliveries,
  type MessagePlan,
} from './insert-deliveries.ts'
import type { UnexpandedMessage } from './store.ts'

/** What is asked once for many. */
export type SendingSetup = { ready: ReadonlySet<Provider>; settings: DeliverySettings }

export type ExpandingMessage = UnexpandedMessage & { expandAt: Date }

/** `throttledTo`: until when places are taken now, where so many a minute are sent. */
export type WrittenDeliveries = { written: ExpandedGroup[]; throttledTo: Date | null }

/** All that is due is due at once, and everybody may get it: many of these are one statement. */
export const isPlainMessage = (message: UnexpandedMessage, settings: DeliverySettings) =>
  !message.options.delayedOption &&
  !message.options.warmUp &&
  !message.options.isTest &&
  !throttlePerMinuteOf(message, settings)

/** Of several messages only where they are plain. `part`: of the counts, the writer's own. */
export async function writeDeliveries(
  db: Db,
  appId: AppId,
  { ready, settings: known }: SendingSetup,
  messages: readonly [ExpandingMessage, ...ExpandingMessage[]],
  { candidates, shards }: Pick<Expansion, 'candidates' | 'shards'>,
  part: number,
  now: Date,
): Promise<WrittenDeliveries> {
  const [first] = messages
  // Places of a throttle that is gone meanwhile would be let go by nobody.
  const isCurrent = !throttlePerMinuteOf(first, known) || (await areHoldsUnchanged(db, appId, known))
  const settings = isCurrent ? known : (await readSending(db, appId, now)).settings
  const timing = await timingOf(db, appId, first, candidates, settings)
  const expansion: Expansion = {
    plans: messages.map((message) => planOf(message, timing, now)),
    providers: messages.flatMap((message) => chooseProviders(message, ready)),
    candidates,
    timing,
    shards,
    onlyTestUsers: first.options.isTest ?? false,
  }
  const written = await insertDeliveries(db, appId, expansion, now)
  await changeCounts(db, appId, part, written)
  return { written, throttledTo: throttledUntil(first, timing, totalOf(pendingOf(written)), now) }
}

/** What is to be delivered. */
export const pendingOf = (written: readonly ExpandedGroup[]) => written.filter(({ state }) => state === 'pending')

export const totalOf = (list: readonly { count: number }[]) => list.reduce((sum, { count }) => sum + count, 0)

const planOf = (message: ExpandingMessage, timing: DueTiming, now: Date): MessagePlan => ({
  id: message.id,
  lane: message.lane,
  expandAt: message.expandAt,
  dueAt: firstDue(message, timing, now),
  lifetimeSeconds: lifetimeSecondsOf(message.options),
  includesUnsubscribed: message.options.includeUnsubscribed ?? false,
})
