// Counts of what each user owns, and of the subscriptions of an app.

import { randomInt } from 'node:crypto'
import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'

export type UserCountChange = { id: UserId; aliases: number; subscriptions: number }

/**
 * The counts are columns of the row so that its check constraints enforce the limits, whatever the code above assumes.
 */
export const adjustUserCounts = (db: Db, appId: AppId, list: UserCountChange[], now: Date) =>
  db.query(sql`
  update users u
  set alias_count = u.alias_count + r.aliases, subscription_count = u.subscription_count + r.subscriptions,
    updated_at = ${now}::timestamptz
  from jsonb_to_recordset(${rows(list)}::jsonb) as r(id uuid, aliases smallint, subscriptions smallint)
  where u.app_id = ${appId} and u.id = r.id`)

/** The subscriptions of an app: all, the reachable ones, and those reachable by push. */
export type PlayerCounts = { players: number; subscribed: number; messageable: number }

export async function sumPlayerCounts(db: Db, appIds: readonly AppId[]): Promise<Map<AppId, PlayerCounts>> {
  const sums = await db.query<PlayerCounts & { appId: AppId }>(sql`
    select c.app_id, sum(c.players)::bigint as players, sum(c.subscribed)::bigint as subscribed,
      sum(c.messageable)::bigint as messageable
    from player_counts c
    where c.app_id = any(${appIds}::uuid[])
    group by c.app_id`)
  const counted = new Map(sums.map(({ appId, ...counts }) => [appId, counts]))
  return new Map(appIds.map((id) => [id, counted.get(id) ?? { players: 0, subscribed: 0, messageable: 0 }]))
}

/** Writers that pick different slots do not wait for each other. */
const COUNT_SLOTS = 8
export const pickCountSlot = () => randomInt(COUNT_SLOTS)

/**
 * Must be the last write of a transaction: its holder then waits for nothing else, so waiting for this row cannot
 * deadlock.
 */
export const adjustPlayerCounts = (db: Db, appId: AppId, by: PlayerCounts) =>
  db.query(sql`
  insert into player_counts (app_id, slot, players, subscribed, messageable)
  select a.id, ${pickCountSlot()}::smallint, ${by.players}::bigint, ${by.subscribed}::bigint, ${by.messageable}::bigint
  from apps a
  where a.id = ${appId}
  on conflict (app_id, slot) do update
  set players = player_counts.players + excluded.players, subscribed = player_counts.subscribed + excluded.subscribed,
    messageable = player_counts.messageable + excluded.messageable`)
