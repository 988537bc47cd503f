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

/** Returns those of the addresses that must not be sent to, with the reason. */
export async function findSuppressed(
  db: Db,
  appId: AppId,
  addresses: readonly string[],
): Promise<Map<string, SuppressionReason>> {
  if (addresses.length === 0) return new Map()
  // Planned each time: a plan cached before a large import would read the whole list for every hundred mails.
  const found = await db.query<{ address: string; reason: SuppressionReason }>(
    sql`select address, reason from suppressions where app_id = ${appId} and address = any(${addresses}::text[])`,
    { prepare: false },
  )
  return new Map(found.map(({ address, reason }) => [address, reason]))
}

/**
 * Existing suppressions stay unchanged. Returns the addresses that were added. Rows are inserted in the order of their
 * addresses, so that concurrent calls cannot deadlock.
 */
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

/** An address is suppressed after this many soft bounces within the window. */
const MAX_SOFT_BOUNCES = 5
const WINDOW_MS = 30 * 86_400_000

/**
 * Records one bounce for each occurrence of an address. Returns the addresses that reached the limit and are now
 * suppressed.
 */
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
 * Returns the reason of the suppression that this call deleted. The address's earlier soft bounces are deleted too, so
 * that it starts afresh. Rows are locked in the order of `recordSoftBounces`, so that the two cannot deadlock. When the
 * result is undefined, the caller must roll back.
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

/** Newest first, starting after the cursor. An absent filter matches everything. */
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
  // Each combination of filters is a statement of its own, so that each gets a suitable plan.
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
