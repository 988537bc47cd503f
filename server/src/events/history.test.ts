import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { history, record, type Seen } from '../../test/events.ts'
import { aName, aUser, NOBODY, problem, told, USER_NOT_FOUND } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { Sql } from '../storage/sql.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const view = (path: string, query = '') => app.app(`${path}/custom_events${query}`)

/** All pages, by following the cursors. */
async function pages(path: string, query: string): Promise<Seen[][]> {
  const found: Seen[][] = []
  for (let cursor = ''; ; ) {
    const { status, body } = await view(path, `?${query}${cursor && `&cursor=${cursor}`}`)
    expect(status).toBe(200)
    found.push(body.events)
    if (body.next_cursor === null) return found
    cursor = body.next_cursor
  }
}

describe("a user's events", () => {
  test('come newest first, over months, each once, whatever the page', async () => {
    const user = await aUser(app)
    const hours = Array.from({ length: 25 }, (_, n) => n * 100)
    await record(
      app,
      hours.map((hour) => ({
        name: hour % 200 === 0 ? 'even' : 'odd',
        external_id: user.externalId,
        timestamp: new Date(clock.now().getTime() - hour * 3_600_000).toISOString(),
        properties: { hour },
      })),
    )
    const all = await history(app, user)
    expect(all.map(({ properties }) => properties)).toEqual(hours.map((hour) => ({ hour })))
    expect(new Set(all.map(({ timestamp }) => timestamp.slice(0, 7))).size).toBeGreaterThan(3)
    const byTen = await pages(user.path, 'limit=10')
    expect(byTen.map(({ length }) => length)).toEqual([10, 10, 5])
    expect(byTen.flat()).toEqual(all)
    expect((await pages(user.path, 'limit=25')).map(({ length }) => length)).toEqual([25])
    expect((await pages(user.path, 'limit=4&name=odd')).flat()).toEqual(all.filter(({ name }) => name === 'odd'))
    expect(await history(app, user, 'name=none')).toEqual([])
  })

  test('of one moment keep an order, so that pages neither repeat nor skip any', async () => {
    const user = await aUser(app)
    await record(
      app,
      Array.from({ length: 20 }, (_, n) => ({ name: `n${n}`, external_id: user.externalId })),
    )
    const seen = (await pages(user.path, 'limit=3')).flat().map(({ name }) => name)
    expect(seen).toHaveLength(20)
    expect(new Set(seen).size).toBe(20)
  })

  test('that come while pages are read do not move those that are left', async () => {
    const user = await aUser(app)
    const at = (day: number) => ({ external_id: user.externalId, timestamp: `2030-03-0${day}T00:00:00Z` })
    await record(app, [at(1), at(2), at(3)])
    const first = (await view(user.path, '?limit=1')).body
    await record(app, [at(4), at(5)])
    const rest = await history(app, user, `limit=9&cursor=${first.next_cursor}`)
    expect(rest.map(({ timestamp }) => timestamp.slice(0, 10))).toEqual(['2030-03-02', '2030-03-01'])
  })

  test('come 50 at a time unless told', async () => {
    const user = await aUser(app)
    await record(
      app,
      Array.from({ length: 51 }, () => ({ external_id: user.externalId })),
    )
    const { body } = await view(user.path)
    expect(body.events).toHaveLength(50)
    expect((await view(user.path, `?cursor=${body.next_cursor}`)).body).toMatchObject({
      events: [{}],
      next_cursor: null,
    })
  })

  test('are found by any alias, and none of another user or app are among them', async () => {
    const crm = aName()
    const user = await aUser(app, { identity: { crm } })
    const other = await aUser(app)
    await record(app, [{ name: 'mine', external_id: user.externalId }, { external_id: other.externalId }])
    for (const path of [user.path, `/users/by/external_id/${user.externalId}`, `/users/by/crm/${crm}`])
      expect((await view(path)).body.events).toMatchObject([{ name: 'mine' }])
    const tenant = await app.anotherTenant()
    const answer = await app.request(`/apps/${tenant.id}${user.path}/custom_events`, {
      headers: { authorization: `Key ${tenant.key}` },
    })
    expect(told(answer)).toEqual(USER_NOT_FOUND)
  })

  test('of nobody are a 404', async () => {
    expect(told(await view(`/users/by/onesignal_id/${NOBODY}`))).toEqual(USER_NOT_FOUND)
    expect(told(await view('/users/by/onesignal_id/x'))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { onesignal_id: 'x' }),
    )
  })

  test.each([
    ['limit=0', 'limit must be at least 1', 'limit'],
    ['limit=301', 'limit must be at most 300', 'limit'],
    ['limit=x', 'limit must be an integer', 'limit'],
    ['name=', 'name must not be empty', 'name'],
    [`name=${'x'.repeat(129)}`, 'name must have at most 128 characters', 'name'],
    ['cursor=', 'cursor must be the next_cursor of a page before', 'cursor'],
    ['cursor=x', 'cursor must be the next_cursor of a page before', 'cursor'],
    [
      `cursor=${Buffer.from('1e99 x').toString('base64url')}`,
      'cursor must be the next_cursor of a page before',
      'cursor',
    ],
    [
      `cursor=${Buffer.from(`9999999999999999 ${NOBODY}`).toString('base64url')}`,
      'cursor must be the next_cursor of a page before',
      'cursor',
    ],
    [
      `cursor=${Buffer.from(`1900000000000 ${NOBODY}'`).toString('base64url')}`,
      'cursor must be the next_cursor of a page before',
      'cursor',
    ],
  ])('asked for with %s are a 400', async (query, title, field) => {
    const user = await aUser(app)
    expect(told(await view(user.path, `?${query}`))).toEqual(problem(400, 'request-0', title, { field }))
  })

  test('are read in the order of an index, and only in the months that are left', async () => {
    const user = await aUser(app)
    await record(app, [{ external_id: user.externalId }])
    const months = (where: string) =>
      app.db.transaction(async (db) => {
        for (const way of ['sort', 'seqscan', 'bitmapscan'])
          await db.query(new Sql(`set local enable_${way} = off`, []))
        const text = `explain (format json) select id from events
          where app_id = '${app.tenant.id}' and user_id = '${user.id}' ${where} order by at desc, id desc limit 10`
        const plan = JSON.stringify(await db.query(new Sql(text, [])))
        expect(plan).not.toMatch(/Sort"/)
        return new Set(plan.match(/events_\d{4}_\d\d/g)).size
      })
    const all = await months('')
    expect(all).toBeGreaterThan(12)
    expect(await months("and name = 'x'")).toBe(all)
    expect(await months(`and at <= '2029-06-01' and (at, id) < ('2029-06-01', '${NOBODY}')`)).toBeLessThan(all / 2)
  })
})
