// SQL on the counts of journeys. Runs are counted in the transaction that advances them.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { JourneyId } from './journey.ts'
import type { NodeId } from './nodes/node.ts'

/** The place is the id of the journey, a node or a branch. */
export type JourneyCount = { placeId: string; fact: string; total: number }

export const findCounts = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query<JourneyCount>(sql`
    select c.place_id, c.fact, sum(c.count) as total
    from journey_counts c
    where c.app_id = ${appId} and c.journey_id = ${journeyId}
    group by c.place_id, c.fact`)

export type NodeMessageCount = { nodeId: NodeId; state: string; reason: string; count: number }

/** The states of the deliveries of each send node. */
export const findMessageCounts = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query<NodeMessageCount>(
    sql`
    select m.node_id, c.state, c.reason, sum(c.count)::bigint as count
    from journey_messages m join message_counts c on c.app_id = ${appId} and c.message_id = m.message_id
    where m.app_id = ${appId} and m.journey_id = ${journeyId}
    group by m.node_id, c.state, c.reason`,
    { prepare: false },
  )

export const deleteCounts = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query(sql`delete from journey_counts where app_id = ${appId} and journey_id = ${journeyId}`)

/** Each kind of writer adds to rows of its own, so that writers do not wait for each other. Those who advance runs use 0 to 3. */
export const COUNT_SHARD = { entry: 4, activation: 5, changes: 6, calls: 7 } as const

export type CountChange = { placeId: string; fact: string; by: number }

/** Adds to the counts, in the order in which all writers lock rows. */
export const changeCountsOf = async (
  db: Db,
  appId: AppId,
  part: number,
  changes: readonly (CountChange & { journeyId: JourneyId })[],
): Promise<void> => {
  const list = changes.filter(({ by }) => by !== 0)
  if (list.length === 0) return
  await db.query(sql`
    insert into journey_counts (app_id, journey_id, place_id, fact, part, count)
    select a.id, r."journeyId", r."placeId", r.fact, ${part}::smallint, sum(r.by)::bigint
    from apps a cross join jsonb_to_recordset(${rows(list)}::jsonb)
      as r("journeyId" uuid, "placeId" uuid, fact text, by bigint)
    where a.id = ${appId}
    group by a.id, r."journeyId", r."placeId", r.fact
    order by r."journeyId", r."placeId", r.fact
    on conflict (app_id, journey_id, place_id, fact, part) do update
    set count = journey_counts.count + excluded.count`)
}

export const changeCounts = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  part: number,
  changes: readonly CountChange[],
): Promise<void> =>
  changeCountsOf(
    db,
    appId,
    part,
    changes.map((change) => ({ ...change, journeyId })),
  )
