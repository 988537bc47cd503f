import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../../test/app.ts'
import { anId, told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'
import { deleteExpiredSoftBounces } from './delete-expired.ts'
import { parseAddressList } from './parse-address-list.ts'
import { findSuppressed, recordSoftBounces, suppressAddresses } from './store.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let tenant: Tenant
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(() => server.close())
beforeEach(async () => {
  clock.advance({ hours: 1 })
  tenant = await server.anotherTenant()
})

const ask = (path: string, more: { method?: string; body?: object } = {}) =>
  server.request(`/apps/${tenant.id}/email/suppressions${path}`, {
    ...more,
    headers: { authorization: `Key ${tenant.key}` },
  })
const add = (body: object) => ask('', { body })
const list = async (query = '') => (await ask(query)).body

describe('the list', () => {
  test('takes addresses by hand, in any case, once', async () => {
    expect(told(await add({ address: 'Ann@Example.com', detail: 'asked us by phone' }))).toEqual({
      status: 200,
      body: { added: 1 },
    })
    expect((await add({ addresses: ['ann@example.com', 'bob@example.com', 'BOB@example.com'] })).body).toEqual({
      added: 1,
    })
    const { suppressions, next_cursor } = await list()
    expect(next_cursor).toBeNull()
    const common = { created_at: clock.now().toISOString(), created_by: anId() }
    expect(suppressions).toEqual([
      { address: 'bob@example.com', reason: 'imported', detail: null, ...common },
      { address: 'ann@example.com', reason: 'manual', detail: 'asked us by phone', ...common },
    ])
    const audit = await server.db.query(
      sql`select action, detail from audit_log where app_id = ${tenant.id} and target_type = 'suppression'
        order by detail ->> 'address'`,
    )
    expect(audit).toEqual([
      { action: 'suppression.add', detail: { address: 'ann@example.com', reason: 'manual' } },
      { action: 'suppression.add', detail: { address: 'bob@example.com', reason: 'imported' } },
    ])
  })

  test('is read page by page, newest first, and searched', async () => {
    for (let n = 0; n < 3; n++) {
      await add({ addresses: [`a${n}@example.com`, `b${n}@example.com`] })
      clock.advance({ minutes: 1 })
    }
    await add({ address: 'hand@example.com' })
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page = await list(`?limit=2${cursor && `&cursor=${cursor}`}`)
      expect(page.suppressions.length).toBeLessThanOrEqual(2)
      seen.push(...page.suppressions.map(({ address }: { address: string }) => address))
      cursor = page.next_cursor
    }
    expect(seen).toEqual(['hand', 'b2', 'a2', 'b1', 'a1', 'b0', 'a0'].map((it) => `${it}@example.com`))
    const found = await list('?address=A1@example.com')
    expect(found.suppressions).toMatchObject([{ address: 'a1@example.com' }])
    expect((await list('?reason=manual')).suppressions).toHaveLength(1)
  })

  test('is left again, once', async () => {
    await add({ address: 'odd+tag@example.com' })
    const remove = () => ask(`/${encodeURIComponent('Odd+Tag@example.com')}`, { method: 'DELETE' })
    expect(told(await remove())).toEqual({ status: 200, body: { success: true } })
    expect(told(await remove())).toEqual({ status: 404, body: { errors: ['The address is not suppressed'] } })
    expect((await list()).suppressions).toEqual([])
  })

  test.each([
    [{}, 'Give either address or addresses'],
    [{ address: 'a@b.example', addresses: ['a@b.example'] }, 'Give either address or addresses'],
    [{ address: 'nobody' }, 'address must be an email address'],
    [{ addresses: ['a@b.example', 'x'] }, 'addresses[1] must be an email address'],
    [{ address: 'a@b.example', reason: 'complaint' }, 'reason must be "manual", "imported" or null'],
    [{ addresses: [] }, 'addresses must not be empty'],
  ])('%j is refused, and changes nothing', async (body, error) => {
    const answer = await add(body)
    expect([answer.status, answer.body.errors]).toEqual([400, [expect.any(String)]])
    expect(answer.body.errors[0]).toBe(error)
    expect((await list()).suppressions).toEqual([])
  })

  test('refuses more than 1,000 at once, and cursors of its own making alone', async () => {
    const addresses = Array.from({ length: 1_001 }, (_, n) => `n${n}@example.com`)
    expect((await add({ addresses })).status).toBe(400)
    expect((await add({ addresses: addresses.slice(1) })).body).toEqual({ added: 1_000 })
    expect((await ask('?cursor=nonsense')).status).toBe(400)
    expect((await ask(`?cursor=${Buffer.from('soon a@b.example').toString('base64url')}`)).status).toBe(400)
    expect((await ask('?limit=1001')).status).toBe(400)
  })
})

describe('what the server adds', () => {
  const suppressAll = (addresses: string[], reason: 'complaint' | 'hard_bounce') =>
    suppressAddresses(
      server.db,
      tenant.id,
      addresses.map((address) => ({ address, reason })),
      clock.now(),
    )

  test('is added once by many at once, whatever their order, and the first reason stays', async () => {
    const addresses = Array.from({ length: 3_000 }, (_, n) => `p${n}@example.com`)
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        suppressAll(n % 2 ? addresses : [...addresses].reverse(), n % 2 ? 'complaint' : 'hard_bounce'),
      ),
    )
    expect(results.flat().sort()).toEqual([...addresses].sort())
    const found = await findSuppressed(server.db, tenant.id, [...addresses, 'other@example.com'])
    expect(found.size).toBe(3_000)
    expect(new Set(found.values()).size).toBe(1)
    await suppressAll(['p0@example.com'], 'complaint')
    expect((await findSuppressed(server.db, tenant.id, ['p0@example.com'])).get('p0@example.com')).toBe(
      found.get('p0@example.com'),
    )
  })

  test('is another app’s business alone', async () => {
    await suppressAll(['x@example.com'], 'complaint')
    const other = await server.anotherTenant()
    expect(await findSuppressed(server.db, other.id, ['x@example.com'])).toEqual(new Map())
    expect(await findSuppressed(server.db, tenant.id, [])).toEqual(new Map())
  })

  test('counts soft bounces: the fifth within 30 days suppresses', async () => {
    const bounce = (...addresses: string[]) => recordSoftBounces(server.db, tenant.id, addresses, clock.now())
    for (let n = 0; n < 4; n++) {
      expect(await bounce('soft@example.com')).toEqual([])
      clock.advance({ days: 10 })
    }
    // Days 0, 10, 20, 30: on day 40 the first lies too far back.
    expect(await bounce('soft@example.com')).toEqual([])
    clock.advance({ days: 1 })
    // The newest five are now those of days 10, 20, 30, 40, 41.
    expect(await bounce('soft@example.com')).toEqual([])
    expect(await bounce('soft@example.com', 'once@example.com')).toEqual(['soft@example.com'])
    expect(await findSuppressed(server.db, tenant.id, ['soft@example.com', 'once@example.com'])).toEqual(
      new Map([['soft@example.com', 'soft_bounces']]),
    )
    // Taken off the list, it begins anew.
    await ask('/soft@example.com', { method: 'DELETE' })
    expect(await bounce('soft@example.com')).toEqual([])
  })

  test('counts them exactly when they come at once', async () => {
    const results = await Promise.all(
      Array.from({ length: 5 }, () =>
        recordSoftBounces(server.db, tenant.id, ['a@example.com', 'b@example.com'], clock.now()),
      ),
    )
    expect(results.flat().sort()).toEqual(['a@example.com', 'b@example.com'])
  })

  test('counts one that is given more than once as often', async () => {
    const bounce = (count: number) =>
      recordSoftBounces(server.db, tenant.id, Array(count).fill('often@example.com'), clock.now())
    expect([await bounce(2), await bounce(2), await bounce(1)]).toEqual([[], [], ['often@example.com']])
    expect(await bounce(7)).toEqual([])
  })

  test('of which there is none is not found, and what it bounced still counts', async () => {
    const bounce = () => recordSoftBounces(server.db, tenant.id, ['four@example.com'], clock.now())
    for (let n = 0; n < 4; n++) await bounce()
    expect((await ask('/four@example.com', { method: 'DELETE' })).status).toBe(404)
    expect(await bounce()).toEqual(['four@example.com'])
  })

  test('forgets those that count no more', async () => {
    await recordSoftBounces(server.db, tenant.id, ['old@example.com'], clock.now())
    clock.advance({ days: 31 })
    await recordSoftBounces(server.db, tenant.id, ['new@example.com'], clock.now())
    await deleteExpiredSoftBounces(server.db, clock.now())
    expect(await server.db.query(sql`select address from soft_bounces where app_id = ${tenant.id}`)).toEqual([
      { address: 'new@example.com' },
    ])
  })
})

describe('a file', () => {
  test('is one address a line, or the first column of a table', () => {
    expect(parseAddressList('\ufeffEmail,Reason\r\nA@example.com,x\n"b@example.com";y\n\na@example.com\n')).toEqual([
      'a@example.com',
      'b@example.com',
    ])
    expect(parseAddressList('')).toEqual([])
  })

  test('with a line that is no address is refused as a whole', () => {
    expect(() => parseAddressList('a@example.com\nnobody\n@x\n')).toThrow(
      'line 2, 3: no email address; nothing was imported',
    )
    expect(() => parseAddressList('a@b@c\na@example.com')).toThrow('line 1: no email address')
  })
})

test('looking for suppressed addresses does not read the whole list after a large import', async () => {
  const addresses = Array.from({ length: 100 }, (_, n) => `somebody${n}@quick.example`)
  await server.db.query({ text: 'analyze suppressions', values: [] })
  // In one transaction, so that all of it uses the same connection and the plans that it keeps.
  const readRows = await server.db.transaction(async (db) => {
    for (let n = 0; n < 80; n++) await findSuppressed(db, server.tenant.id, addresses)
    await db.query(sql`
      insert into suppressions (app_id, address, reason, created_at)
      select ${server.tenant.id}, n || '@import.example', 'imported', '2030-01-01' from generate_series(1, 20000) n`)
    // A plan kept from before the import would read the whole list; PostgreSQL itself analyzes after an import.
    const kept = await db.query(
      sql`select 1 from pg_prepared_statements where statement like ${'%from suppressions where%'}`,
    )
    expect(kept).toEqual([])
    await db.query(sql`analyze suppressions`)
    const readSoFar = async () => {
      const [row] = await db.query<{ n: number }>(sql`
        select seq_tup_read + idx_tup_fetch as n from pg_stat_xact_user_tables where relname = 'suppressions'`)
      return row?.n ?? 0
    }
    const before = await readSoFar()
    await findSuppressed(db, server.tenant.id, addresses)
    return (await readSoFar()) - before
  })
  expect(readRows).toBeLessThan(1_000)
})
