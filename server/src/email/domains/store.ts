// All SQL on email_domains.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { EmailDomain } from './domain.ts'

const columns = sql`domain, state, activated_by, return_path_host, tracking_host, dkim_keys, checks, checked_at, created_at,
  updated_at`

export const findDomains = (db: Db, appId: AppId) =>
  db.query<EmailDomain>(sql`select ${columns} from email_domains where app_id = ${appId} order by domain`)

export async function findDomain(db: Db, appId: AppId, domain: string): Promise<EmailDomain | undefined> {
  const [found] = await db.query<EmailDomain>(sql`
    select ${columns} from email_domains where app_id = ${appId} and domain = ${domain}`)
  return found
}

export async function lockDomain(db: Db, appId: AppId, domain: string): Promise<EmailDomain | undefined> {
  const [found] = await db.query<EmailDomain>(sql`
    select ${columns} from email_domains where app_id = ${appId} and domain = ${domain} for update`)
  return found
}

/** The caller holds the lock of the app, so that the count cannot change. */
export async function countDomains(db: Db, appId: AppId): Promise<number> {
  const [found] = await db.query<{ count: number }>(sql`
    select count(*)::integer as count from email_domains where app_id = ${appId}`)
  return found?.count ?? 0
}

/** Writes the whole row: a new domain, or one that was read under its lock. */
export const writeDomain = (db: Db, appId: AppId, it: EmailDomain) =>
  db.query(sql`
    insert into email_domains (app_id, domain, state, activated_by, return_path_host, tracking_host, dkim_keys, checks,
      checked_at, created_at, updated_at)
    select a.id, ${it.domain}, ${it.state}, ${it.activatedBy}::text, ${it.returnPathHost}::text, ${it.trackingHost}::text,
      ${JSON.stringify(it.dkimKeys)}::jsonb, ${JSON.stringify(it.checks)}::jsonb, ${it.checkedAt}::timestamptz,
      ${it.createdAt}::timestamptz, ${it.updatedAt}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict (app_id, domain) do update
    set state = excluded.state, activated_by = excluded.activated_by, return_path_host = excluded.return_path_host,
      tracking_host = excluded.tracking_host, dkim_keys = excluded.dkim_keys, checks = excluded.checks,
      checked_at = excluded.checked_at, updated_at = excluded.updated_at`)

export async function deleteDomain(db: Db, appId: AppId, domain: string): Promise<boolean> {
  const deleted = await db.query(sql`
    delete from email_domains where app_id = ${appId} and domain = ${domain} returning domain`)
  return deleted.length > 0
}

/** The domains whose records are checked daily, of all apps. */
export const findCheckedDomainsAcrossApps = (db: Db) =>
  db.query<{ appId: AppId; domain: string }>(sql`
    select app_id, domain from email_domains where state = 'active' and activated_by = 'check' order by app_id, domain`)

/** The keys of all apps, to check that the server's secret key opens them. */
export const findKeysAcrossApps = (db: Db) =>
  db.query<{ appId: AppId } & Pick<EmailDomain, 'domain' | 'dkimKeys'>>(sql`
    select app_id, domain, dkim_keys from email_domains where dkim_keys <> '[]' order by app_id, domain`)
