// What holds for all operations holds for journeys too: keys, limits, shapes of errors, both prefixes.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import { type Answer, type TestApp, testApp } from '../app.ts'
import { aJourney, create, JOURNEY_NOT_FOUND, update, view } from '../journeys.ts'
import { startUnreachable } from '../unreachable.ts'
import { NOBODY, problem, told } from '../users.ts'

let app: TestApp
let clock: VirtualClock
let id: string
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ limits: 'spec', clock })
  id = (await aJourney(app)).id
})
afterAll(() => app.close())
beforeEach(() => clock.advanceLease({ minutes: 5 }))

const LIMITED = { errors: [{ code: 'Rate Limit Exceeded', title: 'API rate limit exceeded', meta: {} }] }
function expectLimited(answer: Answer | undefined) {
  expect(answer && told(answer)).toEqual({ status: 429, body: LIMITED })
  expect(answer?.headers.get('retry-after')).toBe('1')
}
const many = (count: number, ask: () => Promise<Answer>) => Promise.all(Array.from({ length: count }, ask))
const refusedOf = (answers: Answer[]) => answers.filter(({ status }) => status === 429)

describe('limits', () => {
  test('View journey: a hundred in a second, the next is a 429 object with Retry-After', async () => {
    const refused = refusedOf(await many(101, () => view(app, id)))
    expect(refused).toHaveLength(1)
    expectLimited(refused[0])
    clock.advanceLease({ seconds: 1 })
    expect((await view(app, id)).status).toBe(200)
  })

  test('pages of the list after the first are look-back requests: ten in a second', async () => {
    await create(app)
    const { next_cursor } = (await app.app('/journeys?limit=1')).body
    const refused = refusedOf(await many(11, () => app.app(`/journeys?limit=1&cursor=${next_cursor}`)))
    expect(refused).toHaveLength(1)
    expectLimited(refused[0])
    expect((await app.app('/journeys?limit=1')).status).toBe(200)
  })

  test('writes: 1,000 in a second', async () => {
    const refused = refusedOf(await many(1001, () => update(app, NOBODY, {})))
    expect(refused).toHaveLength(1)
    expectLimited(refused[0])
  })
})

describe('keys', () => {
  const ask = (authorization: string) => app.app(`/journeys/${id}`, { headers: { authorization } })

  test('without the header it is an auth-1', async () => {
    expect(told(await ask(''))).toEqual(
      problem(401, 'auth-1', "This operation requires 'Authorization' in the HTTP header"),
    )
  })

  test('a key that is no good is a list of strings with a reference', async () => {
    const { status, body } = await ask('Key nobody')
    expect(status).toBe(401)
    // The second error and the reference are ours: they lead to where the server itself explains keys.
    const ownPage = expect.stringContaining('docs/accounts-and-keys')
    expect(body).toEqual({
      errors: [expect.stringMatching(/^Access denied\. {2}/), ownPage],
      reference: [ownPage],
    })
  })

  test('a key of another app sees the same as where there is no app', async () => {
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    const foreign = await app.request(`/apps/${app.tenant.id}/journeys/${id}`, { headers })
    const missing = await app.request(`/apps/${NOBODY}/journeys/${id}`, { headers })
    expect(foreign.status).toBe(404)
    expect(told(foreign)).toEqual(told(missing))
  })
})

describe('errors', () => {
  test('are objects with a code and a title', async () => {
    expect(told(await view(app, NOBODY))).toEqual(JOURNEY_NOT_FOUND)
    expect(told(await update(app, id, { name: '' }))).toEqual(
      problem(400, 'request-0', 'name must not be empty', { field: 'name' }),
    )
    expect(told(await update(app, id, { name: 'x', concurrency_key: 'old' }))).toEqual(
      problem(409, 'journey-stale', /view it again/),
    )
  })

  test('what cannot be stored is refused', async () => {
    for (const name of ['a\0b', '\ud800']) expect((await create(app, { name })).status).toBe(400)
    const nodes = [{ kind: 'tag', assignments: { 'k\0': 'x' } }]
    expect((await create(app, { nodes })).status).toBe(400)
  })

  test('both prefixes are one endpoint', async () => {
    const there = await app.request(`/api/v1/apps/${app.tenant.id}/journeys/${id}`)
    expect(told(there)).toEqual(told(await view(app, id)))
  })
})

test('service unavailable: 503, a list with one text', async () => {
  const unreachable = await startUnreachable()
  try {
    const headers = { authorization: `Key ${app.tenant.key}` }
    const response = await fetch(`${unreachable.address}/apps/${app.tenant.id}/journeys/${id}`, { headers })
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 503,
      body: { errors: ['Service temporarily unavailable'] },
    })
  } finally {
    await unreachable.close()
  }
})
