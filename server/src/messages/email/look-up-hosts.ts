// Looks up which inbox providers host the mailboxes of candidates. This happens before they become deliveries, because
// it takes DNS queries.

import type { Db } from '../../storage/db.ts'
import { type Sql, sql } from '../../storage/sql.ts'
import type { ChannelContext } from '../engine/channel.ts'
import type { EmailPort } from './port.ts'

export async function lookUpCandidateHosts(
  { db, log }: Pick<ChannelContext, 'db' | 'log'>,
  email: Pick<EmailPort, 'lookUpMailHosts'>,
  candidates: Sql,
): Promise<void> {
  const rows = await findEmailDomains(db, candidates)
  try {
    await email.lookUpMailHosts(rows.map(({ domain }) => domain))
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'Could not look up mail hosts; sending continues without them')
  }
}

export const emailDomainsStatement = (candidates: Sql): Sql => sql`
  select distinct lower(substring(c.token from '[^@]+$')) as domain
  from (${candidates}) c
  where c.type = 'Email' and c.token is not null`

const findEmailDomains = (db: Db, candidates: Sql) =>
  db.query<{ domain: string }>(emailDomainsStatement(candidates), { prepare: false })
