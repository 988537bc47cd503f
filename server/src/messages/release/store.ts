// SQL on deliveries that settings hold.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import { QUIET_HOURS } from '../deliver/decide.ts'
import { UNPREPARED } from '../deliver/store.ts'
import { MAX_LATE_MS } from '../deliver/throttle.ts'
import type { MessageId } from '../message.ts'

/** Makes deliveries that wait for the end of quiet hours due. Returns how many. */
export async function releaseQuiet(db: Db, appId: AppId, shard: string, now: Date, limit: number): Promise<number> {
  const [released] = await db.query<{ count: number }>(
    sql`
    with released as (
      update deliveries
      set due_at = ${now}
      where app_id = ${appId} and (tableoid, ctid) in (
        select tableoid, ctid from deliveries
        where app_id = ${appId} and line = ${shard} and state = 'pending' and due_at > ${now} and reason = ${QUIET_HOURS}
        limit ${limit}
        for update)
      returning 1)
    select count(*) as count from released`,
    UNPREPARED,
  )
  return released?.count ?? 0
}

export type ThrottledRelease = { id: MessageId; expandAt: Date }

/** Messages throttled by the app's setting that have future send times. */
export const findThrottled = (db: Db, appId: AppId, now: Date) =>
  db.query<ThrottledRelease>(
    sql`
    select m.id, m.expand_at from messages m
    where m.app_id = ${appId} and m.state in ('expanding', 'sending') and m.throttled_to > ${now}
      and m.options ->> 'throttlePerMinute' is null
    order by m.id`,
    UNPREPARED,
  )

/** Frees all send times: deliveries that had one are late now, as after a pause. Returns their shards. */
export async function releaseThrottled(db: Db, appId: AppId, { id, expandAt }: ThrottledRelease, now: Date) {
  await db.query(sql`update messages m set throttled_to = ${now} where m.app_id = ${appId} and m.id = ${id}`)
  const lateSince = new Date(now.getTime() - MAX_LATE_MS - 1)
  return db.query<{ shard: string }>(
    sql`
    with released as (
      update deliveries d
      set due_at = ${lateSince}
      where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${id} and d.state = 'pending'
        and d.attempts = 0 and d.due_at > ${now} and d.reason is distinct from ${QUIET_HOURS}
      returning d.line)
    select distinct r.line as shard from released r`,
    UNPREPARED,
  )
}
