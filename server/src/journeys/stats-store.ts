// How many came by. Whoever moves users through a journey counts here, in the transaction that moves them.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { JourneyId } from './journey.ts'

/** The place is the journey, a node or a branch. */
export type Count = { placeId: string; fact: string; total: number }

export const findCounts = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query<Count>(sql`
    select c.place_id, c.fact, sum(c.count) as total
    from journey_counts c
    where c.app_id = ${appId} and c.journey_id = ${journeyId}
    group by c.place_id, c.fact`)

export const deleteCounts = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query(sql`delete from journey_counts where app_id = ${appId} and journey_id = ${journeyId}`)
