// SQL on what users did since a moment, for many users at once.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { EventId } from './store.ts'

export type EventQuery = { n: number; userId: UserId; name: string; since: Date; upTo?: Date | undefined }
export type MatchedEvent = { n: number; id: EventId; at: Date; properties: Record<string, unknown> }

/** At most this many of the newest events per query; the older ones are ignored. */
const MOST = 200

/** The events that match each query. The earliest requested time limits which months are read. */
export function findEventsSince(db: Db, appId: AppId, wanted: readonly EventQuery[]): Promise<MatchedEvent[]> {
  const earliest = new Date(Math.min(...wanted.map(({ since }) => since.getTime())))
  return db.query<MatchedEvent>(
    sql`
    select r.n, e.id, e.at, e.properties
    from jsonb_to_recordset(${rows(wanted)}::jsonb) as r(n integer, "userId" uuid, name text, since timestamptz,
      "upTo" timestamptz)
    cross join lateral (
      select e.id, e.at, e.properties from events e
      where e.app_id = ${appId} and e.user_id = r."userId" and e.name = r.name and e.at >= r.since and e.at >= ${earliest}
        and e.at <= coalesce(r."upTo", 'infinity')
      order by e.at desc
      limit ${MOST}) e`,
    { prepare: false },
  )
}
