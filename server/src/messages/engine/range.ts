// The next of those whom a message means, where it does not name them: it goes through the app's subscriptions in the order of their
// ids, so many at a time.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import { audienceInRange, CANDIDATE, endOfRange } from '../../segments/audience.ts'
import type { Db } from '../../storage/db.ts'
import { findHolders } from '../activities/store.ts'
import type { MessageId } from '../message.ts'
import { audienceOf } from './audience.ts'
import type { Engine } from './engine.ts'
import { type Expansion, inRange, named } from './expand-statement.ts'
import type { WaitingMessage } from './expand-store.ts'

export const RANGE = 10_000

/** `upTo` is undefined for the last one. */
export type Range = { candidates: Expansion['candidates']; upTo: SubscriptionId | undefined }

/** `expandAt`: what is said of time in filters means one moment for all ranges. */
export function nextRange(
  engine: Pick<Engine, 'log'>,
  db: Db,
  appId: AppId,
  message: WaitingMessage,
  expandAt: Date,
): Promise<Range> {
  const after = message.expandedTo ?? undefined
  return message.audience.kind === 'activity'
    ? rangeOfHolders(db, appId, message.id, message.audience.activityId, after)
    : rangeOfAudience(engine, db, appId, message, expandAt, after)
}

async function rangeOfAudience(
  engine: Pick<Engine, 'log'>,
  db: Db,
  appId: AppId,
  message: WaitingMessage,
  now: Date,
  after: SubscriptionId | undefined,
): Promise<Range> {
  const scope = { appId, now }
  const node = await audienceOf(engine, db, appId, message)
  const upTo = await endOfRange(db, scope, after, RANGE)
  return { candidates: inRange(audienceInRange(node, scope, { after, upTo }, CANDIDATE)), upTo }
}

/** Of those that show a live activity, however few they are among all. */
async function rangeOfHolders(
  db: Db,
  appId: AppId,
  messageId: MessageId,
  activityId: string,
  after: SubscriptionId | undefined,
): Promise<Range> {
  const holders = await findHolders(db, appId, { purpose: 'update', name: activityId }, RANGE, after)
  const candidates = named(
    appId,
    holders.map((subscriptionId) => ({ messageId, subscriptionId })),
  )
  return { candidates, upTo: holders.length === RANGE ? holders.at(-1) : undefined }
}
