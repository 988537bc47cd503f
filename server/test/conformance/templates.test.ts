// What holds for all operations holds for templates too: keys, limits, shapes of errors, both prefixes.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import { type Answer, type TestApp, testApp } from '../app.ts'
import { aPush, templatesOf } from '../templates.ts'
import { NOBODY, problem, told } from '../users.ts'

let app: TestApp
let clock: VirtualClock
let templates: ReturnType<typeof templatesOf>
let id: string
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ limits: 'spec', clock })
  templates = templatesOf(app)
  id = (await templates.create(aPush())).body.id
})
afterAll(() => app.close())
beforeEach(() => clock.advanceLease({ minutes: 5 }))

const LIMITED = { errors: [{ code: 'Rate Limit Exceeded', title: 'API rate limit exceeded', meta: {} }] }
const statuses = (answers: Answer[]) => answers.map(({ status }) => status)
function expectLimited(answer: Answer) {
  expect(told(answer)).toEqual({ status: 429, body: LIMITED })
  expect(answer.headers.get('retry-after')).toBe('1')
}

describe('limits', () => {
  test('one view of the list per second and app, and one of a template', async () => {
    expect((await templates.list()).status).toBe(200)
    expectLimited(await templates.list())
    expect((await templates.view(id)).status).toBe(200)
    expectLimited(await templates.view(NOBODY))
    clock.advanceLease({ seconds: 1 })
    expect(statuses([await templates.list(), await templates.view(id)])).toEqual([200, 200])
  })

  test('ten look-back requests per second: pages with an offset, counted apart from the first', async () => {
    const page = (offset: number) => templates.list(`&limit=1&offset=${offset}`)
    expect((await page(0)).status).toBe(200)
    const answers: Answer[] = []
    for (let n = 1; n <= 10; n++) answers.push(await page(n))
    expect(statuses(answers)).toEqual(Array(10).fill(200))
    expectLimited(await page(11))
    clock.advanceLease({ seconds: 1 })
    expect((await page(11)).status).toBe(200)
  })

  test('limit and offset are answered as they were asked for', async () => {
    const { body } = await templates.list('&limit=7')
    expect(body).toMatchObject({ limit: 7, offset: 0, total_count: 1 })
  })
})

describe('keys', () => {
  const noKey = problem(401, 'auth-1', "This operation requires 'Authorization' in the HTTP header")

  test('without the header it is an auth-1; with a key that is no good, a list of strings with a reference', async () => {
    const ask = (authorization: string) =>
      app.request(`/templates?app_id=${app.tenant.id}`, { headers: { authorization } })
    expect(told(await ask(''))).toEqual(noKey)
    expect(await ask('Key nonsense')).toMatchObject({
      status: 401,
      body: {
        errors: [expect.stringContaining('Access denied.'), expect.stringContaining('/docs/accounts-and-keys')],
        reference: [expect.any(String)],
      },
    })
  })

  test('the app of the query is the one that the key is judged by', async () => {
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    const missing = { status: 404, body: { errors: ['App not found'] } }
    expect(told(await app.request(`/templates?app_id=${app.tenant.id}`, { headers }))).toEqual(missing)
    expect(told(await app.request(`/templates/${id}?app_id=${app.tenant.id}`, { headers }))).toEqual(missing)
    // Named by the right app, a template of another one is not there.
    const foreign = await app.request(`/templates/${id}?app_id=${other.id}`, { headers })
    expect(told(foreign)).toEqual({ status: 404, body: { errors: ['template not found'] } })
  })
})

test('every route is there under /api/v1 too', async () => {
  const prefixed = await app.request(`/api/v1/templates?app_id=${app.tenant.id}`)
  expect(prefixed).toMatchObject({ status: 200, body: { templates: [{ id }] } })
})
