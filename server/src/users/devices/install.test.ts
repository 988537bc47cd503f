// One push subscription for an install: who registers again with the id of the install replaces what it had.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { asDevice, SDK } from '../../../test/sdk.ts'
import { aName, anEmail, aUser } from '../../../test/users.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'

let app: TestApp
let clock: VirtualClock
let device: ReturnType<typeof asDevice>
beforeAll(async () => {
  clock = virtualClock()
  app = await testApp({ clock })
  device = asDevice(app)
})
afterAll(() => app.close())
beforeEach(() => clock.advanceLease({ minutes: 1 }))

const aPush = () => ({ type: 'AndroidPush', token: aName('token') })
const of = (install: string) => ({ 'onesignal-install-id': install })

/** Create user, as an SDK on this install does; the id of its push subscription. */
async function register(install: string, body: object = {}): Promise<{ user: string; subscription: string }> {
  const answer = await device('/users', { headers: of(install), body: { subscriptions: [aPush()], ...body } })
  expect([201, 202]).toContain(answer.status)
  return { user: answer.body.identity.onesignal_id, subscription: answer.body.subscriptions.at(-1).id }
}

type Row = { id: string; notificationTypes: number | null; installId: string | null }
async function rowsOf(...ids: string[]): Promise<Row[]> {
  const rows = await app.db.query<Row>(sql`
    select id, notification_types, install_id from subscriptions
    where app_id = ${app.tenant.id} and id = any(${ids}::uuid[])`)
  return ids.flatMap((id) => rows.find((row) => row.id === id) ?? [])
}
const typesOf = async (...ids: string[]) => (await rowsOf(...ids)).map((row) => row.notificationTypes)
const countOf = async (install: string) =>
  (await app.db.query(sql`select id from subscriptions where app_id = ${app.tenant.id} and install_id = ${install}`))
    .length

const RETIRED = -10

describe('an install', () => {
  test('that registers a new push token retires the subscription it had', async () => {
    const install = randomUUID()
    const first = await register(install)
    const second = await register(install)
    const third = await register(install.toUpperCase())
    expect(await rowsOf(first.subscription, second.subscription, third.subscription)).toEqual([
      { id: first.subscription, notificationTypes: RETIRED, installId: null },
      { id: second.subscription, notificationTypes: RETIRED, installId: null },
      { id: third.subscription, notificationTypes: null, installId: install },
    ])
  })

  test('on which another user logs in retires what the one before had there', async () => {
    const install = randomUUID()
    const ann = await register(install, { identity: { external_id: aName('ann') } })
    const bob = await register(install, { identity: { external_id: aName('bob') } })
    expect(bob.user).not.toBe(ann.user)
    expect(await typesOf(ann.subscription, bob.subscription)).toEqual([RETIRED, null])
  })

  test('that adds a subscription, or tells the token of one, retires the others', async () => {
    const install = randomUUID()
    const first = await register(install)
    const added = await device(`/users/by/onesignal_id/${first.user}/subscriptions`, {
      headers: of(install),
      body: { subscription: aPush() },
    })
    expect(added.status).toBe(201)
    const second: string = added.body.subscription.id
    expect(await typesOf(first.subscription, second)).toEqual([RETIRED, null])
    // The first one comes back to life, as after a restored backup.
    const again = await device(`/subscriptions/${first.subscription}`, {
      method: 'PATCH',
      headers: of(install),
      body: { subscription: { token: aName('token'), notification_types: 1 } },
    })
    expect(again.status).toBe(200)
    expect(await typesOf(first.subscription, second)).toEqual([1, RETIRED])
  })

  test('keeps the subscription that it names again, whoever logs in with it', async () => {
    const install = randomUUID()
    const push = aPush()
    const first = await register(install, { subscriptions: [push] })
    const again = await register(install, { identity: { external_id: aName() }, subscriptions: [push] })
    const byId = { subscriptions: [{ id: first.subscription }] }
    const named = await register(install, { identity: { external_id: aName() }, ...byId })
    expect([again.subscription, named.subscription]).toEqual([first.subscription, first.subscription])
    expect(await rowsOf(first.subscription)).toEqual([
      { id: first.subscription, notificationTypes: null, installId: install },
    ])
  })

  test('keeps both push subscriptions of one request', async () => {
    const install = randomUUID()
    const { body } = await device('/users', { headers: of(install), body: { subscriptions: [aPush(), aPush()] } })
    const ids = body.subscriptions.map(({ id }: { id: string }) => id)
    expect(await typesOf(...ids)).toEqual([null, null])
    const next = await register(install)
    expect(await typesOf(...ids, next.subscription)).toEqual([null, RETIRED, null])
  })

  test('that registers many times at once, on two servers, keeps one', async () => {
    const install = randomUUID()
    const second = await testApp({ clock, beside: app })
    const devices = [device, asDevice(second)]
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        devices[i % 2]?.('/users', {
          headers: of(install),
          body:
            i % 3 === 0
              ? { identity: { external_id: aName() }, subscriptions: [aPush()] }
              : { subscriptions: [aPush()] },
        }),
      ),
    )
    await second.close()
    expect(answers.map((it) => it?.status).filter((status) => status !== 201 && status !== 202)).toEqual([])
    const types = await typesOf(...answers.map((it) => it?.body.subscriptions[0].id))
    expect(types.filter((type) => type === null)).toHaveLength(1)
    expect(types.filter((type) => type === RETIRED)).toHaveLength(23)
    expect(await countOf(install)).toBe(1)
  })

  test('counts what it retires as not subscribed', async () => {
    const counts = async () =>
      (
        await app.db.query<{ subscribed: number }>(sql`
        select sum(subscribed)::integer as subscribed from player_counts where app_id = ${app.tenant.id}`)
      )[0]?.subscribed
    const install = randomUUID()
    await register(install)
    const before = await counts()
    await register(install)
    expect(await counts()).toBe(before)
  })
})

describe('the id of an install', () => {
  test('is in no answer', async () => {
    const install = randomUUID()
    const headers = of(install)
    const external_id = aName()
    const made = await device('/users', { headers, body: { identity: { external_id }, subscriptions: [aPush()] } })
    const id = made.body.subscriptions[0].id
    const answers = [
      made,
      await device(`/users/by/onesignal_id/${made.body.identity.onesignal_id}`, { headers }),
      await app.app(`/users/by/external_id/${external_id}`),
      await app.request(`/players/${id}?app_id=${app.tenant.id}`),
    ]
    for (const { body } of answers) expect(JSON.stringify(body)).not.toContain(install)
  })

  test.each(['00000000-0000-0000-0000-000000000000', '11111111-1111-1111-8111-111111111111', 'install', ''])(
    '%j, which is not random, is ignored: it may be that of many',
    async (install) => {
      const [first, second] = [await register(install), await register(install)]
      expect(await rowsOf(first.subscription, second.subscription)).toMatchObject([
        { notificationTypes: null, installId: null },
        { notificationTypes: null, installId: null },
      ])
    },
  )

  test('is ignored in requests of a key, which speaks for no device', async () => {
    const install = randomUUID()
    const first = await register(install)
    await app.app('/users', {
      headers: of(install),
      body: { identity: { external_id: aName() }, subscriptions: [aPush()] },
    })
    expect(await typesOf(first.subscription)).toEqual([null])
  })

  test('retires nobody in another app, and no address', async () => {
    const install = randomUUID()
    const first = await register(install)
    const other = await app.anotherTenant()
    const elsewhere = await app.request(`/apps/${other.id}/users`, {
      headers: { ...SDK, ...of(install) },
      body: { subscriptions: [aPush()] },
    })
    expect(elsewhere.status).toBe(201)
    const email = { subscriptions: [{ type: 'Email', token: anEmail() }] }
    expect((await device('/users', { headers: of(install), body: email })).status).toBe(201)
    expect(await rowsOf(first.subscription)).toMatchObject([{ notificationTypes: null, installId: install }])
  })
})

describe('the limit of 20 subscriptions', () => {
  test('keeps nobody out because of retired ones', async () => {
    const install = randomUUID()
    const external_id = aName()
    const made = []
    for (let i = 0; i < 25; i++) {
      clock.advance({ seconds: 1 })
      made.push((await register(install, { identity: { external_id } })).subscription)
    }
    const left = await rowsOf(...made)
    expect(left).toHaveLength(15)
    expect(left.map(({ notificationTypes }) => notificationTypes)).toEqual([...Array(14).fill(RETIRED), null])
    expect(left.map(({ id }) => id)).toEqual(made.slice(-15))
  })

  test('holds for those that are not, by a key and by a device', async () => {
    const user = await aUser(app, { subscriptions: Array.from({ length: 20 }, aPush) })
    const add = () => app.app(`${user.path}/subscriptions`, { body: { subscription: aPush() } })
    expect((await add()).status).toBe(409)
    const [gone] = user.subscriptionIds as [string]
    await app.app(`/subscriptions/${gone}`, {
      method: 'PATCH',
      body: { subscription: { notification_types: RETIRED } },
    })
    expect((await add()).status).toBe(201)
    expect(await rowsOf(gone)).toEqual([])
    expect((await add()).status).toBe(409)
  })
})
