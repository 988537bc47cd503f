import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { history, record, runJobs } from '../../test/events.ts'
import { aUser, told, USER_NOT_FOUND } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const remove = (user: { path: string }) => app.app(user.path, { method: 'DELETE' })
const count = async (user: { id: string }) => {
  const text = 'select count(*) as n from events where user_id = $1'
  return (await app.db.query<{ n: number }>({ text, values: [user.id] }))[0]?.n
}

test('the events of a deleted user are seen no more at once, and gone a minute later; others stay', async () => {
  const [user, other] = [await aUser(app), await aUser(app)]
  await record(app, [
    { external_id: user.externalId },
    { external_id: user.externalId, timestamp: '2029-06-01T00:00:00Z' },
    { external_id: other.externalId },
  ])
  expect((await remove(user)).status).toBe(202)
  expect(told(await app.app(`${user.path}/custom_events`))).toEqual(USER_NOT_FOUND)
  clock.advance({ seconds: 59 })
  await runJobs(app, clock)
  expect(await count(user)).toBe(2)
  clock.advance({ seconds: 1 })
  await runJobs(app, clock)
  expect(await count(user)).toBe(0)
  expect(await history(app, other)).toHaveLength(1)
})

test('an event for a deleted user is not accepted, and not for its namesake', async () => {
  const user = await aUser(app)
  await remove(user)
  const late = { external_id: user.externalId }
  expect((await record(app, [late, { onesignal_id: user.id }])).body.errors).toHaveLength(2)
  const namesake = await aUser(app, { identity: late })
  await record(app, [late])
  clock.advance({ minutes: 1 })
  await runJobs(app, clock)
  expect(await history(app, namesake)).toHaveLength(1)
})

test('events that come while users are deleted leave nothing behind', async () => {
  const users = await Promise.all(Array.from({ length: 20 }, () => aUser(app)))
  await Promise.all(
    users.flatMap((user) => [
      record(app, [{ onesignal_id: user.id }]),
      record(app, [{ external_id: user.externalId }]),
      remove(user),
      record(app, [{ onesignal_id: user.id }]),
    ]),
  )
  clock.advance({ minutes: 1 })
  await runJobs(app, clock)
  for (const user of users) expect(await count(user)).toBe(0)
})

test('a refused deletion forgets nothing', async () => {
  const user = await aUser(app)
  await record(app, [{ external_id: user.externalId }])
  expect((await app.app('/users/by/external_id/nobody-at-all', { method: 'DELETE' })).status).toBe(404)
  clock.advance({ minutes: 1 })
  await runJobs(app, clock)
  expect(await history(app, user)).toHaveLength(1)
})
