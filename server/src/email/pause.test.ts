import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../test/app.ts'
import { virtualClock } from '../lib/clock.ts'
import { sql } from '../storage/sql.ts'
import { type ComplaintCounts, exceedsComplaintLimit, isEmailPaused, pauseForComplaints } from './pause.ts'

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

const ask = (path: string, method = 'GET') =>
  server.request(`/apps/${tenant.id}${path}`, { method, headers: { authorization: `Key ${tenant.key}` } })
const MANY = { delivered: 10_000, complained: 31 }
const pause = (counts: ComplaintCounts = MANY) =>
  pauseForComplaints(server.db, tenant.id, async () => counts, clock.now())
const isPaused = () => isEmailPaused(server.db, tenant.id)

test.each([
  [10_000, 30, false],
  [10_000, 31, true],
  [1_000, 4, true],
  [1_000, 3, false],
  [999, 9, false],
  [999, 10, true],
  [0, 10, true],
  [0, 0, false],
])('%i delivered and %i complaints: %s', (delivered, complained, expected) => {
  expect(exceedsComplaintLimit({ delivered, complained })).toBe(expected)
})

test('email is paused once by many complaints at once, with one notice, and shown', async () => {
  expect(await isPaused()).toBe(false)
  const results = await Promise.all(Array.from({ length: 10 }, () => pause()))
  expect(results.filter(Boolean)).toHaveLength(1)
  expect(await isPaused()).toBe(true)
  const { notices } = (await ask('/notices')).body
  expect(notices).toMatchObject([{ kind: 'email.paused', detail: { delivered: 10_000, complained: 31 } }])
  expect((await ask('/email/settings')).body.paused_since).toBe(clock.now().toISOString())
  expect(await pause()).toBe(false)
})

test('few complaints change nothing', async () => {
  expect(await pause({ delivered: 10_000, complained: 30 })).toBe(false)
  expect(await isPaused()).toBe(false)
})

test('it is resumed once, what waited is woken, and what was counted until then counts no more', async () => {
  const from: Date[] = []
  const count = async (since: Date) => {
    from.push(since)
    return MANY
  }
  await pauseForComplaints(server.db, tenant.id, count, clock.now())
  expect(from[0]).toEqual(new Date(clock.now().getTime() - 7 * 86_400_000))
  clock.advance({ hours: 2 })
  const resumedAt = clock.now()
  const answers = await Promise.all(Array.from({ length: 4 }, () => ask('/email/resume', 'POST')))
  for (const { status, body } of answers) expect([status, body.paused_since]).toEqual([200, null])
  expect(await isPaused()).toBe(false)
  const audit = await server.db.query<{ action: string }>(
    sql`select action from audit_log where app_id = ${tenant.id} and action like 'email.%' order by at`,
  )
  expect(audit.map(({ action }) => action)).toEqual(['email.pause', 'email.resume'])
  const jobs = await server.db.query(sql`
    select name from jobs where app_id = ${tenant.id} and name = 'messages.wake'`)
  expect(jobs).toHaveLength(1)

  clock.advance({ days: 3 })
  expect(await pauseForComplaints(server.db, tenant.id, count, clock.now())).toBe(true)
  expect(from[1]).toEqual(resumedAt)
  await ask('/email/resume', 'POST')
  clock.advance({ days: 8 })
  await pauseForComplaints(server.db, tenant.id, count, clock.now())
  expect(from[2]).toEqual(new Date(clock.now().getTime() - 7 * 86_400_000))
})

test('what was counted before somebody resumed does not pause it again', async () => {
  await pause()
  await ask('/email/resume', 'POST')
  clock.advance({ minutes: 1 })
  const paused = await pauseForComplaints(
    server.db,
    tenant.id,
    async () => {
      // Meanwhile others pause and resume it.
      await pause()
      clock.advance({ minutes: 1 })
      await ask('/email/resume', 'POST')
      return MANY
    },
    clock.now(),
  )
  expect(paused).toBe(false)
})
