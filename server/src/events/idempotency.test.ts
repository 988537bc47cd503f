// One key is one event for a day, whoever brings it, however often, and however close together.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { ACCEPTED, history, record, runJobs } from '../../test/events.ts'
import { aName, aUser, told } from '../../test/users.ts'
import { type VirtualClock, virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-01-15T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())
beforeEach(() => clock.advance({ minutes: 1 }))

const names = async (user: { path: string }) => (await history(app, user)).map(({ name }) => name)

describe('the same key', () => {
  test('again is accepted and not stored again, whatever else it says and however it is spelled', async () => {
    const [user, other] = [await aUser(app), await aUser(app)]
    const key = newId()
    const send = (event: object) => record(app, [{ external_id: user.externalId, ...event }])
    expect(told(await send({ name: 'first', idempotency_key: key }))).toEqual(ACCEPTED)
    clock.advance({ hours: 1 })
    expect(told(await send({ name: 'first', idempotency_key: key }))).toEqual(ACCEPTED)
    expect(told(await send({ name: 'second', idempotency_key: key.toUpperCase() }))).toEqual(ACCEPTED)
    expect(told(await send({ external_id: other.externalId, idempotency_key: key }))).toEqual(ACCEPTED)
    expect(await names(user)).toEqual(['first'])
    expect(await names(other)).toEqual([])
  })

  test('twice in one request is stored once, the first of them', async () => {
    const user = await aUser(app)
    const [left, right] = [newId(), newId()]
    const of = { external_id: user.externalId }
    const answer = await record(app, [
      { ...of, name: 'a', idempotency_key: left },
      { ...of, name: 'b', idempotency_key: right },
      { ...of, name: 'c', idempotency_key: left },
      { ...of, name: 'd' },
      { ...of, name: 'd' },
    ])
    expect(told(answer)).toEqual(ACCEPTED)
    expect((await names(user)).sort()).toEqual(['a', 'b', 'd', 'd'])
  })

  test('many times at once, on two servers, is stored once', async () => {
    const user = await aUser(app)
    const beside = await testApp({ clock, beside: app })
    try {
      const keys = Array.from({ length: 5 }, () => newId())
      const sends = Array.from({ length: 40 }, (_, n) => {
        // Each in another order, so that servers meet from both sides.
        const events = keys.map((_, i) => ({
          external_id: user.externalId,
          name: `key ${(i + n) % 5}`,
          idempotency_key: keys[(i + n) % 5],
        }))
        return record(n % 2 === 0 ? app : beside, events)
      })
      for (const answer of await Promise.all(sends)) expect(told(answer)).toEqual(ACCEPTED)
      expect((await names(user)).sort()).toEqual(['key 0', 'key 1', 'key 2', 'key 3', 'key 4'])
    } finally {
      await beside.close()
    }
  })

  test('is not taken by an event that is not accepted', async () => {
    const external_id = aName()
    const event = { name: 'early', external_id, idempotency_key: newId() }
    expect((await record(app, [event])).body.errors).toHaveLength(1)
    const user = await aUser(app, { identity: { external_id } })
    expect(told(await record(app, [event]))).toEqual(ACCEPTED)
    expect(await names(user)).toEqual(['early'])
  })

  test('of an unknown user and a known one in one request belongs to the known one', async () => {
    const user = await aUser(app)
    const idempotency_key = newId()
    const answer = await record(app, [
      { external_id: 'nobody', idempotency_key },
      { name: 'known', external_id: user.externalId, idempotency_key },
    ])
    expect(answer.body.errors).toMatchObject([{ event_user_id: 'nobody', event_id: idempotency_key }])
    expect(await names(user)).toEqual(['known'])
  })

  test('of another app is another key', async () => {
    const user = await aUser(app)
    const tenant = await app.anotherTenant()
    const headers = { authorization: `Key ${tenant.key}` }
    await app.request(`/apps/${tenant.id}/users`, { headers, body: { identity: { external_id: 'theirs' } } })
    const idempotency_key = newId()
    await app.request(`/apps/${tenant.id}/custom_events`, {
      headers,
      body: { events: [{ name: 'theirs', external_id: 'theirs', idempotency_key }] },
    })
    await record(app, [{ name: 'ours', external_id: user.externalId, idempotency_key }])
    expect(await names(user)).toEqual(['ours'])
  })
})

describe('a key of the request', () => {
  test('makes a retry harmless: what was stored is not stored again, what failed is tried again', async () => {
    const external_id = aName()
    const user = await aUser(app)
    const events = [
      { name: 'a', external_id: user.externalId },
      { name: 'b', external_id },
      { name: 'c', external_id: user.externalId },
    ]
    const idempotency_key = newId()
    const first = await record(app, events, { idempotency_key })
    expect(first.body.errors).toMatchObject([{ event_user_id: external_id, event_id: null }])
    const late = await aUser(app, { identity: { external_id } })
    expect(told(await record(app, events, { idempotency_key }))).toEqual(ACCEPTED)
    expect(told(await record(app, events, { idempotency_key }))).toEqual(ACCEPTED)
    expect((await names(user)).sort()).toEqual(['a', 'c'])
    expect(await names(late)).toEqual(['b'])
  })

  test('stands behind the keys of the events themselves', async () => {
    const user = await aUser(app)
    const event = { external_id: user.externalId, idempotency_key: newId() }
    await record(app, [event], { idempotency_key: newId() })
    await record(app, [event], { idempotency_key: newId() })
    expect(await names(user)).toHaveLength(1)
  })
})

describe('a day later', () => {
  test('the key is free, to the millisecond, cleaned up or not', async () => {
    const user = await aUser(app)
    const event = { external_id: user.externalId, idempotency_key: newId() }
    await record(app, [event])
    clock.advance({ hours: 24, ms: -1 })
    await runJobs(app, clock)
    await record(app, [event])
    expect(await names(user)).toHaveLength(1)
    clock.advance({ ms: 1 })
    await record(app, [event])
    await record(app, [event])
    expect(await names(user)).toHaveLength(2)
  })

  test('and its row goes; younger ones stay', async () => {
    const user = await aUser(app)
    const send = () => record(app, [{ external_id: user.externalId, idempotency_key: newId() }])
    const count = async () => (await app.db.query<{ n: number }>({ text: COUNT_KEYS, values: [] }))[0]?.n
    clock.advance({ days: 2 })
    await runJobs(app, clock)
    expect(await count()).toBe(0)
    await send()
    clock.advance({ hours: 12 })
    await send()
    await runJobs(app, clock)
    expect(await count()).toBe(2)
    clock.advance({ hours: 12 })
    await runJobs(app, clock)
    expect(await count()).toBe(1)
  })
})

const COUNT_KEYS = 'select count(*) as n from event_keys'
