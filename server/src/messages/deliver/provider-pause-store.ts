// All SQL on pauses of a provider for an app.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { Provider } from '../delivery.ts'

export type ProviderPause = { provider: Provider; reason: string; isMisconfigured: boolean; since: Date; until: Date }

export const findPauses = (db: Db, appId: AppId, now: Date) =>
  db.query<ProviderPause>(sql`
    select p.provider, p.reason, p.is_misconfigured, p.since, p.until
    from provider_pauses p
    where p.app_id = ${appId} and p.until > ${now}
    order by p.provider`)

export async function findPause(
  db: Db,
  appId: AppId,
  provider: Provider,
  now: Date,
): Promise<ProviderPause | undefined> {
  const [pause] = await db.query<ProviderPause>(sql`
    select p.provider, p.reason, p.is_misconfigured, p.since, p.until
    from provider_pauses p
    where p.app_id = ${appId} and p.provider = ${provider} and p.until > ${now}`)
  return pause
}

/** If there are several pauses, the longest wins. */
export const putPause = (db: Db, appId: AppId, { provider, reason, isMisconfigured, since, until }: ProviderPause) =>
  db.query(sql`
    insert into provider_pauses (app_id, provider, reason, is_misconfigured, since, until)
    select a.id, ${provider}, ${reason}, ${isMisconfigured}::boolean, ${since}::timestamptz, ${until}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict (app_id, provider) do update
    set reason = excluded.reason, is_misconfigured = excluded.is_misconfigured, until = excluded.until,
      since = case when provider_pauses.until >= excluded.since then provider_pauses.since else excluded.since end
    where provider_pauses.until <= excluded.until`)

/** Deletes pauses that new credentials may have made obsolete. */
export const deleteMisconfigured = (db: Db, appId: AppId) =>
  db.query<{ provider: Provider }>(sql`
    delete from provider_pauses p where p.app_id = ${appId} and p.is_misconfigured returning p.provider`)
