// All SQL on suppressions and soft_bounces. Addresses are in lower case.

import type { AppId, KeyId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'

export const suppressionReasons = [
  'hard_bounce',
  'soft_bounces',
  'complaint',
  'unsubscribed',
  'manual',
  'imported',
] as const
export type SuppressionReason = (typeof suppressionReasons)[number]
export type Suppression = { address: string; reason: SuppressionReason; detail?: string | undefined }

/** Of these addresses, those that nothing is sent to, and why. */
export async function findSuppressed(
  db: Db,
  appId: AppId,
  addresses: readonly string[],
): Promise<Map<string, SuppressionReason>> {
  if (addresses.length === 0) return new Map()
  // Planned each time: a plan from before a large import would read the whole list for every hundred mails.
  const found = await db.query<{ address: string; reason: SuppressionReason }>(
    sql`select address, reason from suppressions where app_id = ${appId} and address = any(${addresses}::text[])`,
    { prepare: false },
  )
  return new Map(found.map(({ address, reason }) => [address, reason]))
}

/** One that is there stays as it is. Answers those that were added by this. In their order, so that nobody waits in a circle. */
export async function suppressAddresses(
  db: Db,
  appId: AppId,
  list: readonly Suppression[],
  now: Date,
  createdBy: KeyId | null = null,
): Promise<string[]> {
  if (list.length === 0) return []
  const added = await db.query<{ address: string }>(sql`
    insert into suppressions (app_id, address, reason, detail, created_at, created_by)
    select a.id, r.address, r.reason, r.detail, ${now}::timestamptz, ${createdBy}::uuid
    from apps a cross join jsonb_to_recordset(${rows(list)}::jsonb) as r(address text, reason text, detail text)
    where a.id = ${appId}
    order by r.address
    on conflict (app_id, address) do nothing
    returning address`)
  return added.map(({ address }) => address)
}

/** So many soft bounces within so much time suppress an address. */
const MAX_SOFT_BOUNCES = 5
const WINDOW_MS = 30 * 86_400_000

/** One for each time that an address is given. Answers those that have now had enough of them, and are suppressed by this. */
export async function recordSoftBounces(
  db: Db,
  appId: AppId,
  addresses: readonly string[],
  now: Date,
): Promise<string[]> {
  if (addresses.length === 0) return []
  const since = new Date(now.getTime() - WINDOW_MS)
  return db.transaction(async (db) => {
    const noted = await db.query<{ address: string; isEnough: boolean }>(sql`
      insert into soft_bounces (app_id, address, times, last_at)
      select a.id, r.address, array_fill(${now}::timestamptz, array[r.times]), ${now}::timestamptz
      from apps a cross join (
        select address, least(count(*), ${MAX_SOFT_BOUNCES}::integer)::integer as times
        from unnest(${addresses}::text[]) as given(address) group by address) as r
      where a.id = ${appId}
      order by r.address
      on conflict (app_id, address) do update
      set times = (excluded.times || soft_bounces.times)[1:${MAX_SOFT_BOUNCES}::integer], last_at = excluded.last_at
      returning address, coalesce(times[${MAX_SOFT_BOUNCES}::integer] > ${since}::timestamptz, false) as is_enough`)
    const full = noted.filter(({ isEnough }) => isEnough).map(({ address }) => address)
    await deleteSoftBounces(db, appId, full)
    const reason = 'soft_bounces' as const
    return suppressAddresses(
      db,
      appId,
      full.map((address) => ({ address, reason })),
      now,
    )
  })
}

const deleteSoftBounces = (db: Db, appId: AppId, addresses: readonly string[]) =>
  db.query(sql`delete from soft_bounces where app_id = ${appId} and address = any(${addresses}::text[])`)

export async function deleteOldSoftBounces(db: Db, appId: AppId, now: Date): Promise<void> {
  await db.query(sql`
    delete from soft_bounces where app_id = ${appId} and last_at < ${new Date(now.getTime() - WINDOW_MS)}`)
}

/**
 * The reason of the one that was deleted by this very call. It begins anew: what it bounced before counts no more. In the order of
 * `recordSoftBounces`, so that the two do not wait in a circle; where there was none, nothing may be left of this.
 */
export async function deleteSuppression(db: Db, appId: AppId, address: string): Promise<SuppressionReason | undefined> {
  await deleteSoftBounces(db, appId, [address])
  const [deleted] = await db.query<{ reason: SuppressionReason }>(sql`
    delete from suppressions where app_id = ${appId} and address = ${address} returning reason`)
  return deleted?.reason
}

export type SuppressionRow = {
  address: string
  reason: SuppressionReason
  detail: string | null
  createdAt: Date
  createdBy: KeyId | null
}
export type SuppressionCursor = { at: Date; address: string }

/** Newest first, after a place. An absent filter lets everything through. */
export function listSuppressions(
  db: Db,
  appId: AppId,
  search: {
    address?: string | undefined
    reason?: SuppressionReason | undefined
    after?: SuppressionCursor | undefined
    limit: number
  },
): Promise<SuppressionRow[]> {
  const { address, reason, after, limit } = search
  // Texts of their own, so that each is planned for what it looks for.
  const ofAddress = address === undefined ? sql`` : sql`and address = ${address}`
  const ofReason = reason === undefined ? sql`` : sql`and reason = ${reason}`
  const older =
    after === undefined ? sql`` : sql`and (created_at, address) < (${after.at}::timestamptz, ${after.address}::text)`
  return db.query<SuppressionRow>(sql`
    select address, reason, detail, created_at, created_by
    from suppressions
    where app_id = ${appId} ${ofAddress} ${ofReason} ${older}
    order by created_at desc, address desc
    limit ${limit}`)
}
