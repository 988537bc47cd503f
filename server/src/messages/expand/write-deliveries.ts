// Candidates of messages become deliveries: the rows with what was decided about each, and their counts.

import type { AppId } from '../../lib/ids.ts'
import { readSending } from '../../sending/read.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import { areHoldsUnchanged } from '../../sending/store.ts'
import type { Db } from '../../storage/db.ts'
import { changeCounts } from '../counts/store.ts'
import { throttleOf } from '../deliver/throttle.ts'
import type { Provider } from '../delivery.ts'
import { lifeSecondsOf } from '../lifetime.ts'
import { waysOf } from './choose-providers.ts'
import { firstDue, lastTaken, timingOf } from './due-times.ts'
import { type Expanded, type Expansion, insertDeliveries, type Plan, type Timing } from './insert-deliveries.ts'
import type { WaitingMessage } from './store.ts'

/** What is asked once for many. */
export type Known = { ready: ReadonlySet<Provider>; settings: DeliverySettings }

export type Begun = WaitingMessage & { expandAt: Date }

/** `throttledTo`: until when places are taken now, where so many a minute are sent. */
export type Written = { written: Expanded[]; throttledTo: Date | null }

/** All that is due is due at once, and everybody may get it: many of these are one statement. */
export const isPlain = (message: WaitingMessage, settings: DeliverySettings) =>
  !message.options.delayedOption && !message.options.warmUp && !message.options.isTest && !throttleOf(message, settings)

/** Of several messages only where they are plain. `part`: of the counts, the writer's own. */
export async function writeDeliveries(
  db: Db,
  appId: AppId,
  { ready, settings: known }: Known,
  messages: readonly [Begun, ...Begun[]],
  { candidates, lines }: Pick<Expansion, 'candidates' | 'lines'>,
  part: number,
  now: Date,
): Promise<Written> {
  const [first] = messages
  // Places of a throttle that is gone meanwhile would be let go by nobody.
  const isCurrent = !throttleOf(first, known) || (await areHoldsUnchanged(db, appId, known))
  const settings = isCurrent ? known : (await readSending(db, appId, now)).settings
  const timing = await timingOf(db, appId, first, candidates, settings)
  const expansion: Expansion = {
    plans: messages.map((message) => planOf(message, timing, now)),
    ways: messages.flatMap((message) => waysOf(message, ready)),
    candidates,
    timing,
    lines,
    onlyTestUsers: first.options.isTest ?? false,
  }
  const written = await insertDeliveries(db, appId, expansion, now)
  await changeCounts(db, appId, part, written)
  return { written, throttledTo: lastTaken(first, timing, sumOf(waitingOf(written)), now) }
}

/** What is to be delivered. */
export const waitingOf = (written: readonly Expanded[]) => written.filter(({ state }) => state === 'pending')

export const sumOf = (list: readonly { count: number }[]) => list.reduce((sum, { count }) => sum + count, 0)

const planOf = (message: Begun, timing: Timing, now: Date): Plan => ({
  id: message.id,
  lane: message.lane,
  expandAt: message.expandAt,
  dueAt: firstDue(message, timing, now),
  lifeSeconds: lifeSecondsOf(message.options),
  includesUnsubscribed: message.options.includeUnsubscribed ?? false,
})
