// All SQL on mail hosts.

import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { InboxProvider } from './providers.ts'

/** A plan cached while few hosts were known would read all of them for every hundred mails. */
const UNPREPARED = { prepare: false } as const

/**
 * Returns the providers of those domains that were ever looked up. Expired results are used too, being better than
 * none.
 */
export async function findHostProviders(db: Db, domains: readonly string[]): Promise<Map<string, InboxProvider>> {
  const found = await db.query<{ domain: string; provider: InboxProvider }>(
    sql`select h.domain, h.provider from mail_hosts h where h.domain = any(${domains}::text[]) and h.provider is not null`,
    UNPREPARED,
  )
  return new Map(found.map(({ domain, provider }) => [domain, provider]))
}

export async function findFreshHosts(db: Db, domains: readonly string[], now: Date): Promise<Set<string>> {
  const found = await db.query<{ domain: string }>(
    sql`select h.domain from mail_hosts h where h.domain = any(${domains}::text[]) and h.fresh_until > ${now}`,
    UNPREPARED,
  )
  return new Set(found.map(({ domain }) => domain))
}

export type ResolvedHost = { domain: string; provider: InboxProvider | undefined }

export const saveHosts = (db: Db, answers: readonly ResolvedHost[], freshUntil: Date) =>
  db.query(sql`
    insert into mail_hosts (domain, provider, fresh_until)
    select r.domain, r.provider, ${freshUntil}::timestamptz
    from jsonb_to_recordset(${rows(answers)}::jsonb) as r(domain text, provider text)
    order by r.domain
    on conflict (domain) do update set provider = excluded.provider, fresh_until = excluded.fresh_until`)

/** Records failed lookups. An earlier result is kept, and the lookup is not repeated before `freshUntil`. */
export const saveFailures = (db: Db, domains: readonly string[], freshUntil: Date) =>
  db.query(sql`
    insert into mail_hosts (domain, fresh_until)
    select r.domain, ${freshUntil}::timestamptz
    from unnest(${domains}::text[]) as r(domain)
    order by r.domain
    on conflict (domain) do update set fresh_until = excluded.fresh_until`)

/** Deletes some of the expired hosts. A result below `limit` means that none are left. */
export async function deleteOldHosts(db: Db, before: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from mail_hosts
    where ctid = any(array(
      select ctid from mail_hosts where fresh_until < ${before} order by fresh_until limit ${limit} for update skip locked))
    returning domain`)
  return deleted.length
}
