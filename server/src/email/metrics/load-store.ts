// All SQL of loading: facts that count once per email, and the domains that events are loaded for.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { InboxProvider } from '../inbox-providers/providers.ts'
import type { EmailFact } from './facts.ts'

export type UniqueFact = Exclude<EmailFact, 'opened' | 'clicked'>
export type LoadedFact = { emailId: string; fact: UniqueFact; at: Date; provider: InboxProvider }
export type FactChange = LoadedFact & { wasAt: Date | null; wasProvider: InboxProvider | null }

/**
 * Returns those facts that are new or turn out to have happened earlier, together with their previous values. Row locks
 * make concurrent loads count each fact once.
 */
export const recordFacts = (db: Db, appId: AppId, facts: readonly LoadedFact[]) =>
  db.query<FactChange>(sql`
    insert into loaded_facts (app_id, email_id, fact, at, provider)
    select a.id, r.email_id, r.fact, r.at, r.provider
    from apps a cross join unnest(${facts.map((it) => it.emailId)}::uuid[], ${facts.map((it) => it.fact)}::text[],
      ${facts.map((it) => it.at.toISOString())}::timestamptz[], ${facts.map((it) => it.provider)}::text[])
      as r(email_id, fact, at, provider)
    where a.id = ${appId}
    order by r.email_id, r.fact
    on conflict (app_id, email_id, fact) do update
    set at = excluded.at, provider = excluded.provider, was_at = loaded_facts.at, was_provider = loaded_facts.provider
    where (excluded.at, excluded.provider) < (loaded_facts.at, loaded_facts.provider)
    returning email_id, fact, at, provider, was_at, was_provider`)

/** Deletes some of the facts before this time. A result below `limit` means that none are left. */
export async function deleteOldFacts(db: Db, appId: AppId, before: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from loaded_facts
    where app_id = ${appId} and ctid = any(array(
      select ctid from loaded_facts
      where app_id = ${appId} and at < ${before}
      order by at
      limit ${limit}
      for update skip locked))
    returning fact`)
  return deleted.length
}

export type LoadedDomainState = { domain: string; state: 'active' | 'paused' }

/**
 * Returns the domains that were in another state or did not exist. A domain that was not active becomes active by
 * loaded events only, however it was activated before, and therefore sends nothing. A domain that is active only for
 * caught mail stays active for metrics when mail really leaves the server.
 */
export const setDomainStates = (db: Db, appId: AppId, states: readonly LoadedDomainState[], now: Date) =>
  db.query<LoadedDomainState>(sql`
    insert into email_domains (app_id, domain, state, activated_by, created_at, updated_at)
    select a.id, r.domain, r.state, case when r.state = 'active' then 'load' end, ${now}::timestamptz, ${now}::timestamptz
    from apps a cross join jsonb_to_recordset(${rows(states)}::jsonb) as r(domain text, state text)
    where a.id = ${appId}
    order by r.domain
    on conflict (app_id, domain) do update
    set state = excluded.state, activated_by = coalesce(excluded.activated_by, email_domains.activated_by),
      updated_at = excluded.updated_at
    where email_domains.state <> excluded.state or (excluded.state = 'active' and email_domains.activated_by = 'catch')
    returning domain, state`)
