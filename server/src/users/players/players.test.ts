import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aName, anEmail, anId, aPhone, aUser, NOBODY, told, view } from '../../../test/users.ts'
import { SYSTEM } from '../../apps/app.ts'
import { issueKey } from '../../apps/keys/keys.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())

const nowSeconds = () => clock.now().getTime() / 1000
const basic = () => ({ authorization: `Basic ${app.tenant.key}` })
const refused = (...errors: (string | RegExp)[]) => ({
  status: 400,
  body: {
    success: false,
    errors: errors.map((it) => (typeof it === 'string' ? it : expect.stringMatching(it))),
  },
})
const NOT_FOUND = { status: 404, body: { success: false, errors: ['No user with this id found'] } }
const DONE = { status: 200, body: { success: true } }

const add = (body: object, headers: Record<string, string> = basic()) =>
  app.request('/api/v1/players', { body: { app_id: app.tenant.id, ...body }, headers })
const send = (method: string, path: string, body: object = {}) =>
  app.request(`/api/v1/players/${path}`, { method, body: { app_id: app.tenant.id, ...body }, headers: basic() })
const see = (id: string) => app.request(`/api/v1/players/${id}?app_id=${app.tenant.id}`, { headers: basic() })
const ownerOf = async (id: string) => {
  const { body } = await app.app(`/subscriptions/${id}/user/identity`)
  return { path: `/users/by/onesignal_id/${body.identity.onesignal_id}`, identity: body.identity }
}
async function aPlayer(body: object = {}): Promise<string> {
  const answer = await add({ device_type: 1, identifier: aName('token'), ...body })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer))
  return answer.body.id
}

describe('add a player', () => {
  test('answers the id of the subscription it makes', async () => {
    const answer = await add({ device_type: 0, identifier: aName('token') })
    expect(told(answer)).toEqual({ status: 200, body: { success: true, id: anId() } })
    const owner = await ownerOf(answer.body.id)
    expect((await view(app, owner)).subscriptions).toMatchObject([{ id: answer.body.id, type: 'iOSPush' }])
  })

  test('needs app_id and device_type alone', async () => {
    expect((await add({ device_type: 1 })).status).toBe(200)
    expect(told(await add({}))).toEqual(refused('device_type is required'))
    const nowhere = await app.request('/api/v1/players', { body: { device_type: 1 }, headers: basic() })
    expect(told(nowhere)).toEqual(refused('app_id is required'))
    const malformed = await add({ app_id: 'x', device_type: 1 })
    expect(told(malformed)).toEqual(refused('app_id must be a UUID'))
  })

  test('keeps every field', async () => {
    const fields = {
      identifier: aName('token'),
      language: 'en',
      timezone: -28800,
      game_version: '1.0',
      device_model: 'iPhone5,1',
      device_os: '15.1.1',
      ad_id: '56DA6E2C-B3B3-4C5D-9C6B-4E5A4DE93C33',
      sdk: '3.10',
      session_count: 600,
      external_user_id: aName(),
      notification_types: 1,
    }
    const id = await aPlayer({ device_type: 0, ...fields, tags: { a: '1', foo: 'bar' } })
    expect(told(await see(id))).toEqual({
      status: 200,
      body: {
        ...fields,
        id,
        device_type: 0,
        tags: { a: '1', foo: 'bar' },
        last_active: nowSeconds(),
        created_at: nowSeconds(),
        playtime: 0,
        amount_spent: 0,
        invalid_identifier: false,
        badge_count: 0,
        test_type: null,
        ip: null,
        country: null,
        lat: null,
        long: null,
      },
    })
    const user = await app.app(`/users/by/external_id/${fields.external_user_id}`)
    expect(user.body.properties).toMatchObject({ tags: { a: '1', foo: 'bar' }, language: 'en' })
    expect(user.body.subscriptions).toMatchObject([{ id, app_version: '1.0', session_count: 600, sdk: '3.10' }])
  })

  test.each([
    [0, 'iOSPush'],
    [1, 'AndroidPush'],
    [2, 'FireOSPush'],
    [3, 'WindowsPhonePush'],
    [4, 'ChromeExtensionPush'],
    [5, 'ChromePush'],
    [6, 'WindowsPush'],
    [7, 'SafariLegacyPush'],
    [8, 'FirefoxPush'],
    [9, 'macOSPush'],
    [10, 'AlexaPush'],
    [13, 'HuaweiPush'],
    [17, 'SafariPush'],
  ])('device_type %i is %s', async (device_type, type) => {
    const id = await aPlayer({ device_type })
    expect((await view(app, await ownerOf(id))).subscriptions[0].type).toBe(type)
    expect((await see(id)).body.device_type).toBe(device_type)
  })

  test('device_type 11 takes an email address, 14 a phone number in E.164 form', async () => {
    expect((await add({ device_type: 11, identifier: anEmail() })).status).toBe(200)
    expect((await add({ device_type: 14, identifier: aPhone() })).status).toBe(200)
    expect(told(await add({ device_type: 11, identifier: 'x' }))).toEqual(refused('"x" is not a valid email address'))
    expect(told(await add({ device_type: 14, identifier: '555' }))).toEqual(
      refused('"555" is not a phone number in E.164 form, such as +15558675309'),
    )
  })

  test.each([
    [{ device_type: 12 }, 'device_type 12 is not known'],
    [{ device_type: -1 }, 'device_type -1 is not known'],
    [{ device_type: '0' }, 'device_type must be an integer'],
    [{ device_type: 0, identifier: 5 }, 'identifier must be a string or null'],
    [{ device_type: 0, language: 'english!' }, 'language "english!" is not a language code'],
    [{ device_type: 0, timezone: 'x' }, 'timezone must be an integer or null'],
    [{ device_type: 0, timezone: 90_000 }, 'timezone must be at most 86400'],
    [{ device_type: 0, game_version: 1 }, 'game_version must be a string or null'],
    [{ device_type: 0, session_count: -1 }, 'session_count must be at least 0'],
    [{ device_type: 0, session_count: 1.5 }, 'session_count must be an integer or null'],
    [{ device_type: 0, tags: ['a'] }, 'tags must be an object'],
    [{ device_type: 0, tags: { a: {} } }, 'tags.a must be a string, a number, true or false or null'],
    [{ device_type: 0, notification_types: 'on' }, 'notification_types must be an integer or null'],
    [
      { device_type: 0, external_user_id: 'x'.repeat(129) },
      'an alias value of "external_id" must have at most 128 characters',
    ],
  ])('%j is refused with 400 and a list of strings', async (body, text) => {
    expect(told(await add(body))).toEqual(refused(text))
  })

  test('a body without Content-Type: application/json is a 400', async () => {
    const raw = JSON.stringify({ app_id: app.tenant.id, device_type: 1 })
    const answer = await app.request('/api/v1/players', {
      raw,
      method: 'POST',
      headers: { ...basic(), 'content-type': 'text/plain' },
    })
    expect(told(answer)).toEqual(refused('The Content-Type of a body must be application/json'))
  })

  test('notification_types say whether it is subscribed', async () => {
    const stateOf = async (notification_types: number) => {
      const { body } = await see(await aPlayer({ notification_types }))
      return [body.notification_types, body.invalid_identifier]
    }
    expect(await stateOf(1)).toEqual([1, false])
    expect(await stateOf(-2)).toEqual([-2, true])
    expect(await stateOf(0)).toEqual([0, true])
  })

  test('a known identifier answers the id it has, and changes the player', async () => {
    const identifier = aName('token')
    const id = await aPlayer({ identifier, tags: { a: '1' } })
    expect(await aPlayer({ identifier, game_version: '2', tags: { b: '2' } })).toBe(id)
    expect((await see(id)).body).toMatchObject({ game_version: '2', tags: { a: '1', b: '2' } })
    expect(await aPlayer({ identifier, device_type: 0 })).not.toBe(id)
  })

  test('with notification_types -20 it only asks which player an identifier has', async () => {
    const identifier = aName('endpoint')
    const id = await aPlayer({ device_type: 5, identifier, notification_types: 1 })
    expect(await aPlayer({ device_type: 5, identifier, notification_types: -20, language: 'fr' })).toBe(id)
    expect((await see(id)).body).toMatchObject({ notification_types: 1, language: null })
  })

  test('external_user_id links players into one user', async () => {
    const external_user_id = aName()
    const ids = [
      await aPlayer({ external_user_id }),
      await aPlayer({ device_type: 11, identifier: anEmail(), external_user_id }),
    ]
    const { body } = await app.app(`/users/by/external_id/${external_user_id}`)
    expect(body.subscriptions.map((it: { id: string }) => it.id).sort()).toEqual(ids.sort())
  })

  test('without external_user_id each player is a user of its own', async () => {
    const [left, right] = [await ownerOf(await aPlayer()), await ownerOf(await aPlayer())]
    expect(Object.keys(left.identity)).toEqual(['onesignal_id'])
    expect(left.identity.onesignal_id).not.toBe(right.identity.onesignal_id)
  })

  test('a user of the new interface and its players are the same people', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const id = await aPlayer({ external_user_id: user.externalId })
    expect((await ownerOf(id)).identity.onesignal_id).toBe(user.id)
    expect((await see(user.subscriptionIds[0] as string)).body).toMatchObject({
      device_type: 11,
      external_user_id: user.externalId,
    })
  })

  test('the twenty-first subscription of a user is a 400', async () => {
    const subscriptions = Array.from({ length: 20 }, () => ({ type: 'Email', token: anEmail() }))
    const user = await aUser(app, { subscriptions })
    expect(told(await add({ device_type: 1, identifier: aName(), external_user_id: user.externalId }))).toEqual(
      refused('A user can have at most 20 subscriptions'),
    )
  })

  test('a missing key is a 401, an unknown one too, and so is a key of another app', async () => {
    const body = { app_id: app.tenant.id, device_type: 1 }
    const missing = await app.request('/api/v1/players', { body, headers: { authorization: '' } })
    expect(told(missing)).toEqual({
      status: 401,
      body: { errors: [{ code: 'auth-1', title: "This operation requires 'Authorization' in the HTTP header" }] },
    })
    const other = await app.anotherTenant()
    for (const key of ['x'.repeat(40), other.key])
      expect(told(await add({ device_type: 1 }, { authorization: `Basic ${key}` }))).toEqual({
        status: 401,
        body: {
          success: false,
          errors: [expect.stringMatching(/^Access denied\. {2}/), expect.stringContaining('/docs/accounts-and-keys')],
          reference: [expect.any(String)],
        },
      })
    expect((await add({ app_id: NOBODY, device_type: 1 })).status).toBe(401)
  })

  test('a key that may not is a 403', async () => {
    const scope = { kind: 'app' as const, appId: app.tenant.id }
    const { key } = await issueKey({ db: app.db, clock }, scope, { name: 'x', permissions: ['segments'] }, SYSTEM)
    const answer = await add({ device_type: 1 }, { authorization: `Basic ${key}` })
    expect(told(answer)).toEqual({
      status: 403,
      body: { success: false, errors: ['This key does not have the permission "users"'] },
    })
  })
})

describe('view players', () => {
  test('pages through all of the app, each once', async () => {
    const tenant = await app.anotherTenant()
    const headers = { authorization: `Basic ${tenant.key}` }
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      const body = { app_id: tenant.id, device_type: 1, identifier: `t${n}` }
      ids.push((await app.request('/api/v1/players', { body, headers })).body.id)
    }
    const page = (query: string) => app.request(`/api/v1/players?app_id=${tenant.id}${query}`, { headers })
    const all = await page('')
    expect(all).toMatchObject({ status: 200, body: { total_count: 5, offset: 0, limit: 300 } })
    expect(all.body.players.map((it: { id: string }) => it.id).sort()).toEqual(ids.toSorted())
    const paged = [await page('&limit=2'), await page('&limit=2&offset=2'), await page('&limit=2&offset=4')]
    expect(paged.flatMap(({ body }) => body.players)).toEqual(all.body.players)
    expect(paged[1]?.body).toMatchObject({ total_count: 5, offset: 2, limit: 2 })
    for (const query of ['&limit=0', '&limit=301', '&limit=x', '&offset=-1'])
      expect((await page(query)).status).toBe(400)
  })

  test('view player answers one; unknown, malformed and foreign ids are a 404', async () => {
    const id = await aPlayer()
    expect(await see(id.toUpperCase())).toMatchObject({ status: 200, body: { id } })
    expect(told(await see(NOBODY))).toEqual(NOT_FOUND)
    expect(told(await see('x'))).toEqual(NOT_FOUND)
    const tenant = await app.anotherTenant()
    const answer = await app.request(`/api/v1/players/${id}?app_id=${tenant.id}`, {
      headers: { authorization: `Basic ${tenant.key}` },
    })
    expect(told(answer)).toEqual(NOT_FOUND)
  })
})

describe('edit player', () => {
  test('changes what is given, answers the id, and leaves the rest', async () => {
    const id = await aPlayer({ language: 'en', game_version: '1', tags: { a: '1', b: '2' } })
    const before = (await see(id)).body
    const answer = await send('PUT', id, { game_version: '2', notification_types: -2, tags: { a: '', c: '3' } })
    expect(told(answer)).toEqual({ status: 200, body: { success: true, id } })
    expect((await see(id)).body).toEqual({
      ...before,
      game_version: '2',
      notification_types: -2,
      invalid_identifier: true,
      tags: { b: '2', c: '3' },
    })
  })

  test('a null is a field the device does not know: nothing is cleared', async () => {
    const id = await aPlayer({ language: 'en', lat: 1, long: 2, country: 'DE', ad_id: 'x' })
    const before = (await see(id)).body
    await send('PUT', id, { language: null, lat: null, long: null, country: null, ad_id: null, ip: null })
    expect((await see(id)).body).toEqual(before)
  })

  test('external_user_id moves it to that user, who is made where there is none; "" makes it nameless', async () => {
    const user = await aUser(app)
    const id = await aPlayer()
    const first = await ownerOf(id)
    const external_user_id = aName()
    await send('PUT', id, { external_user_id })
    // Nobody had that name, so the player's own user took it.
    expect((await ownerOf(id)).identity).toEqual({ ...first.identity, external_id: external_user_id })
    await send('PUT', id, { external_user_id: user.externalId })
    expect((await ownerOf(id)).identity.onesignal_id).toBe(user.id)
    await send('PUT', id, { external_user_id: '' })
    expect(Object.keys((await ownerOf(id)).identity)).toEqual(['onesignal_id'])
    expect((await view(app, user)).subscriptions).toEqual([])
  })

  test('an identifier that another player has is refused', async () => {
    const identifier = aName('token')
    await aPlayer({ identifier })
    const id = await aPlayer()
    expect(told(await send('PUT', id, { identifier }))).toEqual(refused('Another subscription has this token'))
    const fresh = aName('token')
    expect((await send('PUT', id, { identifier: fresh })).status).toBe(200)
    expect((await see(id)).body.identifier).toBe(fresh)
  })

  test('an unknown one is a 404', async () => {
    expect(told(await send('PUT', NOBODY, {}))).toEqual(NOT_FOUND)
    expect(told(await send('PUT', 'x', {}))).toEqual(NOT_FOUND)
  })

  test('more than 100 tags are refused', async () => {
    const id = await aPlayer()
    const tags = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`t${n}`, '1']))
    expect(told(await send('PUT', id, { tags }))).toEqual(
      refused('a request can change at most 100 properties, this one changes 101'),
    )
  })
})

describe('what players report', () => {
  test('a session counts for the player and its user, with what else the device says', async () => {
    const id = await aPlayer({ session_count: 3 })
    clock.advance({ hours: 2 })
    expect(told(await send('POST', `${id}/on_session`, { game_version: '9', session_count: 99 }))).toEqual(DONE)
    expect((await see(id)).body).toMatchObject({ session_count: 4, game_version: '9', last_active: nowSeconds() })
    const { properties } = await view(app, await ownerOf(id))
    expect(properties).toMatchObject({ session_count: 1, last_active: nowSeconds() })
  })

  test.each(['PUT', 'POST'])('time in the foreground, by %s', async (method) => {
    const id = await aPlayer()
    await send(method, `${id}/on_focus`, { active_time: 60 })
    clock.advance({ minutes: 5 })
    expect(told(await send(method, `${id}/on_focus`, { active_time: 15, state: 'ping' }))).toEqual(DONE)
    expect((await see(id)).body).toMatchObject({ playtime: 75, last_active: nowSeconds() })
    expect((await view(app, await ownerOf(id))).properties.session_time).toBe(75)
    expect(told(await send(method, `${id}/on_focus`, {}))).toEqual(refused('active_time is required'))
    expect(told(await send(method, `${id}/on_focus`, { active_time: -1 }))).toEqual(
      refused('active_time must be at least 0'),
    )
  })

  test('purchases', async () => {
    const id = await aPlayer()
    const purchases = [{ sku: 'SKU123', iso: 'USD', amount: '0.99', count: 2 }]
    expect(told(await send('POST', `${id}/on_purchase`, { purchases }))).toEqual(DONE)
    expect((await see(id)).body.amount_spent).toBe(1.98)
    expect((await view(app, await ownerOf(id))).properties.purchases).toEqual(purchases)
    expect(told(await send('POST', `${id}/on_purchase`, { purchases: [] }))).toEqual(
      refused('purchases must not be empty'),
    )
  })

  test('of an unknown player is a 404', async () => {
    expect(told(await send('POST', `${NOBODY}/on_session`))).toEqual(NOT_FOUND)
    expect(told(await send('PUT', `${NOBODY}/on_focus`, { active_time: 1 }))).toEqual(NOT_FOUND)
    const purchases = [{ sku: 'A', iso: 'USD', amount: '1' }]
    expect(told(await send('POST', `${NOBODY}/on_purchase`, { purchases }))).toEqual(NOT_FOUND)
  })

  test('sums above 2^53-1 are refused', async () => {
    const id = await aPlayer({ session_count: Number.MAX_SAFE_INTEGER })
    expect(told(await send('POST', `${id}/on_session`))).toEqual(refused('the sum of the sessions would exceed 2^53-1'))
    expect((await see(id)).body.session_count).toBe(Number.MAX_SAFE_INTEGER)
  })

  test('a session with an identifier that another player has is refused', async () => {
    const identifier = aName('token')
    await aPlayer({ identifier })
    expect(told(await send('POST', `${await aPlayer()}/on_session`, { identifier }))).toEqual(
      refused('Another subscription has this token'),
    )
  })
})

describe('delete player', () => {
  const remove = (id: string) =>
    app.request(`/api/v1/players/${id}?app_id=${app.tenant.id}`, { method: 'DELETE', headers: basic() })

  test('removes the subscription; its user stays', async () => {
    const id = await aPlayer({ external_user_id: aName() })
    const owner = await ownerOf(id)
    expect(told(await remove(id))).toEqual(DONE)
    expect(told(await see(id))).toEqual(NOT_FOUND)
    expect((await view(app, owner)).subscriptions).toEqual([])
    expect(told(await remove(id))).toEqual(NOT_FOUND)
  })
})

describe('tags by external user id', () => {
  const tag = (externalId: string, tags: unknown) =>
    app.app(`/users/${encodeURIComponent(externalId)}`, { method: 'PUT', body: { tags } })

  test('are merged; "" and null remove one', async () => {
    const user = await aUser(app, { properties: { tags: { a: '1', b: '2', c: '3' } } })
    expect(told(await tag(user.externalId, { a: '', b: null, d: 4 }))).toEqual(DONE)
    expect((await view(app, user)).properties.tags).toEqual({ c: '3', d: '4' })
  })

  test('of nobody are a 404, without tags a 400', async () => {
    expect(told(await tag(aName(), { a: '1' }))).toEqual(NOT_FOUND)
    const user = await aUser(app)
    expect(told(await tag(user.externalId, undefined))).toEqual(refused('tags is required'))
  })
})
