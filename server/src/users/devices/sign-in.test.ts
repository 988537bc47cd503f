// What an SDK without an identity token can see and do: what it brought itself, and nothing that tells who else is there.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type TestApp, testApp } from '../../../test/app.ts'
import { asDevice } from '../../../test/sdk.ts'
import { aName, anEmail, anId, aPhone, aUser, type MadeUser, problem, told, view } from '../../../test/users.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'

let app: TestApp
let clock: VirtualClock
let device: ReturnType<typeof asDevice>
beforeAll(async () => {
  clock = virtualClock()
  app = await testApp({ clock })
  device = asDevice(app)
})
afterAll(() => app.close())
beforeEach(() => {
  clock.advance({ minutes: 1 })
  clock.advanceLease({ minutes: 1 })
})

const NEEDS_TOKEN = problem(403, 'auth-3', /needs an identity token or an API key$/)
const SUBSCRIPTION_NOT_FOUND = problem(404, 'subscription-0', 'Subscription not found')

/** Somebody of whom much is known. */
async function aVictim() {
  const email = anEmail()
  const phone = aPhone()
  const user = await aUser(app, {
    identity: { crm: aName('crm') },
    properties: { tags: { plan: 'gold' }, lat: 48.1, long: 11.5, ip: '203.0.113.7', purchases: [aPurchase] },
    subscriptions: [
      { type: 'Email', token: email },
      { type: 'SMS', token: phone },
      { type: 'iOSPush', token: aName('token') },
    ],
  })
  return { ...user, email, phone, before: await view(app, user) }
}
const aPurchase = { sku: 'BELL', iso: 'EUR', amount: '9.50', count: 1 }

const unchanged = async (user: MadeUser & { before: unknown }) => expect(await view(app, user)).toEqual(user.before)

/** An install that has not signed in. */
async function anInstall() {
  const token = aName('token')
  const answer = await device('/users', { body: { identity: {}, subscriptions: [{ type: 'AndroidPush', token }] } })
  expect(answer.status).toBe(201)
  const id: string = answer.body.identity.onesignal_id
  return { id, path: `/users/by/onesignal_id/${id}`, token, subscriptionId: answer.body.subscriptions[0].id as string }
}

const aPush = () => ({ type: 'AndroidPush', token: aName('token') })

/** An answer with what is random in it, and what the request itself said, replaced. */
function shapeOf({ status, body }: Answer, ...said: string[]): { status: number; text: string } {
  let text = JSON.stringify(body).replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
  for (const word of said) text = text.replaceAll(word, 'SAID')
  return { status, text: text.replaceAll(/"(ryw_token|first_active|last_active)":("?)\d+\2/g, '"$1":0') }
}

describe('an address', () => {
  test.each(['Email', 'SMS'])('does not lead to its owner: %s', async (type) => {
    const victim = await aVictim()
    const taken = type === 'Email' ? victim.email : victim.phone
    const free = type === 'Email' ? anEmail() : aPhone()
    const ask = (token: string) => device('/users', { body: { identity: {}, subscriptions: [{ type, token }] } })
    const [found, made] = [await ask(taken), await ask(free)]
    expect(shapeOf(found, taken)).toEqual(shapeOf(made, free))
    expect(found.status).toBe(201)
    expect(found.body.identity.onesignal_id).not.toBe(victim.id)
    expect(JSON.stringify(found.body)).not.toMatch(/gold|203\.0|48\.1|BELL/)
    await unchanged(victim)

    // Nor does what was answered: the new owner of a free one and the asker for a taken one are told the same.
    for (const answer of [found, made]) {
      const id = answer.body.subscriptions[0].id
      const path = `/users/by/onesignal_id/${answer.body.identity.onesignal_id}`
      expect(told(await device(`/subscriptions/${id}/user/identity`))).toEqual(SUBSCRIPTION_NOT_FOUND)
      const change = { method: 'PATCH', body: { subscription: { enabled: false } } }
      expect(told(await device(`/subscriptions/${id}`, change))).toEqual(SUBSCRIPTION_NOT_FOUND)
      expect(told(await device(`/subscriptions/${id}`, { method: 'DELETE' }))).toEqual(SUBSCRIPTION_NOT_FOUND)
      const owner = { method: 'PATCH', body: { identity: { external_id: aName() } } }
      expect(told(await device(`/subscriptions/${id}/owner`, owner))).toEqual(SUBSCRIPTION_NOT_FOUND)
      expect(told(await device(`/subscriptions/${id}/iams`))).toEqual(SUBSCRIPTION_NOT_FOUND)
      expect((await device(path)).body.subscriptions).toBeUndefined()
    }
    await unchanged(victim)
  })

  test('that is free goes to the anonymous user whom the request makes, subscribed whatever the device says', async () => {
    const [email, phone] = [anEmail(), aPhone()]
    const made = await device('/users', {
      body: {
        subscriptions: [
          { type: 'Email', token: email, enabled: false },
          { type: 'SMS', token: phone, notification_types: -2 },
        ],
      },
    })
    const user = { path: `/users/by/onesignal_id/${made.body.identity.onesignal_id}` }
    const { subscriptions } = await view(app, user)
    expect(subscriptions.map(({ token }: { token: string }) => token).sort()).toEqual([email, phone].sort())
    for (const it of subscriptions) expect(it).toMatchObject({ enabled: true, notification_types: 1 })
  })

  test('does not wait at an external id for the person to come', async () => {
    const external_id = aName()
    const email = anEmail()
    const body = { identity: { external_id }, subscriptions: [{ type: 'Email', token: email }] }
    expect((await device('/users', { body })).status).toBe(202)
    expect((await view(app, { path: `/users/by/external_id/${external_id}` })).subscriptions).toEqual([])
    const waiting = await device('/users', { body: { subscriptions: [{ type: 'Email', token: email }, aPush()] } })
    const [, push] = waiting.body.subscriptions
    const login = { identity: { external_id: aName() }, subscriptions: [{ id: push.id }] }
    const { onesignal_id } = (await device('/users', { body: login })).body.identity
    const moved = await view(app, { path: `/users/by/onesignal_id/${onesignal_id}` })
    expect(moved.subscriptions.map(({ id }: { id: string }) => id)).toEqual([push.id])
  })

  test('does not show in how many push subscriptions find room', async () => {
    const victim = await aVictim()
    const statuses: number[][] = []
    for (const token of [victim.email, anEmail()]) {
      const many = Array.from({ length: 15 }, aPush)
      const made = await device('/users', { body: { subscriptions: [{ type: 'Email', token }, ...many] } })
      const path = `/users/by/onesignal_id/${made.body.identity.onesignal_id}/subscriptions`
      statuses.push([made.status, (await device(path, { body: { subscription: aPush() } })).status])
    }
    expect(statuses).toEqual([
      [201, 409],
      [201, 409],
    ])
    const six = Array.from({ length: 6 }, () => ({ type: 'Email', token: anEmail() }))
    expect((await device('/users', { body: { subscriptions: six } })).status).toBe(409)
  })

  test('is not looked for when a push subscription is changed', async () => {
    const victim = await aVictim()
    const { subscriptionId, path } = await anInstall()
    const change = { method: 'PATCH', body: { subscription: { type: 'Email', token: victim.email } } }
    expect((await device(`/subscriptions/${subscriptionId}`, change)).status).toBe(400)
    const taken = { method: 'PATCH', body: { subscription: { token: victim.email } } }
    expect((await device(`/subscriptions/${subscriptionId}`, taken)).status).toBe(200)
    const byId = { body: { subscription: { id: subscriptionId, token: victim.phone } } }
    expect((await device(`${path}/subscriptions`, byId)).status).toBe(202)
    await unchanged(victim)
  })

  test('is not given to a user that is there, whether it is taken or free', async () => {
    const victim = await aVictim()
    const user = await aUser(app)
    for (const token of [victim.email, anEmail()]) {
      const body = { identity: { external_id: user.externalId }, subscriptions: [{ type: 'Email', token }] }
      expect((await device('/users', { body })).status).toBe(202)
      const subscription = { subscription: { type: 'Email', token } }
      expect(told(await device(`${user.path}/subscriptions`, { body: subscription }))).toEqual(NEEDS_TOKEN)
    }
    expect((await view(app, user)).subscriptions).toEqual([])
    await unchanged(victim)
  })

  test('cannot be given twice in a request, which would tell whether the first was stored', async () => {
    const token = anEmail()
    const subscriptions = [token, token.toUpperCase()].map((token) => ({ type: 'Email', token }))
    expect((await device('/users', { body: { subscriptions } })).status).toBe(400)
  })

  test('whose subscription id is known from elsewhere is out of reach', async () => {
    const victim = await aVictim()
    const [email] = victim.subscriptionIds
    const answers = [
      await device(`/subscriptions/${email}/user/identity`),
      await device(`/subscriptions/${email}/user/identity`, { method: 'PATCH', body: { identity: { a: 'b' } } }),
      await device(`/subscriptions/${email}`, { method: 'PATCH', body: { subscription: { enabled: false } } }),
      await device(`/subscriptions/${email}`, { method: 'DELETE' }),
      await device(`/subscriptions/${email}/owner`, { method: 'PATCH', body: { identity: { external_id: aName() } } }),
      await device('/users', { body: { identity: { external_id: aName() }, subscriptions: [{ id: email }] } }),
    ]
    for (const answer of answers) expect(told(answer)).toEqual(SUBSCRIPTION_NOT_FOUND)
    await unchanged(victim)
  })
})

describe('an external id', () => {
  test.each([
    ['all of it', ({ token }: { token: string }, id: string) => ({ id, type: 'AndroidPush', token, enabled: true })],
    ['its id alone', (_: object, id: string) => ({ id })],
  ])('is signed in with, taken or free, and the device comes along: %s', async (_, subscriptionOf) => {
    const known = await aVictim()
    const free = aName()
    const answers: Record<string, unknown>[] = []
    for (const externalId of [known.externalId, free]) {
      const install = await anInstall()
      const claim = await device(`${install.path}/identity`, {
        method: 'PATCH',
        body: { identity: { external_id: externalId } },
      })
      const login = await device('/users', {
        body: {
          identity: { external_id: externalId },
          properties: { language: 'en' },
          subscriptions: [subscriptionOf(install, install.subscriptionId)],
        },
      })
      const { onesignal_id } = login.body.identity
      expect(onesignal_id).not.toBe(install.id)
      expect(login.body.subscriptions).toMatchObject([{ id: install.subscriptionId, token: install.token }])
      const { subscriptions } = await view(app, { path: `/users/by/external_id/${externalId}` })
      expect(subscriptions.map(({ id }: { id: string }) => id)).toContain(install.subscriptionId)
      const seen = await device(`/users/by/onesignal_id/${onesignal_id}`)
      const identity = await device(`/users/by/onesignal_id/${onesignal_id}/identity`)
      const said = [externalId, install.token]
      answers.push({
        claim: shapeOf(claim, ...said),
        login: shapeOf(login, ...said),
        seen: shapeOf(seen, ...said),
        identity: shapeOf(identity, ...said),
        before: shapeOf(await device(install.path), ...said),
      })
    }
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]).toMatchObject({ claim: { status: 409 }, login: { status: 202 }, seen: { status: 200 } })
    expect(JSON.stringify(answers)).not.toMatch(/gold|203\.0|48\.1|BELL|crm/)
    const { subscriptions, ...rest } = await view(app, known)
    expect(rest).toEqual({
      identity: known.before.identity,
      properties: { ...known.before.properties, language: 'en' },
    })
    expect(subscriptions).toHaveLength(4)
  })

  test('that is free begins with what the install had', async () => {
    const install = await anInstall()
    const crm = aName('crm')
    await device(install.path, { method: 'PATCH', body: { properties: { tags: { cart: '3' }, country: 'DE' } } })
    await device(`${install.path}/identity`, { method: 'PATCH', body: { identity: { crm } } })
    const external_id = aName()
    const body = {
      identity: { external_id },
      properties: { tags: { page: 'a' } },
      subscriptions: [{ id: install.subscriptionId }],
    }
    const { onesignal_id } = (await device('/users', { body })).body.identity
    expect(await view(app, { path: `/users/by/external_id/${external_id}` })).toMatchObject({
      identity: { onesignal_id, external_id, crm },
      properties: { tags: { cart: '3', page: 'a' }, country: 'DE' },
      subscriptions: [{ id: install.subscriptionId, token: install.token }],
    })
    expect(await view(app, install)).toMatchObject({ identity: { onesignal_id: install.id }, subscriptions: [] })
  })

  test('does not show in what becomes of subscriptions that were not named', async () => {
    const known = await aVictim()
    const shapes: unknown[] = []
    for (const external_id of [known.externalId, aName()]) {
      const install = await anInstall()
      const other = await device(`${install.path}/subscriptions`, { body: { subscription: aPush() } })
      await device('/users', { body: { identity: { external_id }, subscriptions: [{ id: install.subscriptionId }] } })
      const owner = await device(`/subscriptions/${other.body.subscription.id}/user/identity`)
      expect(owner.body.identity).toEqual({ onesignal_id: install.id })
      shapes.push(shapeOf(owner))
    }
    expect(shapes[0]).toEqual(shapes[1])
  })

  test('does not show in the sums of what its user has', async () => {
    const rich = await aUser(app, { properties: { purchases: [aPurchase] } })
    for (const body of [
      { deltas: { session_count: Number.MAX_SAFE_INTEGER - 1 } },
      { deltas: { session_time: Number.MAX_SAFE_INTEGER - 1 } },
      { deltas: { purchases: [{ sku: 'x', iso: 'EUR', amount: '999999999999999', count: 9 }] } },
    ])
      for (const path of [rich.path, (await anInstall()).path])
        expect(told(await device(path, { method: 'PATCH', body }))).toEqual(
          problem(400, 'request-0', /must be (of )?at most/),
        )
    const body = { identity: { external_id: rich.externalId }, properties: { amount_spent: 1_000_000 } }
    expect((await device('/users', { body })).status).toBe(202)
    expect((await view(app, rich)).properties.amount_spent).toBe(9.5)
  })

  test('cannot be renamed, removed or given away', async () => {
    const victim = await aVictim()
    const external_id = aName()
    const path = `${victim.path}/identity`
    const rename = { method: 'PATCH', body: { identity: { external_id } } }
    expect(told(await device(path, rename))).toEqual(
      problem(409, 'user-2', 'One or more Aliases claimed by another User', { external_id }),
    )
    expect(told(await device(`${path}/external_id`, { method: 'DELETE' }))).toEqual(NEEDS_TOKEN)
    expect(told(await device(`${path}/crm`, { method: 'DELETE' }))).toEqual(NEEDS_TOKEN)
    // What is so already may be said again.
    const same = { method: 'PATCH', body: { identity: { external_id: victim.externalId } } }
    expect((await device(path, same)).status).toBe(200)
    await unchanged(victim)
  })

  test('of a transfer is signed in with, taken or free', async () => {
    const known = await aVictim()
    const shapes: unknown[] = []
    for (const external_id of [known.externalId, aName()]) {
      const { subscriptionId } = await anInstall()
      const transfer = { method: 'PATCH', body: { identity: { external_id } } }
      const answer = await device(`/subscriptions/${subscriptionId}/owner`, transfer)
      shapes.push(shapeOf(answer, external_id))
      const owner = await device(`/subscriptions/${subscriptionId}/user/identity`)
      expect(told(owner)).toEqual({ status: 200, body: { identity: { onesignal_id: anId(), external_id } } })
    }
    expect(shapes[0]).toEqual(shapes[1])
  })
})

describe('another alias', () => {
  test('is set where it is free, taken from nobody, and the answer does not say which', async () => {
    const victim = await aVictim()
    const { crm } = victim.before.identity
    const free = aName('crm')
    const shapes: unknown[] = []
    for (const value of [crm, free]) {
      const install = await anInstall()
      const change = { method: 'PATCH', body: { identity: { crm: value } } }
      const path = `${install.path}/identity`
      const bySubscription = `/subscriptions/${install.subscriptionId}/user/identity`
      shapes.push([
        shapeOf(await device(path, change), value),
        shapeOf(await device(bySubscription, change), value),
        shapeOf(await device(path)),
        shapeOf(await device(`${path}/crm`, { method: 'DELETE' })),
        shapeOf(await device('/users', { body: { identity: { crm: value } } }), value),
      ])
    }
    expect(shapes[0]).toEqual(shapes[1])
    await unchanged(victim)
    expect((await view(app, { path: `/users/by/crm/${free}` })).identity.crm).toBe(free)
  })

  test('that a known user has keeps its value', async () => {
    const victim = await aVictim()
    const change = { method: 'PATCH', body: { identity: { crm: aName(), shop: aName() } } }
    expect((await device(`${victim.path}/identity`, change)).status).toBe(200)
    const { crm, shop } = (await view(app, victim)).identity
    expect({ crm, shop }).toEqual({ crm: victim.before.identity.crm, shop: change.body.identity.shop })
  })

  test('names nobody to transfer to', async () => {
    const victim = await aVictim()
    const { subscriptionId } = await anInstall()
    for (const crm of [victim.before.identity.crm, aName()]) {
      const transfer = { method: 'PATCH', body: { identity: { crm } } }
      expect(told(await device(`/subscriptions/${subscriptionId}/owner`, transfer))).toEqual(NEEDS_TOKEN)
    }
  })

  test('beyond the limit is not told of', async () => {
    const full = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`label${i}`, aName()]))
    const user = await aUser(app, { identity: full })
    const change = { method: 'PATCH', body: { identity: { eleventh: aName() } } }
    expect((await device(`${user.path}/identity`, change)).status).toBe(200)
    expect((await view(app, user)).identity.eleventh).toBeUndefined()
  })
})

describe('a user', () => {
  test('is shown without what others brought, and with the subscription that is named', async () => {
    const victim = await aVictim()
    const [email, , push] = victim.subscriptionIds
    const see = async (id?: string) =>
      (await device(victim.path, { headers: id ? { 'onesignal-subscription-id': id } : {} })).body
    const bare = {
      identity: { onesignal_id: victim.id, external_id: victim.externalId },
      properties: {
        tags: {},
        first_active: expect.any(Number),
        last_active: expect.any(Number),
        session_count: 0,
        session_time: 0,
        amount_spent: 0,
        purchases: [],
      },
    }
    for (const id of [undefined, email, 'local-1b0f', (await anInstall()).subscriptionId])
      expect(await see(id)).toEqual(bare)
    expect(await see(push)).toMatchObject({ ...bare, subscriptions: [{ id: push }] })
  })

  test('is answered with what the request set', async () => {
    const victim = await aVictim()
    const change = { properties: { tags: { plan: '', theme: 'dark' }, language: 'de' }, deltas: { session_count: 1 } }
    const answer = await device(victim.path, { method: 'PATCH', body: change })
    expect(answer).toMatchObject({
      status: 202,
      body: { properties: { tags: { theme: 'dark' }, language: 'de', session_count: 1, purchases: [] } },
    })
    expect(answer.body.properties).not.toHaveProperty('lat')
    expect((await view(app, victim)).properties).toMatchObject({ tags: { theme: 'dark' }, language: 'de', lat: 48.1 })
  })

  test('that is anonymous stays one over a lost answer', async () => {
    const { id, token, subscriptionId } = await anInstall()
    const again = await device('/users', { body: { subscriptions: [{ type: 'AndroidPush', token }] } })
    expect(again).toMatchObject({
      status: 202,
      body: { identity: { onesignal_id: id }, subscriptions: [{ id: subscriptionId }] },
    })
  })

  test('is left by signing out, with the subscription', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'ChromePush', token: aName() }] })
    const [id] = user.subscriptionIds
    const out = await device('/users', { body: { identity: {}, subscriptions: [{ id }] } })
    expect(out).toMatchObject({ status: 201, body: { subscriptions: [{ id }] } })
    expect(out.body.identity).toEqual({ onesignal_id: expect.not.stringMatching(user.id) })
    expect((await view(app, user)).subscriptions).toEqual([])
  })

  test('can be nobody at all, as after signing out in a browser that was never subscribed', async () => {
    const out = await device('/users', { body: { identity: {}, subscriptions: [] } })
    expect(told(out)).toMatchObject({ status: 201, body: { identity: { onesignal_id: anId() }, subscriptions: [] } })
  })
})

test('a push token that somebody else has is moved to who has it now, and nobody is told whose it was', async () => {
  const other = await aUser(app, { subscriptions: [{ type: 'iOSPush', token: aName() }] })
  const [{ token }] = (await view(app, other)).subscriptions
  const install = await anInstall()
  const refused = await device(`/subscriptions/${install.subscriptionId}`, {
    method: 'PATCH',
    body: { subscription: { token: install.token } },
  })
  expect(refused.status).toBe(200)
  const made = await device(`${install.path}/subscriptions`, { body: { subscription: { type: 'iOSPush', token } } })
  expect(made).toMatchObject({ status: 202, body: { subscription: { id: other.subscriptionIds[0], token } } })
  const second = await device(`${install.path}/subscriptions`, { body: { subscription: { type: 'iOSPush' } } })
  const taken = await device(`/subscriptions/${second.body.subscription.id}`, {
    method: 'PATCH',
    body: { subscription: { token } },
  })
  expect(told(taken)).toEqual(problem(409, 'subscription-1', 'Another subscription has this token'))
})

describe('limits', () => {
  let limited: TestApp
  beforeAll(async () => {
    limited = await testApp({ clock, limits: 'default' })
  })
  afterAll(() => limited.close())

  /** How many of these are let through in one moment. */
  async function countServed(ask: () => Promise<Answer>): Promise<number> {
    clock.advanceLease({ minutes: 2 })
    for (let n = 0; n < 99; n++) if ((await ask()).status === 429) return n
    return 99
  }

  test('count nobody whom an SDK names without proof, and leave the app’s own requests alone', async () => {
    const { externalId, path } = await aUser(limited)
    const junk = { authorization: 'Bearer a.b.c' }
    const asDeviceOf = asDevice(limited)
    for (const ask of [
      (name: string) => asDeviceOf(`/users/by/external_id/${name}`, { method: 'PATCH', headers: junk, body: {} }),
      (name: string) => asDeviceOf('/users', { body: { identity: { external_id: name }, properties: 5 } }),
    ]) {
      const free = aName()
      expect(await countServed(() => ask(externalId))).toBe(await countServed(() => ask(free)))
      await countServed(() => ask(externalId))
      const update = { method: 'PATCH', body: { properties: { language: 'en' } } }
      expect((await limited.app(path, update)).status).toBe(202)
      expect((await limited.app('/users', { body: { identity: { external_id: externalId } } })).status).toBe(202)
    }
  })

  test('of views are not used up by SDKs', async () => {
    const { path } = await aUser(limited)
    await countServed(() => asDevice(limited)(path))
    expect((await limited.app(path)).status).toBe(200)
  })
})
