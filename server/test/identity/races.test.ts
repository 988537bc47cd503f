// Many callers want the same thing at the same time, from two servers on one database. However they interleave, the counts
// afterwards are exact and nobody is told of a failure that is ours.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/storage/sql.ts'
import { type Answer, type Request, type TestApp, testApp } from '../app.ts'
import { miscountedApps } from './rows.ts'

const isFull = process.env.CHAOS_FULL === '1'
/** As often as told when run full, a fraction of it otherwise. */
const times = (full: number, gate: number) => (isFull ? full : gate)
const TIMEOUT = { timeout: 10 * 60_000 }

let servers: [TestApp, TestApp]
beforeAll(async () => {
  const first = await testApp()
  servers = [first, await testApp({ beside: first })]
})
afterAll(async () => {
  await servers[1].close()
  await servers[0].close()
})

let asked = 0
const statuses = new Set<number>()
/** To one server and the other by turns. */
async function ask(path: string, request?: Request): Promise<Answer> {
  const answer = await (servers[asked++ % 2] as TestApp).app(path, request)
  statuses.add(answer.status)
  if (answer.status >= 500) throw new Error(`${answer.status} ${path} ${JSON.stringify(request)}`)
  return answer
}
const patch = (path: string, body: unknown, headers = {}) => ask(path, { method: 'PATCH', body, headers })
const remove = (path: string) => ask(path, { method: 'DELETE' })
const player = async (body: object): Promise<Answer> => {
  const server = servers[asked++ % 2] as TestApp
  const answer = await server.request('/players', { body: { app_id: server.tenant.id, ...body } })
  if (answer.status >= 500) throw new Error(`${answer.status} /players ${JSON.stringify(body)}`)
  return answer
}
const by = (label: string, value: string) => `/users/by/${label}/${value}`
const external = (value: string) => by('external_id', value)

const list = <Item>(length: number, make: (n: number) => Item): Item[] => Array.from({ length }, (_, n) => make(n))
const count = (answers: Answer[], status: number) => answers.filter((it) => it.status === status).length

/** All at once is more than a socket can take; this many callers go through the work together. */
async function together<Item, Result>(items: Item[], callers: number, run: (item: Item) => Promise<Result>) {
  const results: Result[] = new Array(items.length)
  let next = 0
  await Promise.all(
    list(Math.min(callers, items.length), async () => {
      while (next < items.length) {
        const n = next++
        results[n] = await run(items[n] as Item)
      }
    }),
  )
  return results
}

const makeUser = async (externalId: string, more: object = {}) => {
  const answer = await ask('/users', { body: { identity: { external_id: externalId }, ...more } })
  expect(answer.status).toBe(201)
  return answer.body
}

/** The counts in the users' rows are the numbers of rows that they count. */
async function expectExactCounts() {
  const wrong = await servers[0].db.query(sql`
    select u.id from users u
    where u.alias_count <> (select count(*) from aliases a
        where a.app_id = u.app_id and a.user_id = u.id and a.label <> 'external_id')
      or u.subscription_count <> (select count(*) from subscriptions s where s.app_id = u.app_id and s.user_id = u.id)`)
  expect(wrong).toEqual([])
  expect(await miscountedApps(servers[0].db)).toEqual([])
}

test('of many who claim one alias exactly one gets it', TIMEOUT, async () => {
  const claimers = 20
  const pairs = times(200, 40)
  await together(
    list(claimers, (n) => `claimer${n}`),
    claimers,
    (id) => makeUser(id),
  )
  for (let pair = 0; pair < pairs; pair++) {
    // One label at a time is replaced, so that nobody runs into the limit of ten.
    const identity = { prize: `pair${pair}` }
    const answers = await Promise.all(list(claimers, (n) => patch(`${external(`claimer${n}`)}/identity`, { identity })))
    expect([count(answers, 200), count(answers, 409)]).toEqual([1, claimers - 1])
    const loser = answers.find((it) => it.status === 409)
    expect(loser?.body.errors).toMatchObject([{ code: 'user-2', meta: identity }])
    const winner = answers.find((it) => it.status === 200)
    const seen = await ask(`${by('prize', `pair${pair}`)}/identity`)
    expect(seen.body).toEqual(winner?.body)
  }
  await expectExactCounts()
})

test('of thirty who add a subscription twenty succeed', TIMEOUT, async () => {
  await together(list(times(100, 12), String), 2, async (n) => {
    await makeUser(`full${n}`)
    const answers = await Promise.all(
      list(30, (i) =>
        ask(`${external(`full${n}`)}/subscriptions`, {
          body: { subscription: { type: 'AndroidPush', token: `full${n} ${i}` } },
        }),
      ),
    )
    expect([count(answers, 201), count(answers, 409)]).toEqual([20, 10])
    for (const { status, body } of answers)
      if (status === 409) expect(body.errors[0].code).toBe('Subscription Limit Exceeded')
    const seen = await ask(external(`full${n}`))
    expect(seen.body.subscriptions).toHaveLength(20)
  })
  await expectExactCounts()
})

test('of fifteen who add an alias ten succeed', TIMEOUT, async () => {
  await together(list(times(100, 20), String), 2, async (n) => {
    await makeUser(`named${n}`)
    const answers = await Promise.all(
      list(15, (i) => patch(`${external(`named${n}`)}/identity`, { identity: { [`label${i}`]: `named${n}` } })),
    )
    expect([count(answers, 200), count(answers, 409)]).toEqual([10, 5])
    for (const { status, body } of answers) if (status === 409) expect(body.errors[0].code).toBe('Alias Limit Exceeded')
    const seen = await ask(`${external(`named${n}`)}/identity`)
    expect(Object.keys(seen.body.identity)).toHaveLength(12)
  })
  await expectExactCounts()
})

test('two users who swap an alias never both have it', TIMEOUT, async () => {
  const [left, right] = [await makeUser('left'), await makeUser('right')].map((it) => it.identity.onesignal_id)
  await patch(`${by('onesignal_id', left)}/identity`, { identity: { seat: 'window' } })
  await patch(`${by('onesignal_id', right)}/identity`, { identity: { seat: 'aisle' } })
  for (let n = 0; n < times(500, 100); n++) {
    const answers = await Promise.all([
      patch(`${by('onesignal_id', left)}/identity`, { identity: { seat: n % 2 ? 'window' : 'aisle' } }),
      patch(`${by('onesignal_id', right)}/identity`, { identity: { seat: n % 2 ? 'aisle' : 'window' } }),
      patch(`${by('onesignal_id', left)}/identity`, { identity: { seat: 'floor' } }),
      remove(`${by('onesignal_id', right)}/identity/seat`),
    ])
    expect(answers.every((it) => [200, 404, 409].includes(it.status))).toBe(true)
    const rows = await servers[0].db.query<{ value: string; userId: string }>(
      sql`select a.value, a.user_id from aliases a where a.app_id = ${servers[0].tenant.id} and a.label = 'seat'`,
    )
    expect(new Set(rows.map((it) => it.value)).size).toBe(rows.length)
    expect(new Set(rows.map((it) => it.userId)).size).toBe(rows.length)
    // Back to where everybody sits, for the next turn.
    await remove(`${by('onesignal_id', left)}/identity/seat`)
    await remove(`${by('onesignal_id', right)}/identity/seat`)
    const seats = n % 2 ? ['window', 'aisle'] : ['aisle', 'window']
    const seated = await Promise.all([
      patch(`${by('onesignal_id', left)}/identity`, { identity: { seat: seats[1] } }),
      patch(`${by('onesignal_id', right)}/identity`, { identity: { seat: seats[0] } }),
    ])
    expect(seated.map((it) => it.status)).toEqual([200, 200])
  }
  await expectExactCounts()
})

test('a subscription that is handed around has exactly one owner whenever anybody looks', TIMEOUT, async () => {
  const owners = list(4, (n) => `owner${n}`)
  const [first] = await together(owners, 1, (id) =>
    makeUser(id, id === 'owner0' ? { subscriptions: [{ type: 'iOSPush', token: 'handed' }] } : {}),
  )
  const id = first.subscriptions[0].id
  let isOver = false
  const readers = list(3, async () => {
    while (!isOver) {
      const [identity, player, user] = await Promise.all([
        ask(`/subscriptions/${id}/user/identity`),
        (servers[asked++ % 2] as TestApp).request(`/players/${id}?app_id=${servers[0].tenant.id}`),
        ask(external(owners[asked % owners.length] as string)),
      ])
      expect(owners).toContain(identity.body.identity.external_id)
      expect(player.status).toBe(200)
      expect(owners).toContain(player.body.external_user_id)
      expect(user.body.subscriptions.length).toBeLessThanOrEqual(1)
      const [stored] = await servers[0].db.query<{ owners: number; counted: number }>(sql`
        select (select count(*) from subscriptions s where s.app_id = ${servers[0].tenant.id} and s.id = ${id}) as owners,
          (select sum(u.subscription_count) from users u join aliases a on a.app_id = u.app_id and a.user_id = u.id
           where u.app_id = ${servers[0].tenant.id} and a.label = 'external_id' and a.value = any(${owners}::text[]))
            as counted`)
      expect(stored).toEqual({ owners: 1, counted: 1 })
    }
  })
  const transfers = together(
    list(times(500, 300), (n) => owners[n % owners.length] as string),
    12,
    (external_id) => patch(`/subscriptions/${id}/owner`, { identity: { external_id } }),
  )
  const answers = await transfers.finally(() => {
    isOver = true
  })
  await Promise.all(readers)
  expect(count(answers, 200)).toBe(answers.length)
  await expectExactCounts()
})

test('every acknowledged increment counts, for the user and for the subscription', TIMEOUT, async () => {
  const made = await makeUser('counted', { subscriptions: [{ type: 'iOSPush', token: 'counted' }] })
  const selected = { 'onesignal-subscription-id': made.subscriptions[0].id }
  const purchase = { sku: 'x', iso: 'EUR', amount: '0.01' }
  const answers = await together(list(50 * times(20, 8), String), 50, () =>
    patch(
      external('counted'),
      { deltas: { session_count: 1, session_time: 2, purchases: [purchase] }, properties: { tags: { a: 'b' } } },
      selected,
    ),
  )
  const sum = count(answers, 202)
  expect(sum).toBe(answers.length)
  const { body } = await ask(external('counted'))
  expect(body.properties).toMatchObject({ session_count: sum, session_time: 2 * sum, amount_spent: sum / 100 })
  expect(body.subscriptions[0]).toMatchObject({ session_count: sum, session_time: 2 * sum })
  // Each answer was true at some moment: no two saw the same sum.
  expect(new Set(answers.map((it) => it.body.properties.session_count)).size).toBe(sum)
  const [kept] = await servers[0].db.query<{ n: number }>(
    sql`select count(*) as n from purchases p where p.user_id = ${body.identity.onesignal_id}`,
  )
  expect(kept?.n).toBe(sum)
})

test('an external id that many create at once is one user', TIMEOUT, async () => {
  for (let n = 0; n < times(100, 25); n++) {
    const answers = await Promise.all(
      list(10, (i) =>
        ask('/users', {
          body: {
            identity: { external_id: `same${n}` },
            properties: { tags: { [`tag${i}`]: 'x' } },
            subscriptions: [{ type: 'iOSPush', token: `same${n} ${i % 5}` }],
          },
        }),
      ),
    )
    expect([count(answers, 201), count(answers, 202)]).toEqual([1, 9])
    expect(new Set(answers.map((it) => it.body.identity.onesignal_id)).size).toBe(1)
    const { body } = await ask(external(`same${n}`))
    expect(Object.keys(body.properties.tags)).toHaveLength(10)
    expect(body.subscriptions).toHaveLength(5)
  }
  await expectExactCounts()
})

test('a token that many bring under different names ends with one of them', TIMEOUT, async () => {
  for (let n = 0; n < times(100, 25); n++) {
    const token = `wanted${n}@example.com`
    const answers = await Promise.all(
      list(8, (i) =>
        i % 4 === 3
          ? player({ device_type: 11, identifier: token, external_user_id: `wants${n} ${i}` })
          : ask('/users', {
              body: { identity: { external_id: `wants${n} ${i}` }, subscriptions: [{ type: 'Email', token }] },
            }),
      ),
    )
    expect(answers.every((it) => [200, 201].includes(it.status))).toBe(true)
    const ids = answers.map((it) => it.body.id ?? it.body.subscriptions[0].id)
    expect(new Set(ids).size).toBe(1)
    const views = await Promise.all(list(8, (i) => ask(external(encodeURIComponent(`wants${n} ${i}`)))))
    expect(views.reduce((sum, it) => sum + it.body.subscriptions.length, 0)).toBe(1)
  }
  await expectExactCounts()
})

test('a token without a name is one user, whoever brings it', TIMEOUT, async () => {
  for (let n = 0; n < times(100, 25); n++) {
    const token = `nameless${n}`
    const answers = await Promise.all(
      list(6, (i) =>
        i % 2
          ? player({ device_type: 1, identifier: token })
          : ask('/users', { body: { subscriptions: [{ type: 'AndroidPush', token }] } }),
      ),
    )
    expect(new Set(answers.map((it) => it.body.id ?? it.body.subscriptions[0].id)).size).toBe(1)
    expect(count(answers, 201)).toBeLessThanOrEqual(1)
    const users = new Set(answers.flatMap((it) => it.body.identity?.onesignal_id ?? []))
    expect(users.size).toBe(1)
  }
  await expectExactCounts()
})

test('deleting a user while others write to it leaves all of it or nothing', TIMEOUT, async () => {
  for (let n = 0; n < times(200, 50); n++) {
    const made = await makeUser(`doomed${n}`, { subscriptions: [{ type: 'iOSPush', token: `doomed${n}` }] })
    const id = made.identity.onesignal_id
    const [deleted, ...others] = await Promise.all([
      remove(external(`doomed${n}`)),
      patch(`${external(`doomed${n}`)}/identity`, { identity: { label: `doomed${n}` } }),
      ask(`${external(`doomed${n}`)}/subscriptions`, {
        body: { subscription: { type: 'AndroidPush', token: `doomed${n}` } },
      }),
      patch(external(`doomed${n}`), {
        deltas: { session_count: 1, purchases: [{ sku: 'x', iso: 'EUR', amount: '1' }] },
      }),
      patch(`/subscriptions/${made.subscriptions[0].id}`, { subscription: { enabled: false } }),
    ])
    expect(deleted.status).toBe(202)
    expect(others.every((it) => [200, 201, 202, 404].includes(it.status))).toBe(true)
    expect((await ask(by('onesignal_id', id))).status).toBe(404)
    expect((await ask(by('label', `doomed${n}`))).status).toBe(404)
    const left = await servers[0].db.query(sql`
      select a.user_id from aliases a where a.user_id = ${id}
      union all select s.user_id from subscriptions s where s.user_id = ${id}
      union all select p.user_id from purchases p where p.user_id = ${id}
      union all select v.user_id from user_activity v where v.user_id = ${id}`)
    expect(left).toEqual([])
  }
  await expectExactCounts()
})

test('the old door and the new one share the limit of twenty', TIMEOUT, async () => {
  for (let n = 0; n < times(50, 8); n++) {
    await makeUser(`both${n}`)
    const answers = await Promise.all(
      list(30, (i) =>
        i % 2
          ? player({ device_type: 1, identifier: `both${n} ${i}`, external_user_id: `both${n}` })
          : ask('/users', {
              body: {
                identity: { external_id: `both${n}` },
                subscriptions: [{ type: 'AndroidPush', token: `both${n} ${i}` }],
              },
            }),
      ),
    )
    const refused = answers.filter((it) => [400, 409].includes(it.status))
    expect([answers.length - refused.length, refused.length]).toEqual([20, 10])
    expect((await ask(external(`both${n}`))).body.subscriptions).toHaveLength(20)
  }
  await expectExactCounts()
})

test(
  'users who take each other’s subscriptions and aliases in opposite order do not block each other',
  TIMEOUT,
  async () => {
    const people = list(6, (n) => `crowd${n}`)
    await together(people, 6, (id) => makeUser(id))
    const tokens = list(6, (n) => `crowd token ${n}`)
    const answers = await together(list(times(3_000, 600), Number), 40, (n) => {
      const order = n % 2 ? (it: string[]) => it : (it: string[]) => it.toReversed()
      const external_id = people[n % people.length] as string
      const identity = { external_id, [`mark${n % 3}`]: `value${n % 4}` }
      if (n % 5 === 0) return remove(`${external(external_id)}/identity/mark${n % 3}`)
      return ask('/users', {
        body: { identity, subscriptions: order(tokens).map((token) => ({ type: 'iOSPush', token })) },
      })
    })
    expect(answers.every((it) => [200, 202, 404, 409].includes(it.status))).toBe(true)
    const views = await Promise.all(people.map((id) => ask(external(id))))
    expect(views.reduce((sum, it) => sum + it.body.subscriptions.length, 0)).toBe(tokens.length)
    await expectExactCounts()
  },
)
