import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SYSTEM } from '../../src/apps/app.ts'
import { createApp, setApp } from '../../src/apps/create.ts'
import { issueKey, revokeKey } from '../../src/apps/keys/keys.ts'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { type TestApp, testApp } from '../app.ts'
import { aName, aNamelessUser, anEmail, aUser, NOBODY, problem, SUBSCRIPTION_NOT_FOUND, told } from '../users.ts'
import { operations, requestOf } from './operations.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())
// One address may come without a key so many times in a second; on this clock a second passes when it is told to.
beforeEach(() => clock.advanceLease({ seconds: 1 }))

const ctx = () => ({ db: app.db, clock })
const MISSING = problem(401, 'auth-1', "This operation requires 'Authorization' in the HTTP header")
const DENIED =
  "Access denied.  Please include an 'Authorization: ...' header with a valid API key (https://documentation.onesignal.com/docs/en/keys-and-ids#api-keys)."
const OUR_PAGE = 'What this server takes for a key is explained at /docs/accounts-and-keys#section-keys-ids'
const REFERENCE = ['/docs/accounts-and-keys#section-keys-ids']
const denied = (family: 'users' | 'legacy') => ({
  status: 401,
  body: { ...(family === 'legacy' && { success: false }), errors: [DENIED, OUR_PAGE], reference: REFERENCE },
})

const ask = (operation: (typeof operations)[number], appId: string, authorization: string) =>
  app.request(operation.path(appId), requestOf(operation, appId, { authorization }))

describe('the header', () => {
  test.each(operations)('$name without it is an auth-1', async (operation) => {
    expect(told(await ask(operation, app.tenant.id, ''))).toEqual(MISSING)
  })

  test.each(operations)('$name with an unknown key is denied, with a reference', async (operation) => {
    for (const authorization of [`Key ${'x'.repeat(60)}`, `Key ${app.tenant.key.slice(0, -1)}`, app.tenant.key, 'Key'])
      expect(told(await ask(operation, app.tenant.id, authorization))).toEqual(denied(operation.family))
  })

  test.each(operations)('$name takes the app key after Key and after Basic', async (operation) => {
    for (const scheme of ['Key', 'key', 'Basic']) {
      const { status, body } = await ask(operation, app.tenant.id, `${scheme} ${app.tenant.key}`)
      expect([200, 201, 202, 404]).toContain(status)
      expect(JSON.stringify(body)).not.toContain('app-0')
    }
  })

  test('without it nothing is done', async () => {
    const external_id = aName()
    await app.app('/users', { headers: { authorization: '' }, body: { identity: { external_id } } })
    expect((await app.app(`/users/by/external_id/${external_id}`)).status).toBe(404)
  })

  test('a revoked key is dead at once', async () => {
    const scope = { kind: 'app' as const, appId: app.tenant.id }
    const { key, keyId } = await issueKey(ctx(), scope, { name: 'short-lived' }, SYSTEM)
    const look = () => app.app('/users/by/external_id/x', { headers: { authorization: `Key ${key}` } })
    expect((await look()).status).toBe(404)
    await revokeKey(ctx(), scope, keyId, SYSTEM)
    // Past the age to which a key is remembered, whether or not the notice has arrived.
    clock.advanceLease({ seconds: 5 })
    expect(told(await look())).toEqual(denied('users'))
  })
})

describe('what a key reaches', () => {
  test.each(operations)('$name: an app of somebody else looks like one that is not there', async (operation) => {
    const other = await app.anotherTenant()
    const foreign = await ask(operation, other.id, `Key ${app.tenant.key}`)
    const missing = await ask(operation, newId(), `Key ${app.tenant.key}`)
    expect(told(foreign)).toEqual(told(missing))
    if (operation.name === 'Add a player') expect(told(foreign)).toEqual(denied('legacy'))
    else if (operation.family === 'legacy')
      expect(told(foreign)).toEqual({ status: 404, body: { success: false, errors: ['App not found'] } })
    else expect(told(foreign)).toEqual(problem(404, 'app-0', 'App not found'))
  })

  test.each(operations)('$name refuses an organization key and a key without the permission', async (operation) => {
    const scope = { kind: 'app' as const, appId: (await app.anotherTenant()).id }
    const { key } = await issueKey(ctx(), scope, { name: 'few', permissions: ['journeys:view'] }, SYSTEM)
    const expected = (title: string) =>
      operation.family === 'legacy'
        ? { status: 403, body: { success: false, errors: [title] } }
        : problem(403, 'auth-3', title)
    expect(told(await ask(operation, scope.appId, `Key ${key}`))).toEqual(
      expected('This key does not have the permission "users"'),
    )
    expect(told(await ask(operation, app.tenant.id, `Key ${app.tenant.organizationKey}`))).toEqual(
      expected('This operation needs an app key'),
    )
  })

  test('a key of a sibling app does not reach', async () => {
    const sibling = await createApp(ctx(), app.tenant.organizationId, { name: 'Sibling' }, SYSTEM)
    const answer = await app.request(`/apps/${sibling}/users`, { body: { identity: { external_id: 'x' } } })
    expect(told(answer)).toEqual(problem(404, 'app-0', 'App not found'))
  })
})

const SDK = { accept: 'application/vnd.onesignal.v1+json', 'sdk-version': 'onesignal/web/160608', authorization: '' }

describe('SDKs without a key', () => {
  test.each(operations)('$name', async (operation) => {
    const request = requestOf(operation, app.tenant.id, SDK)
    const answer = await app.request(operation.path(app.tenant.id), request)
    if (!operation.keyless) expect(told(answer)).toEqual(MISSING)
    else expect([200, 201, 202, 403, 404]).toContain(answer.status)
  })

  test.each([
    ['no Accept', { 'sdk-version': SDK['sdk-version'] }],
    ['another Accept', { ...SDK, accept: 'application/json' }],
    ['no SDK-Version', { accept: SDK.accept }],
    ['a strange SDK-Version', { ...SDK, 'sdk-version': 'curl/8' }],
  ])('need both markers: %s', async (_, headers) => {
    const body = { identity: { external_id: aName() } }
    expect(told(await app.app('/users', { headers: { ...headers, authorization: '' }, body }))).toEqual(MISSING)
  })

  test.each([
    ['GET', ''],
    ['PATCH', ''],
    ['GET', '/identity'],
    ['PATCH', '/identity'],
    ['DELETE', '/identity/crm'],
    ['POST', '/subscriptions'],
  ])('name a user by onesignal_id alone: %s %s', async (method, rest) => {
    const user = await aNamelessUser(app)
    const bodies: Record<string, object> = {
      '': { properties: { language: 'en' } },
      '/identity': { identity: { shop: aName() } },
      '/subscriptions': { subscription: { type: 'AndroidPush', token: aName() } },
    }
    const body = method === 'GET' || method === 'DELETE' ? undefined : bodies[rest]
    const request = { method, headers: SDK, ...(body && { body }) }
    expect((await app.app(`${user.path}${rest}`, request)).status).toBeLessThan(300)
    const named = await aUser(app, { identity: { crm: aName() } })
    expect(told(await app.app(`/users/by/external_id/${named.externalId}${rest}`, request))).toEqual(MISSING)
  })

  test('an app may shut the door, and an app that is not there looks the same', async () => {
    const shut = await createApp(ctx(), app.tenant.organizationId, { name: 'Shut', keylessSdk: false }, SYSTEM)
    for (const id of [shut, NOBODY])
      expect(told(await app.request(`/apps/${id}/users/by/onesignal_id/${NOBODY}`, { headers: SDK }))).toEqual(MISSING)
  })
})

type Signed = { alg?: string; claims?: Record<string, unknown>; key?: KeyObject }

describe.each(['ES256', 'RS256'])('identity verification with %s', (alg) => {
  const pair = (kind: string) =>
    kind === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys = pair(alg)
  const identityPublicKey = keys.publicKey.export({ type: 'spki', format: 'pem' }) as string
  let appId: string
  let appKey: string
  beforeAll(async () => {
    const settings = { name: 'Verified', identityRequired: true, identityPublicKey }
    appId = await createApp(ctx(), app.tenant.organizationId, settings, SYSTEM)
    appKey = (await issueKey(ctx(), { kind: 'app', appId }, { name: 'x' }, SYSTEM)).key
  })

  function token(externalId: string, { alg: named = alg, claims = {}, key = keys.privateKey }: Signed = {}) {
    const seconds = clock.now().getTime() / 1000
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const payload = { iss: appId, exp: seconds + 60, identity: { external_id: externalId }, ...claims }
    const data = `${encode({ alg: named, typ: 'JWT' })}.${encode(payload)}`
    return `${data}.${sign('sha256', Buffer.from(data), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  const as = (jwt: string) => ({ ...SDK, authorization: `Bearer ${jwt}` })
  const request = (path: string, headers: Record<string, string>, method = 'GET', body?: object) =>
    app.request(`/apps/${appId}${path}`, { method, headers, ...(body && { body }) })
  async function aVerifiedUser() {
    const external_id = aName()
    const body = { identity: { external_id }, subscriptions: [{ type: 'Email', token: anEmail() }] }
    const made = await request('/users', as(token(external_id)), 'POST', body)
    expect(made.status).toBe(201)
    const path = `/users/by/onesignal_id/${made.body.identity.onesignal_id}`
    return { external_id, path, subscriptionId: made.body.subscriptions[0].id as string }
  }
  const FORBIDDEN = problem(403, 'auth-3', 'The identity token is for another user')
  const BAD_TOKEN = problem(401, 'auth-4', 'The identity token is not valid or has expired')

  test('the token opens what belongs to its user', async () => {
    const { external_id, path, subscriptionId } = await aVerifiedUser()
    const headers = as(token(external_id))
    const change = { subscription: { sdk: '5' } }
    const answers = [
      await request(path, headers),
      await request(`${path}/identity`, headers),
      await request(path, headers, 'PATCH', { properties: { language: 'en' } }),
      await request(`${path}/identity`, headers, 'PATCH', { identity: { crm: aName() } }),
      await request(`/subscriptions/${subscriptionId}/user/identity`, headers),
      await request(`/subscriptions/${subscriptionId}`, headers, 'PATCH', change),
      await request(`${path}/subscriptions`, headers, 'POST', { subscription: { type: 'iOSPush', token: aName() } }),
      await request(`/subscriptions/${subscriptionId}`, headers, 'DELETE'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 202, 200, 200, 200, 201, 202])
  })

  test('and nothing of anybody else, which stays as it was', async () => {
    const victim = await aVerifiedUser()
    const headers = as(token(aName()))
    const withKey = { authorization: `Key ${appKey}` }
    const before = (await request(victim.path, withKey)).body
    const answers = [
      await request(victim.path, headers),
      await request(`${victim.path}/identity`, headers),
      await request(victim.path, headers, 'PATCH', { properties: { language: 'xx' } }),
      await request(`${victim.path}/identity`, headers, 'PATCH', { identity: { crm: aName() } }),
      await request(`${victim.path}/identity/external_id`, headers, 'DELETE'),
      await request(`${victim.path}/subscriptions`, headers, 'POST', { subscription: { type: 'iOSPush' } }),
      await request('/users', headers, 'POST', { identity: { external_id: victim.external_id } }),
      await request(`/users/by/external_id/${victim.external_id}`, headers),
      await request(`/users/by/external_id/${aName('nobody')}`, headers),
    ]
    for (const answer of answers) expect(told(answer)).toEqual(FORBIDDEN)
    const bySubscription = [
      await request(`/subscriptions/${victim.subscriptionId}/user/identity`, headers),
      await request(`/subscriptions/${victim.subscriptionId}`, headers, 'PATCH', { subscription: { enabled: false } }),
      await request(`/subscriptions/${victim.subscriptionId}`, headers, 'DELETE'),
    ]
    for (const answer of bySubscription) expect(told(answer)).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect((await request(victim.path, withKey)).body).toEqual(before)
  })

  test('it sends events of its user, named either way, and of nobody else', async () => {
    const [mine, theirs] = [await aVerifiedUser(), await aVerifiedUser()]
    const idOf = ({ path }: { path: string }) => path.split('/').at(-1)
    const send = (...users: object[]) =>
      request('/custom_events', as(token(mine.external_id)), 'POST', {
        events: users.map((user) => ({ name: 'x', ...user })),
      })
    const own = [{ onesignal_id: idOf(mine) }, { external_id: mine.external_id }]
    expect(told(await send(...own, { ...own[0], ...own[1] }))).toEqual({ status: 202, body: {} })
    const others = [
      { onesignal_id: idOf(theirs) },
      { external_id: theirs.external_id },
      { onesignal_id: idOf(theirs), external_id: mine.external_id },
      { onesignal_id: idOf(mine), external_id: theirs.external_id },
    ]
    for (const other of others) {
      expect(told(await send(other))).toEqual(FORBIDDEN)
      expect(told(await send(...own, other))).toEqual(FORBIDDEN)
    }
    const withKey = { authorization: `Key ${appKey}` }
    const count = async ({ path }: { path: string }) =>
      (await request(`${path}/custom_events`, withKey)).body.events.length
    expect([await count(mine), await count(theirs)]).toEqual([3, 0])
  })

  test('without a token it is an auth-1; a key needs none', async () => {
    const { path } = await aVerifiedUser()
    expect(told(await request(path, SDK))).toEqual(MISSING)
    expect((await request(path, { authorization: `Key ${appKey}` })).status).toBe(200)
  })

  test.each<[string, (externalId: string) => string]>([
    ['expired', (id) => token(id, { claims: { exp: clock.now().getTime() / 1000 } })],
    ['without end', (id) => token(id, { claims: { exp: undefined } })],
    ['not good yet', (id) => token(id, { claims: { nbf: clock.now().getTime() / 1000 + 1 } })],
    ['of another app', (id) => token(id, { claims: { iss: app.tenant.id } })],
    ['for nobody', (id) => token(id, { claims: { identity: {} } })],
    ['signed with another key', (id) => token(id, { key: pair(alg).privateKey })],
    ['that names another algorithm', (id) => token(id, { alg: alg === 'ES256' ? 'RS256' : 'ES256' })],
    ['that names no algorithm', (id) => `${token(id, { alg: 'none' }).split('.').slice(0, 2).join('.')}.x`],
    ['changed on the way', (id) => token(id).replace(/\.(.)/, (_, letter) => `.${letter === 'e' ? 'f' : 'e'}`)],
  ])('a token %s is refused', async (_, make) => {
    const { external_id, path } = await aVerifiedUser()
    expect(told(await request(path, as(make(external_id))))).toEqual(BAD_TOKEN)
  })

  test('log in moves the subscription to the proven user', async () => {
    const known = await aVerifiedUser()
    const nameless = await request('/users', { authorization: `Key ${appKey}` }, 'POST', {
      subscriptions: [{ type: 'AndroidPush', token: aName() }],
    })
    const [{ id }] = nameless.body.subscriptions
    const headers = as(token(known.external_id))
    const login = await request('/users', headers, 'POST', {
      identity: { external_id: known.external_id },
      subscriptions: [{ id }],
    })
    expect(login).toMatchObject({ status: 202, body: { subscriptions: [{ id }] } })
    const moved = await request(`/subscriptions/${known.subscriptionId}/owner`, headers, 'PATCH', {
      identity: { external_id: known.external_id },
    })
    expect(moved.status).toBe(200)
  })

  test('where it is not required, no token is asked for', async () => {
    const { path } = await aVerifiedUser()
    await setApp(ctx(), appId, { identityRequired: false }, SYSTEM)
    clock.advanceLease({ seconds: 5 })
    expect((await request(path, SDK)).status).toBe(200)
    await setApp(ctx(), appId, { identityRequired: true }, SYSTEM)
    clock.advanceLease({ seconds: 5 })
    expect(told(await request(path, SDK))).toEqual(MISSING)
  })
})
