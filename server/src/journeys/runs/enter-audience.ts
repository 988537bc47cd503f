// Those who are in the segments of a journey when it is activated, so many subscriptions of the app at a time.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import { audienceInRange, audience as audienceSql, endOfRange, type Range } from '../../segments/audience.ts'
import type { Scope } from '../../segments/compile.ts'
import { getSegmentsById, treeOf } from '../../segments/read.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { Node } from '../../segments/tree.ts'
import type { Db } from '../../storage/db.ts'
import { type Sql, sql } from '../../storage/sql.ts'
import type { Audience, Journey } from '../journey.ts'
import { COUNTS_OF, changeCounts } from '../stats-store.ts'
import { insertRunsOf } from './run-store.ts'

export const RANGE = 10_000

type Segments = Extract<Audience, { kind: 'segment' }>

/** `seed`: an id that nobody has. Answers how far it came: undefined when nobody is left. Journeys that events trigger begin empty. */
export async function enterNext(
  db: Db,
  appId: AppId,
  { id, document: { audience } }: Journey,
  { after, seed }: { after: SubscriptionId | undefined; seed: string },
  now: Date,
): Promise<SubscriptionId | undefined> {
  if (audience.kind !== 'segment') return undefined
  const scope = { appId, now }
  const upTo = await endOfRange(db, scope, after, RANGE)
  const users = await usersOf(db, scope, audience, { after, upTo })
  if (audience.future_additions_only) await insertRunsOf(db, appId, id, users, { state: 'barred', seed }, now)
  else {
    const entered = await insertRunsOf(db, appId, id, users, { state: 'waiting', seed }, now)
    await changeCounts(db, appId, id, COUNTS_OF.activation, [{ placeId: id, fact: 'started', by: entered.length }])
  }
  return upTo
}

/** Whom the audience means, as far as segments tell. */
async function usersOf(db: Db, scope: Scope, audience: Segments, range: Range): Promise<Sql> {
  const { included_segment_ids: included, excluded_segment_ids: excluded, future_additions_only: isBar } = audience
  const segments = await getSegmentsById({ db }, scope.appId, [...included, ...excluded])
  const treesOf = (ids: readonly SegmentId[]) => ids.flatMap((id) => segments.get(id) ?? []).map(treeOf)
  // Who was left out then is no addition when that ends.
  if (isBar) return usersStatement(treesOf([...included, ...excluded]), [], scope, range)
  // Whom to leave out cannot be told any more: better nobody than one of them.
  if (excluded.some((id) => !segments.has(id))) return usersStatement([], [], scope, range)
  return usersStatement(treesOf(included), treesOf(excluded), scope, range)
}

/** Who has a subscription in the range that is in an included segment, and none at all that is in an excluded one. */
export function usersStatement(included: Node[], excluded: Node[], scope: Scope, range: Range): Sql {
  const wanted = audienceInRange({ kind: 'any', of: included }, scope, range, sql`s.user_id`)
  if (excluded.length === 0) return sql`select distinct m.user_id from (${wanted}) m`
  // Fenced, so that each user's own subscriptions are looked at, and not all of the app for every range.
  return sql`
    select m.user_id
    from (select distinct w.user_id from (${wanted}) w offset 0) m
    where not exists (
      select 1 from (${audienceSql({ kind: 'any', of: excluded }, scope)}) e where e.user_id = m.user_id offset 0)`
}
