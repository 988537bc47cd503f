// Requests that count audiences share few connections. One app's counts are held up here by a lock on the events that they look at.

import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Answer, type Tenant, type TestApp, testApp } from '../../test/app.ts'
import { holdTable } from '../../test/hold-table.ts'
import { tagIs } from '../../test/segments.ts'
import { sql } from '../storage/sql.ts'

let app: TestApp
let other: Tenant
let held: { release(): Promise<void> }
beforeAll(async () => {
  app = await testApp({ countingConnections: 3 })
  other = await app.anotherTenant()
})
afterAll(() => app.close())
beforeEach(async () => {
  held = await holdTable(app.connection, 'events')
})
afterEach(() => held.release())

const HEAVY = [{ field: 'event', name: 'bought', within_days: 30 }]

const preview = (tenant: Tenant, filters: object[]): Promise<Answer> =>
  app.request(`/apps/${tenant.id}/segments/preview`, {
    body: { filters },
    headers: { authorization: `Key ${tenant.key}` },
  })

/** Statements that wait for the table. */
const countBlocked = async () => {
  const [row] = await app.db.query<{ count: number }>(sql`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%events%'`)
  return row?.count
}
const untilBlocked = (count: number) =>
  vi.waitFor(async () => expect(await countBlocked()).toBe(count), { timeout: 30_000 })

test('forty heavy previews of one app leave a connection to another; those beyond the bound are told to come back', async () => {
  const heavy = Array.from({ length: 40 }, () => preview(app.tenant, HEAVY))
  const refused: Answer[] = []
  for (const answer of heavy) void answer.then((it) => it.status === 429 && refused.push(it))
  await untilBlocked(2)
  for (let n = 0; n < 3; n++) {
    const answer = await preview(other, [tagIs('level', 'gold')])
    expect(answer).toMatchObject({ status: 200, body: { subscriber_count: 0, members: [] } })
  }
  await vi.waitFor(() => expect(refused).toHaveLength(18), { timeout: 30_000 })
  expect(refused[0]?.body).toEqual({
    errors: [{ code: 'Rate Limit Exceeded', title: expect.stringContaining('at most 2 run at once'), meta: {} }],
  })
  expect(refused[0]?.headers.get('retry-after')).toBe('5')
  expect(await countBlocked()).toBe(2)
  await held.release()
  const statuses = (await Promise.all(heavy)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(22)
})

test('when the callers leave, their statements are ended and what waited is dropped', async () => {
  const leaving = new AbortController()
  const requests = Array.from({ length: 12 }, () =>
    fetch(`${app.url}/apps/${app.tenant.id}/segments/preview`, {
      method: 'POST',
      headers: { authorization: `Key ${app.tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ filters: HEAVY }),
      signal: leaving.signal,
    }).catch((error: Error) => error.name),
  )
  await untilBlocked(2)
  leaving.abort()
  expect(new Set(await Promise.all(requests))).toEqual(new Set(['AbortError']))
  // The table is still held: had any of them gone on, it would wait for it.
  await untilBlocked(0)
  expect(await preview(app.tenant, [tagIs('level', 'gold')])).toMatchObject({ status: 200 })
  expect(await countBlocked()).toBe(0)
})
