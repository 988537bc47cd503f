// The next of those whom a message means, where it does not name them: it goes through the app's subscriptions in the order of their
// ids, so many at a time.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import { audienceInRange, type IdsRow, idsStatement } from '../../segments/audience.ts'
import { sql } from '../../storage/sql.ts'
import { findTokenHolders } from '../activities/store.ts'
import type { Engine } from '../engine/engine.ts'
import type { MessageId } from '../message.ts'
import { audienceOf } from './audience.ts'
import { candidatesById, candidatesByName, type Expansion } from './insert-deliveries.ts'
import type { UnexpandedMessage } from './store.ts'

export const RANGE_SIZE = 10_000

/** `upTo` is undefined for the last one. `nextSize`: how many subscriptions the next one is to look at. */
export type ExpansionRange = {
  candidates: Expansion['candidates']
  upTo: SubscriptionId | undefined
  nextSize?: number | undefined
}

export type RangeOptions = { expandAt: Date; size: number | undefined; signal: AbortSignal }

/** `expandAt`: what is said of time in filters means one moment for all ranges. Nothing is locked meanwhile. */
export function nextRange(
  engine: Pick<Engine, 'db' | 'log' | 'scanAudience'>,
  appId: AppId,
  message: UnexpandedMessage,
  options: RangeOptions,
): Promise<ExpansionRange> {
  const after = message.expandedTo ?? undefined
  return message.audience.kind === 'activity'
    ? nextHolders(engine, appId, message.id, message.audience.activityId, after)
    : nextOfAudience(engine, appId, message, options, after)
}

async function nextOfAudience(
  engine: Pick<Engine, 'db' | 'log' | 'scanAudience'>,
  appId: AppId,
  message: UnexpandedMessage,
  { expandAt, size, signal }: RangeOptions,
  after: SubscriptionId | undefined,
): Promise<ExpansionRange> {
  const scope = { appId, now: expandAt }
  const node = await audienceOf(engine, engine.db, appId, message)
  const { rows, upTo, nextSize } = await engine.scanAudience<IdsRow>({
    scope,
    after,
    maxSize: RANGE_SIZE,
    size,
    signal,
    statement: (range) => idsStatement(audienceInRange(node, scope, range, sql`s.id`)),
  })
  return { candidates: candidatesById(appId, rows[0]?.ids ?? '{}'), upTo, nextSize }
}

/** Of those that show a live activity, however few they are among all. */
async function nextHolders(
  { db }: Pick<Engine, 'db'>,
  appId: AppId,
  messageId: MessageId,
  activityId: string,
  after: SubscriptionId | undefined,
): Promise<ExpansionRange> {
  const holders = await findTokenHolders(db, appId, { purpose: 'update', name: activityId }, RANGE_SIZE, after)
  const candidates = candidatesByName(
    appId,
    holders.map((subscriptionId) => ({ messageId, subscriptionId })),
  )
  return { candidates, upTo: holders.length === RANGE_SIZE ? holders.at(-1) : undefined }
}
