// Many who get mail, and what must be true of the counts of it by inbox provider when it is over.

import { expect } from 'vitest'
import type { ProviderMetrics } from '../../src/email/metrics/schema.ts'
import { sql } from '../../src/storage/sql.ts'
import type { Recipient, Rig } from './rig.ts'

/** Where mailboxes are; their names alone say of which inbox provider they are, so that nobody is asked for DNS. */
const MAILBOXES = ['gmail.com', 'yahoo.com', 'outlook.com', 'icloud.com', 'gmx.de']

/** Straight into the tables: by requests they would take longer than all that is tested with them. */
export async function subscribeMailboxes({ database: { db }, keys }: Rig, count: number): Promise<Recipient[]> {
  await db.query(sql`
    insert into users (app_id, id, subscription_count, first_active, created_at, updated_at)
    select ${keys.appId}::uuid, gen_random_uuid(), 1, now(), now(), now() from generate_series(1, ${count}::integer)`)
  const subscribed = await db.query<Recipient>(sql`
    insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, created_at, updated_at)
    select ${keys.appId}::uuid, gen_random_uuid(), u.id, 'Email', 'Email', u.token, sha256(convert_to(u.token, 'UTF8')), now(), now()
    from (
      select u.id, 'person-' || n || '@' || (${MAILBOXES}::text[])[1 + n % cardinality(${MAILBOXES}::text[])] as token
      from (select u.id, row_number() over () as n from users u where u.app_id = ${keys.appId}) u) u
    returning id, token`)
  await db.query(sql`
    insert into player_counts (app_id, slot, players, subscribed) values (${keys.appId}::uuid, 0, ${count}, ${count})`)
  await db.query(sql`analyze users, subscriptions`)
  return subscribed
}

type Count = { provider: string; sent: number; delivered: number }

/** What the interface tells of the domain is what its deliveries are, and nothing beside. */
export async function expectMetrics({ database: { db }, keys, ask, nodes }: Rig, domain: string): Promise<void> {
  const present = await db.query<Count>(sql`
    select d.inbox_provider as provider, count(*) as sent, count(d.delivered_at) as delivered
    from deliveries d
    where d.app_id = ${keys.appId} and d.sending_domain = ${domain} and d.state = 'sent'
    group by d.inbox_provider`)
  const hourAhead = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
  const window = new URLSearchParams({ domain, start: hourAhead(-24), end: hourAhead(1) })
  const path = `/apps/${keys.appId}/email_analytics/provider_metrics?${window}`
  const { status, body } = await ask(nodes[0]?.url ?? '', 'GET', path)
  expect(status).toBe(200)
  const told = (body.providers as ProviderMetrics[]).map(({ provider, metrics }) => {
    const { sent, delivered, ...others } = metrics
    expect(Object.values(others).every((count) => count === 0)).toBe(true)
    return { provider, sent, delivered }
  })
  const inOrder = (list: Count[]) => list.toSorted((a, b) => (a.provider < b.provider ? -1 : 1))
  expect(present.length).toBe(MAILBOXES.length)
  expect(inOrder(told)).toEqual(inOrder(present))
}
