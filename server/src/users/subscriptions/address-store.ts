import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'

/** Those of the apps that hold any email address or phone number. */
export async function findAppsWithAddresses(db: Db, appIds: readonly AppId[]): Promise<Set<AppId>> {
  const found = await db.query<{ appId: AppId }>(sql`
    select k.app_id
    from unnest(${appIds}::uuid[]) as k(app_id)
    where exists (select 1 from subscriptions s where s.app_id = k.app_id and s.type in ('Email', 'SMS'))`)
  return new Set(found.map(({ appId }) => appId))
}
