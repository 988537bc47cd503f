// All SQL on email counts.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, type Sql, sql } from '../../storage/sql.ts'
import type { EmailCount, EmailFact } from './facts.ts'
import type { MetricsWindow, TimeUnit, WindowCover } from './time-unit.ts'

const facts = sql`sent, delivered, opened, clicked, unique_opened, unique_clicked, failed, bounced, complained`

export type CountRow = EmailCount & { unit: TimeUnit }

/** Writes instants and sums in one statement, so that no reader sees one without the other. */
export const addCounts = (db: Db, appId: AppId, part: number, counts: readonly CountRow[]) =>
  db.query(sql`
    with given as materialized (
      select r.unit, r.domain, r.at, r.provider, coalesce(r.sent, 0) as sent, coalesce(r.delivered, 0) as delivered,
        coalesce(r.opened, 0) as opened, coalesce(r.clicked, 0) as clicked, coalesce(r.unique_opened, 0) as unique_opened,
        coalesce(r.unique_clicked, 0) as unique_clicked, coalesce(r.failed, 0) as failed,
        coalesce(r.bounced, 0) as bounced, coalesce(r.complained, 0) as complained
      from jsonb_to_recordset(${rows(counts)}::jsonb) as r(unit text, domain text, at timestamptz, provider text,
        sent bigint, delivered bigint, opened bigint, clicked bigint, unique_opened bigint, unique_clicked bigint,
        failed bigint, bounced bigint, complained bigint)
    ), instants as (
      insert into email_instants (app_id, domain, at, provider, part, ${facts})
      select a.id, g.domain, g.at, g.provider, ${part}::smallint, ${facts}
      from apps a cross join given g
      where a.id = ${appId} and g.unit = 'instant'
      order by g.domain, g.at, g.provider
      on conflict (app_id, domain, at, provider, part) do update
      set sent = email_instants.sent + excluded.sent, delivered = email_instants.delivered + excluded.delivered,
        opened = email_instants.opened + excluded.opened, clicked = email_instants.clicked + excluded.clicked,
        unique_opened = email_instants.unique_opened + excluded.unique_opened,
        unique_clicked = email_instants.unique_clicked + excluded.unique_clicked,
        failed = email_instants.failed + excluded.failed, bounced = email_instants.bounced + excluded.bounced,
        complained = email_instants.complained + excluded.complained
    )
    insert into email_rollups (app_id, domain, unit, starts_at, provider, part, ${facts})
    select a.id, g.domain, g.unit, g.at, g.provider, ${part}::smallint, ${facts}
    from apps a cross join given g
    where a.id = ${appId} and g.unit <> 'instant'
    order by g.domain, g.unit, g.at, g.provider
    on conflict (app_id, domain, unit, starts_at, provider, part) do update
    set sent = email_rollups.sent + excluded.sent, delivered = email_rollups.delivered + excluded.delivered,
      opened = email_rollups.opened + excluded.opened, clicked = email_rollups.clicked + excluded.clicked,
      unique_opened = email_rollups.unique_opened + excluded.unique_opened,
      unique_clicked = email_rollups.unique_clicked + excluded.unique_clicked,
      failed = email_rollups.failed + excluded.failed, bounced = email_rollups.bounced + excluded.bounced,
      complained = email_rollups.complained + excluded.complained`)

const inRollups = (appId: AppId, unit: TimeUnit, { from, until }: MetricsWindow) => sql`
  from email_rollups r
  where r.app_id = ${appId} and r.domain = any((select c.domains from chosen c)::text[])
    and r.unit = ${unit} and r.starts_at >= ${from} and r.starts_at < ${until}`

const inInstants = (appId: AppId, { from, until }: MetricsWindow) => sql`
  from email_instants i
  where i.app_id = ${appId} and i.domain = any((select c.domains from chosen c)::text[])
    and i.at >= ${from} and i.at < ${until}`

/**
 * Every window has the same number of branches, so that all share one prepared statement. Empty branches cost next to
 * nothing.
 */
const countedSql = (appId: AppId, domains: Sql, cover: WindowCover) => sql`
  with chosen as materialized (
    select array(${domains}) as domains
  ), counted as (
    select provider, ${facts} ${inRollups(appId, 'month', cover.month[0])}
    union all select provider, ${facts} ${inRollups(appId, 'day', cover.day[0])}
    union all select provider, ${facts} ${inRollups(appId, 'day', cover.day[1])}
    union all select provider, ${facts} ${inRollups(appId, 'hour', cover.hour[0])}
    union all select provider, ${facts} ${inRollups(appId, 'hour', cover.hour[1])}
    union all select provider, ${facts} ${inInstants(appId, cover.instant[0])}
    union all select provider, ${facts} ${inInstants(appId, cover.instant[1])}
  )`

/** Sums are text, because 64-bit integers exceed the range in which numbers are exact. */
export type ProviderSums = { provider: string } & Record<Camel<EmailFact>, string>
type Camel<Text extends string> = Text extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Tail>}` : Text

/**
 * Sums of one domain; empty unless it exists and is active. A domain that is active only for caught mail counts as
 * active while mail is caught.
 */
export const sumByProvider = (db: Db, appId: AppId, domain: string, cover: WindowCover, isCaught: boolean) => {
  const active = sql`
    select d.domain from email_domains d
    where d.app_id = ${appId} and d.domain = ${domain} and d.state = 'active'
      and (${isCaught}::boolean or d.activated_by is distinct from 'catch')`
  return db.query<ProviderSums>(sql`
    ${countedSql(appId, active, cover)}
    select n.provider, sum(n.sent)::text as sent, sum(n.delivered)::text as delivered, sum(n.opened)::text as opened,
      sum(n.clicked)::text as clicked, sum(n.unique_opened)::text as unique_opened,
      sum(n.unique_clicked)::text as unique_clicked, sum(n.failed)::text as failed, sum(n.bounced)::text as bounced,
      sum(n.complained)::text as complained
    from counted n
    group by n.provider`)
}

export type EmailTotals = { sent: number; delivered: number; bounced: number; complained: number }

/** Sums of all domains of the app. */
export async function sumOfApp(db: Db, appId: AppId, cover: WindowCover): Promise<EmailTotals> {
  const all = sql`select d.domain from email_domains d where d.app_id = ${appId}`
  const [totals] = await db.query<EmailTotals>(sql`
    ${countedSql(appId, all, cover)}
    select coalesce(sum(n.sent), 0) as sent, coalesce(sum(n.delivered), 0) as delivered,
      coalesce(sum(n.bounced), 0) as bounced, coalesce(sum(n.complained), 0) as complained
    from counted n`)
  return totals as EmailTotals
}

/** Deletes some of the sums before this time. A result below `limit` means that none are left. */
export async function deleteOldRollups(db: Db, appId: AppId, before: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from email_rollups
    where app_id = ${appId} and ctid = any(array(
      select ctid from email_rollups
      where app_id = ${appId} and starts_at < ${before}
      order by starts_at
      limit ${limit}
      for update skip locked))
    returning unit`)
  return deleted.length
}
