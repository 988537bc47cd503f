// Finds the next range of a message's audience, for messages that do not name their recipients: subscriptions in the
// order of their ids.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import { audienceInRange, type IdsRow, idsStatement } from '../../segments/audience.ts'
import { sql } from '../../storage/sql.ts'
import { findTokenHolders } from '../activities/store.ts'
import type { Engine } from '../engine/types.ts'
import type { MessageId } from '../message.ts'
import { audienceOf } from './audience.ts'
import { type Candidates, candidatesById, candidatesByName } from './candidates.ts'
import type { UnexpandedMessage } from './store.ts'

export const RANGE_SIZE = 10_000

/** `upTo` is undefined for the last range. `nextSize`: how many subscriptions the next range should look at. */
export type ExpansionRange = {
  candidates: Candidates
  upTo: SubscriptionId | undefined
  nextSize?: number | undefined
}

export type RangeOptions = { expandAt: Date; size: number | undefined; signal: AbortSignal }

/** Times in filters are relative to `expandAt`, so that they mean the same in all ranges. Locks nothing. */
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

/** Finds subscriptions that show a live activity without reading all others. */
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
