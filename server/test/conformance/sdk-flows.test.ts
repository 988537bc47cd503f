// The requests that OneSignal's own SDKs make, in their order and with their bodies: Android 5.9, iOS 5.5 and Web 16 without
// a key, Android with identity tokens. What each needs of an answer to go on is what is asserted.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SYSTEM } from '../../src/apps/app.ts'
import { setApp } from '../../src/apps/create.ts'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { type Answer, type TestApp, testApp } from '../app.ts'
import { createSigner, SDK } from '../sdk.ts'
import { aName, anEmail, anId, aUser, view } from '../users.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock()
  app = await testApp({ clock })
})
afterAll(() => app.close())
beforeEach(() => {
  clock.advance({ minutes: 1 })
  clock.advanceLease({ minutes: 1 })
})

const RYW = expect.stringMatching(/^\d{16}$/)

type Device = {
  name: string
  /** A push subscription as this SDK describes it, before there is permission. */
  subscription: () => Record<string, unknown>
  /** What it puts into every Create user, apart from identity and subscriptions. */
  rest: object
  /** How an anonymous user's identity is given. */
  nobody: object
  /** What is sent of the subscription when somebody signs in or out. */
  brought: (subscription: Record<string, unknown>, id: string) => object
  /** Which requests name the subscription in a header. */
  named: { create: boolean; view: boolean; session: boolean }
  headers: Record<string, string>
}

const devices: Device[] = [
  {
    name: 'Android',
    subscription: () => ({
      type: 'AndroidPush',
      token: aName('fcm'),
      enabled: false,
      notification_types: 0,
      sdk: '050909',
      device_model: 'Pixel',
      device_os: '14',
      rooted: false,
      net_type: 0,
      carrier: '',
      app_version: '1',
    }),
    rest: { properties: { timezone_id: 'Europe/Berlin', language: 'en' }, refresh_device_metadata: true },
    nobody: {},
    brought: (subscription, id) => ({ ...subscription, id }),
    named: { create: true, view: true, session: true },
    headers: { ...SDK, 'sdk-version': 'onesignal/android/050909', 'onesignal-install-id': newId() },
  },
  {
    name: 'iOS',
    subscription: () => ({
      type: 'iOSPush',
      token: aName('apns'),
      enabled: false,
      test_type: 1,
      device_os: '17.5',
      sdk: '050506',
      device_model: 'iPhone15,2',
      app_version: '1.0',
      net_type: 0,
      notification_types: -18,
    }),
    rest: { properties: { language: 'en-US', timezone_id: 'Europe/Berlin' }, refresh_device_metadata: true },
    nobody: { identity: {} },
    brought: (subscription, id) => ({ ...subscription, id }),
    named: { create: true, view: false, session: true },
    headers: { ...SDK, 'sdk-version': 'onesignal/ios/050506' },
  },
  {
    name: 'Web',
    subscription: () => ({
      type: 'ChromePush',
      token: `https://fcm.example.com/${aName()}`,
      enabled: true,
      notification_types: 1,
      device_model: 'MacIntel',
      device_os: '126',
      sdk: '160608',
      web_auth: 'auth',
      web_p256: 'p256',
    }),
    rest: { properties: { timezone_id: 'Europe/Berlin', language: 'en' }, refresh_device_metadata: true },
    nobody: { identity: {} },
    brought: (_, id) => ({ id }),
    named: { create: false, view: false, session: true },
    headers: { ...SDK, 'sdk-version': 'onesignal/web/160608' },
  },
]

/** No null in it, for which Android drops the whole operation; an object, as iOS needs; aliases and tags are texts. */
function expectFit({ body }: Answer) {
  expect(body).toEqual(expect.any(Object))
  expect(Array.isArray(body)).toBe(false)
  expect(JSON.stringify(body)).not.toContain('null')
  for (const texts of [body.identity, body.properties?.tags])
    for (const value of Object.values(texts ?? {})) expect(value).toEqual(expect.any(String))
}

describe.each(devices)('$name', ({ subscription: make, rest, nobody, brought, named, headers }) => {
  const send = async (
    method: string,
    path: string,
    body?: object,
    { subscriptionId }: { subscriptionId?: string | false } = {},
  ) => {
    const more: Record<string, string> = subscriptionId ? { 'onesignal-subscription-id': subscriptionId } : {}
    const answer = await app.app(path, { method, headers: { ...headers, ...more }, ...(body && { body }) })
    expectFit(answer)
    return answer
  }

  /** A first start. */
  async function start() {
    const subscription = make()
    const local = { subscriptionId: named.create && `local-${newId()}` }
    const made = await send('POST', '/users', { ...nobody, subscriptions: [subscription], ...rest }, local)
    expect(made).toMatchObject({
      status: 201,
      body: { identity: { onesignal_id: anId() }, subscriptions: [{ ...subscription, id: anId() }], ryw_token: RYW },
    })
    const id: string = made.body.subscriptions[0].id
    return { subscription, id, path: pathOf(made) }
  }
  const pathOf = ({ body }: Answer) => `/users/by/onesignal_id/${body.identity.onesignal_id}`

  /** As all three do it: the alias, which is told to be somebody's, then Create user, then the user as it is. */
  async function signIn(
    install: { subscription: Record<string, unknown>; id: string; path: string },
    external_id: string,
  ) {
    const claim = await send('PATCH', `${install.path}/identity`, { identity: { external_id } })
    expect(claim).toMatchObject({ status: 409, body: { errors: [{ code: 'user-2' }] } })
    const login = await send(
      'POST',
      '/users',
      { identity: { external_id }, subscriptions: [brought(install.subscription, install.id)], ...rest },
      { subscriptionId: named.create && install.id },
    )
    expect(login).toMatchObject({
      status: 202,
      body: { identity: { external_id }, subscriptions: [{ id: install.id, type: install.subscription.type }] },
    })
    const path = pathOf(login)
    const seen = await send('GET', path, undefined, { subscriptionId: named.view && install.id })
    expect(seen).toMatchObject({ status: 200, body: { identity: { external_id } } })
    // iOS takes a list without its own subscription for the loss of it.
    if (seen.body.subscriptions) expect(seen.body.subscriptions).toMatchObject([{ id: install.id }])
    return path
  }

  test('starts, counts a session, shows in-app messages, and is given permission', async () => {
    const { subscription, id, path } = await start()
    const session = { refresh_device_metadata: true, deltas: { session_count: 1 } }
    const counted = await send('PATCH', path, session, { subscriptionId: named.session && id })
    // Without the token mobile SDKs never ask for in-app messages.
    expect(counted).toMatchObject({ status: 202, body: { ryw_token: RYW } })
    expect((await send('GET', `/subscriptions/${id}/iams`)).body).toEqual({ in_app_messages: [] })

    const { type: _, ...fields } = subscription
    const granted = { ...fields, token: aName('new-token'), enabled: true, notification_types: 1 }
    const changed = await send('PATCH', `/subscriptions/${id}`, { subscription: granted })
    expect(changed).toMatchObject({ status: 200, body: { subscription: { id }, ryw_token: RYW } })
    const kept = await view(app, { path })
    expect(kept).toMatchObject({ properties: { session_count: 1 }, subscriptions: [granted] })
  })

  test('signs in as somebody who is known: the subscription moves, the anonymous user stays behind', async () => {
    const known = await aUser(app, { properties: { tags: { plan: 'gold' } } })
    const install = await start()
    expect(await signIn(install, known.externalId)).toBe(known.path)
    expect((await view(app, known)).subscriptions).toMatchObject([{ id: install.id }])
    expect((await view(app, install)).subscriptions).toEqual([])
  })

  test('signs in as somebody new, with what the anonymous user had', async () => {
    const install = await start()
    await send('PATCH', install.path, { refresh_device_metadata: false, properties: { tags: { cart: '3' } } })
    const external_id = aName()
    const path = await signIn(install, external_id)
    expect(await view(app, { path })).toMatchObject({
      identity: { external_id },
      properties: { tags: { cart: '3' } },
      subscriptions: [{ id: install.id }],
    })
  })

  test('signs in as another person, and out', async () => {
    const install = await start()
    const [one, two] = [aName(), aName()]
    const first = await signIn(install, one)
    const body = { identity: { external_id: two }, subscriptions: [brought(install.subscription, install.id)], ...rest }
    const login = await send('POST', '/users', body)
    expect(login).toMatchObject({ status: 202, body: { subscriptions: [{ id: install.id }] } })
    expect((await view(app, { path: first })).subscriptions).toEqual([])

    const out = await send('POST', '/users', {
      ...nobody,
      subscriptions: [brought(install.subscription, install.id)],
      ...rest,
    })
    expect(out).toMatchObject({ status: 201, body: { subscriptions: [{ id: install.id }] } })
    expect(out.body.identity.external_id).toBeUndefined()
    expect(pathOf(out)).not.toBe(pathOf(login))
    expect((await view(app, { path: pathOf(login) })).subscriptions).toEqual([])
  })

  test('sets and removes tags and aliases', async () => {
    const { path } = await start()
    for (const tags of [{ a: '1', b: '2' }, { a: null }, { b: '' }]) {
      const answer = await send('PATCH', path, { refresh_device_metadata: false, properties: { tags } })
      expect(answer.status).toBe(202)
    }
    expect((await view(app, { path })).properties.tags).toEqual({})
    const crm = aName()
    expect((await send('PATCH', `${path}/identity`, { identity: { crm } })).body.identity).toMatchObject({ crm })
    expect((await view(app, { path })).identity.crm).toBe(crm)
    expect((await send('DELETE', `${path}/identity/crm`)).status).toBe(200)
    expect((await view(app, { path })).identity.crm).toBeUndefined()
  })

  test('gives an address only with proof; without it the SDK drops the request and goes on', async () => {
    const { path } = await start()
    const subscription = { type: 'Email', token: anEmail(), enabled: true }
    expect((await send('POST', `${path}/subscriptions`, { subscription })).status).toBe(403)
    expect((await send('PATCH', path, { properties: { tags: { still: 'here' } } })).status).toBe(202)
  })

  test('finds its subscription again by its token, with the same id', async () => {
    const { subscription, id, path } = await start()
    const again = await send('POST', `${path}/subscriptions`, { subscription })
    expect(again).toMatchObject({ status: 202, body: { subscription: { id, ryw_token: RYW }, ryw_token: RYW } })
  })

  test('makes itself anew after the server lost it', async () => {
    const { subscription } = await start()
    const lost = { ...subscription, id: newId(), token: aName('token') }
    const made = await send('POST', '/users', { ...nobody, subscriptions: [lost], ...rest })
    expect(made).toMatchObject({ status: 201, body: { subscriptions: [{ id: anId(), token: lost.token }] } })
  })

  test('sends events by the id of its user', async () => {
    const { path } = await start()
    const onesignal_id = path.split('/').at(-1)
    const event = { name: 'opened', onesignal_id, timestamp: clock.now().toISOString(), payload: { os_sdk: {} } }
    expect((await send('POST', '/custom_events', { events: [event] })).status).toBe(202)
  })
})

test('browsers that sign in before they may send have subscriptions of their own', async () => {
  const { headers, rest } = devices[2] as Device
  const external_id = aName()
  const subscription = { type: 'ChromePush', token: '', enabled: false, device_model: 'MacIntel', sdk: '160608' }
  const signIn = () =>
    app.app('/users', { headers, body: { identity: { external_id }, subscriptions: [subscription], ...rest } })
  const [one, two] = [await signIn(), await signIn()]
  expect(one.body.identity).toEqual(two.body.identity)
  expect(one.body.subscriptions[0].id).not.toBe(two.body.subscriptions[0].id)
})

test('Android with identity tokens names its user by external id', async () => {
  const signer = createSigner()
  const { id: appId, key } = await app.anotherTenant()
  const settings = { identityPublicKey: signer.publicKey, identityRequired: true }
  await setApp({ db: app.db, clock }, appId, settings, SYSTEM)
  const { headers, subscription: make, rest } = devices[0] as Device
  const external_id = aName()
  const send = (method: string, path: string, body?: object, isSigned = true) =>
    app.request(`/apps/${appId}${path}`, {
      method,
      headers: {
        ...headers,
        ...(isSigned && { authorization: `Bearer ${signer.token(appId, external_id, clock.now())}` }),
      },
      ...(body && { body }),
    })
  expect((await send('POST', '/users', { subscriptions: [make()], ...rest }, false)).status).toBe(401)
  const subscription = make()
  const login = await send('POST', '/users', { identity: { external_id }, subscriptions: [subscription], ...rest })
  expect(login).toMatchObject({ status: 201, body: { identity: { external_id } } })
  const id: string = login.body.subscriptions[0].id

  const path = `/users/by/external_id/${external_id}`
  const email = anEmail()
  clock.advance({ minutes: 1 })
  const answers = [
    await send('PATCH', path, { properties: { tags: { plan: 'gold' } }, deltas: { session_count: 1 } }),
    await send('POST', `${path}/subscriptions`, { subscription: { type: 'Email', token: email, enabled: true } }),
    await send('PATCH', `${path}/identity`, { identity: { crm: aName() } }),
    await send('DELETE', `${path}/identity/crm`),
    await send('GET', `${path}/subscriptions/${id}/iams`),
    await send('POST', '/custom_events', { events: [{ name: 'opened', external_id }] }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([202, 201, 200, 200, 200, 202])
  // The person sees all of themselves.
  expect(await send('GET', path)).toMatchObject({
    status: 200,
    body: { properties: { tags: { plan: 'gold' } }, subscriptions: [{ id }, { token: email }] },
  })
  const out = { subscription: { enabled: false, notification_types: -2 } }
  expect((await send('PATCH', `/subscriptions/${id}`, out)).status).toBe(200)
  const kept = await app.request(`/apps/${appId}/users/by/external_id/${external_id}`, {
    headers: { authorization: `Key ${key}` },
  })
  expect(kept.body.subscriptions).toMatchObject([{ id, enabled: false }, { token: email }])
})
