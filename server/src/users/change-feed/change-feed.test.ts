import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aName, anEmail, aUser, type MadeUser } from '../../../test/users.ts'
import { aWorker } from '../../../test/worker.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { createMerger } from '../../storage/merge.ts'
import { sql } from '../../storage/sql.ts'
import { createUsersContext } from '../context.ts'
import { createUser } from '../create.ts'
import { newUser } from '../new-user.ts'
import { insertNewUsers } from '../new-user-store.ts'
import { CHANGE_FEED_JOB, enqueueLostFeedJobs, recordFeedEntries, setWatches, takeFeedEntries } from './change-feed.ts'
import type { FeedEntry, FeedKind, FeedWatch } from './feed.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const watch = (...kinds: FeedKind[]) => setWatches(app.db, app.tenant.id, kinds.map(unnamed))
const unnamed = (kind: FeedKind): FeedWatch => ({ kind, name: '' })
const take = (limit = 1000, db: Db = app.db) => takeFeedEntries(db, app.tenant.id, limit)
/** Users and kinds of what was noted since it was asked last. */
const told = async () => brief(await take())
const brief = (news: FeedEntry[]) => news.map(({ userId, kind }) => `${userId} ${kind}`).sort()
const said = (user: { id: string }, ...kinds: FeedKind[]) => kinds.map((kind) => `${user.id} ${kind}`)
const wakeUps = () =>
  app.db.query<{ appId: string; key: string; lane: string }>(
    sql`select app_id, key, lane from jobs where name = ${CHANGE_FEED_JOB} order by app_id`,
  )
const forgetWakeUps = () => app.db.query(sql`delete from jobs where name = ${CHANGE_FEED_JOB}`)

const patch = (user: MadeUser, body: object, headers?: Record<string, string>) =>
  app.app(user.path, { method: 'PATCH', body, ...(headers && { headers }) })
const tag = (user: MadeUser, tags: object) => patch(user, { properties: { tags } })

beforeEach(async () => {
  await watch()
  await take()
  await forgetWakeUps()
})

describe('what nobody watches', () => {
  test('leaves no row and wakes nobody', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    await patch(user, { properties: { tags: { a: '1' } }, deltas: { session_count: 1 } })
    expect(await told()).toEqual([])
    expect(await wakeUps()).toEqual([])
  })

  test('costs no statement: the one that locks says that there is nothing to note', async () => {
    const user = await aUser(app)
    const count = async () => {
      const texts: string[] = []
      const users = createUsersContext({ ...parts(), db: watched(app.db, texts) })
      const body = { identity: { external_id: user.externalId }, properties: { tags: { n: newId() } } }
      await createUser(users, app.tenant.id, body)
      return texts
    }
    const texts = await count()
    expect(texts.filter((text) => /watches/.test(text))).toHaveLength(2)
    await watch('change')
    expect((await count()).length).toBeGreaterThan(texts.length)
  })

  test('of one kind stays unwritten while another is watched, and what one app watches is no other’s', async () => {
    const other = await app.anotherTenant()
    await setWatches(app.db, other.id, [unnamed('change'), unnamed('session')])
    await watch('session')
    const user = await aUser(app)
    await patch(user, { properties: { tags: { a: '1' } }, deltas: { session_count: 1 } })
    expect(await told()).toEqual(said(user, 'session'))
    expect(await takeFeedEntries(app.db, other.id, 10)).toEqual([])
  })
})

const parts = () => ({ db: app.db, clock, newId, merger: createMerger({ slots: 1 }) })

const watched = (db: Db, texts: string[]): Db => ({
  query: (statement, options) => {
    texts.push(statement.text)
    return db.query(statement, options)
  },
  transaction: (run) => db.transaction((db) => run(watched(db, texts))),
})

describe('a change', () => {
  beforeEach(() => watch('change'))

  test('is a new user, whichever way it comes', async () => {
    const quick = await aUser(app)
    const slow = await aUser(app, { properties: { last_active: 1_700_000_000 } })
    const many = await Promise.all(Array.from({ length: 20 }, () => aUser(app)))
    const { body } = await app.request('/players', {
      body: { app_id: app.tenant.id, device_type: 11, identifier: anEmail() },
    })
    expect(body.success).toBe(true)
    const news = await told()
    expect(news).toHaveLength(23)
    expect(news).toEqual(expect.arrayContaining([quick, slow, ...many].flatMap((user) => said(user, 'change'))))
  })

  test('is what is different about a user, once for each request', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const [id] = user.subscriptionIds
    const change = { method: 'PATCH' }
    const changes: (() => Promise<unknown>)[] = [
      () => tag(user, { plan: 'gold' }),
      () => patch(user, { properties: { language: 'de' } }),
      () => patch(user, { deltas: { session_time: 5 } }),
      () => patch(user, { deltas: { purchases: [{ sku: 'a', iso: 'EUR', amount: '0', count: 1 }] } }),
      () => app.app(`${user.path}/identity`, { ...change, body: { identity: { crm: aName() } } }),
      () => app.app(`${user.path}/identity/crm`, { method: 'DELETE' }),
      () => app.app(`${user.path}/subscriptions`, { body: { subscription: { type: 'Email', token: anEmail() } } }),
      () => app.app(`/subscriptions/${id}`, { ...change, body: { subscription: { enabled: false } } }),
      () => app.app(`/subscriptions/${id}`, { method: 'DELETE' }),
    ]
    await take()
    for (const [n, run] of changes.entries()) {
      clock.advance({ seconds: 1 })
      await run()
      expect([n, await told()]).toEqual([n, said(user, 'change')])
    }
  })

  test('is nothing that was so before', async () => {
    const email = anEmail()
    const user = await aUser(app, {
      properties: { tags: { plan: 'gold' }, language: 'de' },
      subscriptions: [{ type: 'Email', token: email }],
    })
    await take()
    clock.advance({ seconds: 1 })
    await tag(user, { plan: 'gold', gone: '' })
    await patch(user, { properties: { language: 'de' } })
    const identity = { external_id: user.externalId }
    await app.app('/users', { body: { identity, subscriptions: [{ type: 'Email', token: email }] } })
    expect(await told()).toEqual([])
  })

  test('is for both when a subscription moves', async () => {
    const [from, to] = [await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] }), await aUser(app)]
    await take()
    const path = `/subscriptions/${from.subscriptionIds[0]}/owner`
    const identity = { external_id: to.externalId }
    expect((await app.app(path, { method: 'PATCH', body: { identity } })).status).toBe(200)
    expect(await told()).toEqual([...said(from, 'change'), ...said(to, 'change')].sort())
  })

  test('is not a refused request, and not a user that goes', async () => {
    const user = await aUser(app)
    await take()
    await tag(user, { '': 'no key' })
    await app.app('/users/by/external_id/nobody-at-all', { method: 'PATCH', body: { properties: { tags: { a: 1 } } } })
    await app.app(user.path, { method: 'DELETE' })
    expect(await told()).toEqual([])
  })

  test('wakes at once who takes the news, by one job', async () => {
    const user = await aUser(app)
    const job = { appId: app.tenant.id, key: CHANGE_FEED_JOB, lane: 'direct' }
    expect(await wakeUps()).toEqual([job])
    await forgetWakeUps()
    await tag(user, { a: '1' })
    await tag(user, { a: '2' })
    expect(await wakeUps()).toEqual([job])
  })
})

test('a session is told of when the user has begun one, by either interface', async () => {
  await watch('session', 'change')
  const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
  await take()
  await patch(user, { deltas: { session_time: 5 } })
  expect(await told()).toEqual(said(user, 'change'))
  await patch(user, { deltas: { session_count: 2 } })
  expect(await told()).toEqual(said(user, 'change', 'session'))
  const body = { app_id: app.tenant.id }
  expect((await app.request(`/players/${user.subscriptionIds[0]}/on_session`, { body })).status).toBe(200)
  expect(await told()).toEqual(said(user, 'change', 'session'))
})

test('an action is noted by who knows of it, with its run, and only where it is watched', async () => {
  const [userId, runId] = [newId(), newId()]
  const note = () =>
    recordFeedEntries(
      app.db,
      app.tenant.id,
      [
        { userId, kind: 'action', runId },
        { userId, kind: 'session' },
      ],
      clock.now(),
    )
  expect(await note()).toEqual([])
  await watch('action')
  expect(await note()).toEqual([{ appId: app.tenant.id, name: CHANGE_FEED_JOB, key: CHANGE_FEED_JOB, lane: 'direct' }])
  expect(await take()).toEqual([
    { id: expect.any(String), userId, kind: 'action', runId, event: null, at: clock.now() },
  ])
  expect(await recordFeedEntries(app.db, app.tenant.id, [], clock.now())).toEqual([])
})

describe('news come with the change or not at all', () => {
  beforeEach(() => watch('change'))

  test('a change that is rolled back leaves no news and no job', async () => {
    const user = await aUser(app)
    await take()
    await forgetWakeUps()
    const failing: Db = {
      ...app.db,
      transaction: (run) =>
        app.db.transaction(async (db) => {
          await run(db)
          expect(brief(await take(10, db))).toEqual(said(user, 'change'))
          throw new Error('the commit failed')
        }),
    }
    const users = createUsersContext({ ...parts(), db: failing })
    const body = { identity: { external_id: user.externalId }, properties: { tags: { a: '1' } } }
    await expect(createUser(users, app.tenant.id, body)).rejects.toThrow('the commit failed')
    expect(await told()).toEqual([])
    expect(await wakeUps()).toEqual([])
  })

  test('new users of whom one cannot be stored leave none', async () => {
    const users = ['a', 'b'].map(() => newUser(newId(), clock.now().toISOString()))
    const taken = aName()
    for (const user of users) user.aliases.set('external_id', taken)
    await expect(insertNewUsers(app.db, app.tenant.id, users)).rejects.toThrow()
    expect(await told()).toEqual([])
  })

  test('of requests for the same new user, and of one that is known, each is told as what it was', async () => {
    const identity = { external_id: aName() }
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => app.app('/users', { body: { identity, properties: { tags: { same: '1' } } } })),
    )
    const ids = new Set(answers.map(({ body }) => body.identity.onesignal_id))
    expect(ids.size).toBe(1)
    expect(await told()).toEqual([...ids].flatMap((id) => said({ id }, 'change')))
  })

  test('where nobody could be woken the user is there all the same, and the schedule wakes them', async () => {
    const failing: Db = { ...app.db, transaction: () => Promise.reject(new Error('no connection')) }
    const users = createUsersContext({ ...parts(), db: failing })
    const { isNew, user } = await createUser(users, app.tenant.id, { identity: { external_id: aName() } })
    expect(isNew).toBe(true)
    expect(await wakeUps()).toEqual([])
    await enqueueLostFeedJobs(parts())
    expect(await wakeUps()).toEqual([{ appId: app.tenant.id, key: CHANGE_FEED_JOB, lane: 'direct' }])
    expect(await told()).toEqual(said(user, 'change'))
    await forgetWakeUps()
    await enqueueLostFeedJobs(parts())
    expect(await wakeUps()).toEqual([])
  })
})

describe('taking', () => {
  const note = async (count: number) => {
    const users = Array.from({ length: count }, () => ({ id: newId() }))
    for (const { id } of users) {
      clock.advance({ seconds: 1 })
      await recordFeedEntries(app.db, app.tenant.id, [{ userId: id, kind: 'change' }], clock.now())
    }
    return users.map(({ id }) => id)
  }
  const ids = (news: FeedEntry[]) => news.map(({ userId }) => userId)
  beforeEach(() => watch('change'))

  test('gives the oldest first', async () => {
    const users = await note(5)
    expect(ids(await take(2))).toEqual(users.slice(0, 2))
    expect(ids(await take(10))).toEqual(users.slice(2))
  })

  test('by two at once gives each row once, without waiting', async () => {
    const users = await note(5)
    const [first, second] = await app.db.transaction(async (db) => {
      const first = await take(3, db)
      return [first, await take(10)]
    })
    expect(ids([...first, ...second])).toEqual(users)
    expect(await take()).toEqual([])
  })

  test('in a transaction that fails gives them back', async () => {
    const users = await note(2)
    const failed = app.db.transaction(async (db) => {
      await take(10, db)
      throw new Error('failed')
    })
    await expect(failed).rejects.toThrow('failed')
    expect(ids(await take())).toEqual(users)
  })
})

test('watches are replaced as a whole', async () => {
  const list = () =>
    app.db.query<FeedWatch>(sql`select kind, name from watches where app_id = ${app.tenant.id} order by kind, name`)
  const rung = { kind: 'event', name: 'rung' } as const
  await setWatches(app.db, app.tenant.id, [unnamed('change'), rung, rung])
  expect(await list()).toEqual([unnamed('change'), rung])
  await setWatches(app.db, app.tenant.id, [rung, { kind: 'event', name: 'lit' }])
  expect(await list()).toEqual([{ kind: 'event', name: 'lit' }, rung])
  await watch()
  expect(await list()).toEqual([])
  await setWatches(app.db, newId(), [rung])
  expect(await app.db.query(sql`select from watches w where w.name = 'rung'`)).toEqual([])
})

test('a deleted user takes its news along', async () => {
  await watch('change')
  const [user, other] = [await aUser(app), await aUser(app)]
  await app.app(user.path, { method: 'DELETE' })
  // Noted by somebody who had found the user before it went.
  await recordFeedEntries(app.db, app.tenant.id, [{ userId: user.id, kind: 'change' }], clock.now())
  // Nobody takes the news here: nobody is woken for them, and no schedule looks for them.
  await forgetWakeUps()
  clock.advance({ minutes: 1 })
  await aWorker(app, clock, { options: { schedules: [] } }).runDue()
  expect(await told()).toEqual(said(other, 'change'))
})

test('an app that is gone gets no news', async () => {
  const gone = newId()
  await app.db.query(sql`insert into watches (app_id, kind) values (${gone}, 'change')`)
  expect(await recordFeedEntries(app.db, gone, [{ userId: newId(), kind: 'change' }], clock.now())).toEqual([])
  expect(await takeFeedEntries(app.db, gone, 10)).toEqual([])
})

test('two servers that change many at once, while others take, tell of each change once', async () => {
  await watch('change', 'session')
  const beside = await testApp({ clock, beside: app })
  try {
    const made = await Promise.all(Array.from({ length: 40 }, (_, n) => aUser(n % 2 === 0 ? app : beside)))
    expect(brief(await take())).toEqual(made.flatMap((user) => said(user, 'change')).sort())
    const changes = made.map((user, n) => {
      const server = n % 2 === 0 ? app : beside
      return server.app(user.path, { method: 'PATCH', body: { deltas: { session_count: 1 } } })
    })
    const more = Array.from({ length: 20 }, (_, n) => aUser(n % 2 === 0 ? beside : app))
    const taken = Array.from({ length: 10 }, () => take(7))
    expect((await Promise.all(changes)).every(({ status }) => status === 202)).toBe(true)
    const fresh = await Promise.all(more)
    const news = [...(await Promise.all(taken)).flat(), ...(await take())]
    const expected = [
      ...made.flatMap((user) => said(user, 'change', 'session')),
      ...fresh.flatMap((user) => said(user, 'change')),
    ]
    expect(brief(news)).toEqual(expected.sort())
  } finally {
    await beside.close()
  }
})
