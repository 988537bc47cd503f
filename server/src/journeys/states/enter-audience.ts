// Those who are in the segments of a journey when it is activated, so many subscriptions of the app at a time.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import {
  audienceInRange,
  selectAudience as audienceSql,
  type IdsRow,
  idsStatement,
  type SubscriptionRange,
} from '../../segments/audience.ts'
import type { AudienceScope } from '../../segments/filters/compile.ts'
import type { FilterNode } from '../../segments/filters/tree.ts'
import { filterTreeOf, getSegmentsById } from '../../segments/read.ts'
import type { ScanAudience } from '../../segments/scan.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { Db } from '../../storage/db.ts'
import { type Sql, sql } from '../../storage/sql.ts'
import type { Journey, JourneyAudience } from '../journey.ts'
import { insertRunsOf } from '../runs/run-store.ts'
import { COUNT_SHARD, changeCounts } from '../stats-store.ts'

export const RANGE = 10_000

type SegmentAudience = Extract<JourneyAudience, { kind: 'segment' }>

/** Users who are to enter, a list in PostgreSQL's own notation, and where the next range begins: undefined when nobody is left. */
export type Entrants = { ids: string; upTo: SubscriptionId | undefined; nextSize?: number }

const NOBODY: Entrants = { ids: '{}', upTo: undefined }

export type EntrantsOptions = { after: SubscriptionId | undefined; size: number | undefined; signal: AbortSignal }

/** Nothing is locked meanwhile. Journeys that events trigger begin empty. */
export async function findEntrants(
  { db, scanAudience }: { db: Db; scanAudience: ScanAudience },
  scope: AudienceScope,
  { document: { audience } }: Journey,
  { after, size, signal }: EntrantsOptions,
): Promise<Entrants> {
  if (audience.kind !== 'segment') return NOBODY
  const statement = await usersOf(db, scope, audience)
  const { rows, upTo, nextSize } = await scanAudience<IdsRow>({
    scope,
    after,
    maxSize: RANGE,
    size,
    signal,
    statement: (range) => idsStatement(sql`select m.user_id as id from (${statement(range)}) m`),
  })
  return { ids: rows[0]?.ids ?? '{}', upTo, nextSize }
}

/** `seed`: an id that nobody has. */
export async function enterUsers(
  db: Db,
  appId: AppId,
  { id, document: { audience } }: Journey,
  { ids, seed }: { ids: string; seed: string },
  now: Date,
): Promise<void> {
  const isBar = audience.kind === 'segment' && audience.future_additions_only
  const entered = await insertRunsOf(db, appId, id, ids, { state: isBar ? 'barred' : 'waiting', seed }, now)
  if (!isBar)
    await changeCounts(db, appId, id, COUNT_SHARD.activation, [{ placeId: id, fact: 'started', by: entered.length }])
}

/** Whom the audience means, as far as segments tell. */
async function usersOf(
  db: Db,
  scope: AudienceScope,
  audience: SegmentAudience,
): Promise<(range: SubscriptionRange) => Sql> {
  const { included_segment_ids: included, excluded_segment_ids: excluded, future_additions_only: isBar } = audience
  const segments = await getSegmentsById({ db }, scope.appId, [...included, ...excluded])
  const treesOf = (ids: readonly SegmentId[]) => ids.flatMap((id) => segments.get(id) ?? []).map(filterTreeOf)
  // Who was left out then is no addition when that ends.
  if (isBar) return (range) => usersStatement(treesOf([...included, ...excluded]), [], scope, range)
  // Whom to leave out cannot be told any more: better nobody than one of them.
  if (excluded.some((id) => !segments.has(id))) return (range) => usersStatement([], [], scope, range)
  return (range) => usersStatement(treesOf(included), treesOf(excluded), scope, range)
}

/** Who has a subscription in the range that is in an included segment, and none at all that is in an excluded one. */
export function usersStatement(
  included: FilterNode[],
  excluded: FilterNode[],
  scope: AudienceScope,
  range: SubscriptionRange,
): Sql {
  const wanted = audienceInRange({ kind: 'any', of: included }, scope, range, sql`s.user_id`)
  if (excluded.length === 0) return sql`select distinct m.user_id from (${wanted}) m`
  // Fenced, so that each user's own subscriptions are looked at, and not all of the app for every range.
  return sql`
    select m.user_id
    from (select distinct w.user_id from (${wanted}) w offset 0) m
    where not exists (
      select 1 from (${audienceSql({ kind: 'any', of: excluded }, scope)}) e where e.user_id = m.user_id offset 0)`
}
