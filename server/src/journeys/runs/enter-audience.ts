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
import { changeCounts } from '../stats-store.ts'
import { insertRunsOf } from './run-store.ts'

export const RANGE = 10_000
/** Of the counts of a journey, the one that only its activation writes. */
const ENTERING_PART = 5

type Segments = Extract<Audience, { kind: 'segment' }>

/** Answers how far it came: undefined when nobody is left. Journeys that events trigger begin empty. */
export async function enterNext(
  db: Db,
  appId: AppId,
  { id, document: { audience } }: Journey,
  after: SubscriptionId | undefined,
  now: Date,
): Promise<SubscriptionId | undefined> {
  if (audience.kind !== 'segment') return undefined
  const scope = { appId, now }
  const upTo = await endOfRange(db, scope, after, RANGE)
  const users = await usersOf(db, scope, audience, { after, upTo })
  if (audience.future_additions_only) await insertRunsOf(db, appId, id, users, 'barred', now)
  else {
    const entered = await insertRunsOf(db, appId, id, users, 'waiting', now)
    await changeCounts(db, appId, id, ENTERING_PART, [{ placeId: id, fact: 'started', by: entered.length }])
  }
  return upTo
}

/** Who has a subscription in the range that is in an included segment, and none at all that is in an excluded one. */
async function usersOf(db: Db, scope: Scope, audience: Segments, range: Range): Promise<Sql> {
  const { included_segment_ids: included, excluded_segment_ids: excluded, future_additions_only: isBar } = audience
  const segments = await getSegmentsById({ db }, scope.appId, [...included, ...excluded])
  const anyOf = (ids: readonly SegmentId[]): Node => ({
    kind: 'any',
    of: ids.flatMap((id) => segments.get(id) ?? []).map(treeOf),
  })
  const members = (node: Node) => audienceInRange(node, scope, range, sql`s.user_id`)
  // Who was left out then is no addition when that ends.
  if (isBar) return sql`select distinct m.user_id from (${members(anyOf([...included, ...excluded]))}) m`
  // Whom to leave out cannot be told any more: better nobody than one of them.
  const isUnknown = excluded.some((id) => !segments.has(id))
  const wanted = members(anyOf(isUnknown ? [] : included))
  if (excluded.length === 0 || isUnknown) return sql`select distinct m.user_id from (${wanted}) m`
  // Fenced, so that each user's own subscriptions are looked at, and not all of the app for every range.
  return sql`
    select m.user_id
    from (select distinct w.user_id from (${wanted}) w offset 0) m
    where not exists (
      select 1 from (${audienceSql(anyOf(excluded), scope)}) e where e.user_id = m.user_id offset 0)`
}
