import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type FakeServer,
  FOREIGN_APP,
  fakeRoutes,
  fakeServer,
  MISSING_APP,
  OWN_APP,
  OWN_ORG,
  SIBLING_APP,
} from '../../test/http.ts'

let server: FakeServer
const opened: FakeServer[] = []
beforeEach(() => {
  server = fakeServer()
  opened.push(server)
})
afterAll(() => Promise.all(opened.map((one) => one.close())))

type Ask = { method?: 'GET' | 'POST' | 'PUT' | 'DELETE'; url: string; key?: string; headers?: object; body?: unknown }

async function ask({ method = 'GET', url, key, headers, body }: Ask) {
  const response = await server.app.inject({
    method,
    url,
    headers: { ...(key !== undefined && { authorization: key }), ...headers },
    ...(body !== undefined && { payload: body as object }),
  })
  return { status: response.statusCode, body: response.json(), headers: response.headers }
}

const createUser = (app: string, more: Omit<Ask, 'url'>) =>
  ask({ method: 'POST', url: `/apps/${app}/users`, body: {}, ...more })

const MISSING = { errors: [{ code: 'auth-1', title: "This operation requires 'Authorization' in the HTTP header" }] }
const BAD_KEY = {
  errors: [
    expect.stringContaining('Access denied.  Please include'),
    expect.stringContaining('/docs/accounts-and-keys#section-keys-ids'),
  ],
  reference: [expect.any(String)],
}

describe('the Authorization header', () => {
  test.each(['Key own', 'key own', 'KEY   own', 'Basic own', 'Bearer own', 'bearer\town'])(
    '%j is let in',
    async (key) => {
      expect((await createUser(OWN_APP, { key })).status).toBe(200)
    },
  )

  test.each(['own', 'Token own', 'Key', 'Keyown', 'Key own own', 'Key ow', 'Key OWN', 'Digest own', ', Key own'])(
    '%j is a bad key, told in strings with a reference',
    async (key) => {
      expect(await createUser(OWN_APP, { key })).toMatchObject({ status: 401, body: BAD_KEY })
    },
  )

  test('absent, it is an error object', async () => {
    expect(await createUser(OWN_APP, {})).toMatchObject({ status: 401, body: MISSING })
    expect(await createUser(OWN_APP, { key: '' })).toMatchObject({ status: 401, body: MISSING })
    expect(await ask({ method: 'POST', url: '/players', body: {} })).toMatchObject({ status: 401, body: MISSING })
    expect(await ask({ url: '/apps' })).toMatchObject({ status: 401, body: MISSING })
  })

  test('absent, it is a string list on provider metrics', async () => {
    const { status, body } = await ask({ url: `/apps/${OWN_APP}/metrics/example.com` })
    expect({ status, body }).toEqual({ status: 401, body: { errors: [MISSING.errors[0]?.title] } })
  })
})

describe('the order of judgement', () => {
  test('without a key nothing else is looked at', async () => {
    expect((await createUser('not-an-id', { body: undefined })).status).toBe(401)
  })

  test('an unknown key comes before a malformed app id', async () => {
    expect((await createUser('not-an-id', { key: 'Key wrong' })).status).toBe(401)
  })

  test('a malformed app id comes before reach, body and limits', async () => {
    server.limits.waitSeconds = 5
    expect(await createUser('not-an-id', { key: 'Key own' })).toMatchObject({
      status: 400,
      body: { errors: [{ code: 'request-1', title: 'Invalid UUID', meta: { app_id: 'not-an-id' } }] },
    })
    expect((await ask({ url: '/apps/not-an-id/metrics/example.com', key: 'Key own' })).body).toEqual({
      errors: ['app_id must be a UUID'],
    })
  })

  test('reach comes before permission, permission before the body', async () => {
    expect((await createUser(SIBLING_APP, { key: 'Key no-permission' })).status).toBe(404)
    const response = await server.app.inject({
      method: 'POST',
      url: `/apps/${OWN_APP}/users`,
      headers: { authorization: 'Key no-permission', 'content-type': 'text/plain' },
      payload: 'x',
    })
    expect(response.statusCode).toBe(403)
  })

  test('a body that cannot be read comes before limits, limits before validation', async () => {
    server.limits.waitSeconds = 7
    const malformed = await server.app.inject({
      method: 'POST',
      url: `/apps/${OWN_APP}/users`,
      headers: { authorization: 'Key own', 'content-type': 'application/json' },
      payload: '{',
    })
    expect(malformed.statusCode).toBe(400)
    expect(await createUser(OWN_APP, { key: 'Key own', body: { identity: 5 } })).toMatchObject({
      status: 429,
      headers: { 'retry-after': '7' },
      body: { errors: [{ code: 'Rate Limit Exceeded', meta: {} }] },
    })
    server.limits.waitSeconds = 0
    expect((await createUser(OWN_APP, { key: 'Key own', body: { identity: 5 } })).status).toBe(400)
    expect(server.seen).toHaveLength(0)
  })

  test('ids of apps come in any case and reach the handler in lower case', async () => {
    expect((await createUser(OWN_APP.toUpperCase(), { key: 'Key own' })).body.params.app_id).toBe(OWN_APP)
  })
})

describe('reach', () => {
  const bytes = async (app: string, key: string) => {
    const { status, body } = await createUser(app, { key })
    return JSON.stringify({ status, body })
  }

  test('apps of others and apps that are not there answer alike', async () => {
    const missing = await bytes(MISSING_APP, 'Key own')
    expect(JSON.parse(missing)).toEqual({ status: 404, body: { errors: [{ code: 'app-0', title: 'App not found' }] } })
    expect(await bytes(SIBLING_APP, 'Key own')).toBe(missing)
    expect(await bytes(FOREIGN_APP, 'Key own')).toBe(missing)
    expect(await bytes(OWN_APP, 'Key other-org')).toBe(missing)
    expect(await bytes(MISSING_APP, 'Key org')).toBe(missing)
    expect(await bytes(FOREIGN_APP, 'Key org')).toBe(missing)
  })

  test('an app that was deleted under its key is not found', async () => {
    server.keys.apps.delete(OWN_APP)
    expect((await createUser(OWN_APP, { key: 'Key own' })).status).toBe(404)
  })

  test('the owner’s organization key on an app route is forbidden', async () => {
    expect((await createUser(OWN_APP, { key: 'Key org' })).status).toBe(403)
  })

  test('an app key on an organization route is forbidden, and sees no other app there', async () => {
    expect((await ask({ url: '/apps', key: 'Key own' })).status).toBe(403)
    const update = (app: string, key: string) => ask({ method: 'PUT', url: `/apps/${app}`, key, body: { name: 'x' } })
    expect((await update(OWN_APP, 'Key own')).status).toBe(403)
    expect((await update(SIBLING_APP, 'Key own')).status).toBe(404)
    expect((await update(MISSING_APP, 'Key own')).status).toBe(404)
    expect((await update(OWN_APP, 'Key other-org')).status).toBe(404)
    expect((await update(MISSING_APP, 'Key org')).status).toBe(404)
    expect((await update(SIBLING_APP, 'Key org')).body).toMatchObject({ app: SIBLING_APP })
  })

  test('an organization key is told which organization it speaks for', async () => {
    expect((await ask({ url: '/apps', key: 'Key org' })).body.caller).toEqual({
      kind: 'organization',
      keyId: 'org',
      organizationId: OWN_ORG,
    })
  })

  test('the app may stand in the query', async () => {
    const cancel = (query: string, key = 'Key own') => ask({ method: 'DELETE', url: `/notifications/x${query}`, key })
    expect((await cancel(`?app_id=${OWN_APP.toUpperCase()}`)).body.app).toBe(OWN_APP)
    expect((await cancel(`?app_id=${SIBLING_APP}`)).status).toBe(404)
    expect(await cancel('')).toMatchObject({ status: 400, body: { errors: ['app_id is required'] } })
    expect((await cancel('?app_id=nonsense')).status).toBe(400)
    expect((await cancel(`?app_id=${OWN_APP}&app_id=${SIBLING_APP}`)).status).toBe(400)
  })

  test('the app may stand in the body; there a foreign one is a bad key', async () => {
    const add = (body: unknown, key = 'Basic own') => ask({ method: 'POST', url: '/api/v1/players', key, body })
    expect((await add({ app_id: OWN_APP, device_type: 1 })).status).toBe(200)
    const missing = await add({ app_id: MISSING_APP, device_type: 1 })
    expect(missing).toMatchObject({ status: 401, body: BAD_KEY })
    expect((await add({ app_id: FOREIGN_APP, device_type: 1 })).body).toEqual(missing.body)
    expect((await add({ app_id: OWN_APP, device_type: 1 }, 'Key other-org')).body).toEqual(missing.body)
    expect((await add({ app_id: OWN_APP, device_type: 1 }, 'Key org')).status).toBe(403)
    expect((await add({ device_type: 1 })).body).toMatchObject({ errors: ['app_id is required'] })
    expect((await add({ app_id: 7 })).status).toBe(400)
    expect((await add([])).status).toBe(400)
    expect((await ask({ method: 'POST', url: '/players', key: 'Key own' })).status).toBe(400)
    expect(
      (
        await ask({
          method: 'POST',
          url: '/players',
          key: 'Key own',
          body: null,
          headers: { 'content-type': 'application/json' },
        })
      ).status,
    ).toBe(400)
  })

  test('a segment of an unknown app is 400 with a reference', async () => {
    const { status, body } = await ask({ method: 'DELETE', url: `/apps/${MISSING_APP}/segments/x`, key: 'Key own' })
    expect(status).toBe(400)
    expect(body).toEqual({
      success: false,
      errors: [expect.stringContaining('app_id not found.')],
      reference: [expect.any(String)],
    })
  })
})

describe('how a key may be used', () => {
  test('only from the addresses of its list', async () => {
    const from = async (remoteAddress: string) => {
      const response = await server.app.inject({
        method: 'POST',
        url: `/apps/${OWN_APP}/users`,
        headers: { authorization: 'Key elsewhere' },
        payload: {},
        remoteAddress,
      })
      return response.statusCode
    }
    expect(await from('192.0.2.77')).toBe(200)
    expect(await from('::ffff:192.0.2.77')).toBe(200)
    expect(await from('192.0.3.1')).toBe(403)
    expect(await from('2001:db8::1')).toBe(403)
    expect((await ask({ url: '/apps', key: 'Key org-elsewhere' })).status).toBe(403)
  })

  test('a caller cannot choose its address unless the proxy is trusted', async () => {
    const headers = { 'x-forwarded-for': '192.0.2.77' }
    expect((await createUser(OWN_APP, { key: 'Key elsewhere', headers })).status).toBe(403)
    const trusting = fakeServer({ trustProxy: '127.0.0.1' })
    opened.push(trusting)
    server = trusting
    expect((await createUser(OWN_APP, { key: 'Key elsewhere', headers })).status).toBe(200)
    expect(
      (await createUser(OWN_APP, { key: 'Key elsewhere', headers: { 'x-forwarded-for': 'nonsense' } })).status,
    ).toBe(403)
  })

  test('only with the permission', async () => {
    expect(await createUser(OWN_APP, { key: 'Key no-permission' })).toMatchObject({
      status: 403,
      body: { errors: [{ title: 'This key does not have the permission "users"' }] },
    })
    expect((await ask({ method: 'DELETE', url: `/apps/${OWN_APP}/segments/x`, key: 'Key no-permission' })).status).toBe(
      200,
    )
  })
})

const SDK = { accept: 'application/vnd.onesignal.v1+json', 'sdk-version': 'onesignal/web/160608' }

describe('the keyless door', () => {
  test('opens for both markers together', async () => {
    expect((await createUser(OWN_APP, { headers: SDK })).body.caller).toEqual({ kind: 'sdk' })
    expect((await createUser(OWN_APP, { headers: { accept: SDK.accept } })).status).toBe(401)
    expect((await createUser(OWN_APP, { headers: { 'sdk-version': SDK['sdk-version'] } })).status).toBe(401)
    expect((await createUser(OWN_APP, { headers: { ...SDK, 'sdk-version': 'onesignal/node/5' } })).status).toBe(401)
  })

  test('opens only where the route says so', async () => {
    const view = (label: string) => ask({ url: `/apps/${OWN_APP}/users/by/${label}/x`, headers: SDK })
    expect((await view('onesignal_id')).status).toBe(200)
    expect((await view('external_id')).status).toBe(401)
    expect((await ask({ method: 'DELETE', url: `/apps/${OWN_APP}/segments/x`, headers: SDK })).status).toBe(401)
    expect((await ask({ url: '/apps', headers: SDK })).status).toBe(401)
  })

  test('opens only where the app says so, and does not tell which apps exist', async () => {
    const gate = server.keys.apps.get(OWN_APP)
    if (gate) gate.keylessSdk = false
    const closed = await createUser(OWN_APP, { headers: SDK })
    const missing = await createUser(MISSING_APP, { headers: SDK })
    expect(closed).toMatchObject({ status: 401, body: MISSING })
    expect(missing.body).toEqual(closed.body)
  })

  test('a key, once given, must be good', async () => {
    expect((await createUser(OWN_APP, { headers: SDK, key: 'Key wrong' })).status).toBe(401)
    expect((await createUser(OWN_APP, { headers: SDK, key: 'Key own' })).body.caller.kind).toBe('key')
  })

  test('lets in 100 requests a second from one address, and counts afresh in the next', async () => {
    const statuses = async (count: number, remoteAddress: string) => {
      const all = await Promise.all(
        Array.from({ length: count }, () =>
          server.app.inject({
            method: 'POST',
            url: `/apps/${OWN_APP}/users`,
            headers: SDK,
            payload: {},
            remoteAddress,
          }),
        ),
      )
      return all.filter(({ statusCode }) => statusCode === 200).length
    }
    expect(await statuses(120, '2001:db8::1')).toBe(100)
    expect(await statuses(5, '2001:db8::2')).toBe(0)
    expect(await statuses(5, '192.0.2.1')).toBe(5)
    const refused = await server.app.inject({
      method: 'POST',
      url: `/apps/${OWN_APP}/users`,
      headers: SDK,
      payload: {},
      remoteAddress: '2001:db8::3',
    })
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, '1'])
    server.clock.advanceLease({ seconds: 1 })
    expect(await statuses(5, '2001:db8::1')).toBe(5)
  })
})

describe('identity tokens', () => {
  const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const otherEc = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString()
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const good = () => ({
    iss: OWN_APP,
    exp: server.clock.now().getTime() / 1000 + 60,
    identity: { external_id: 'ada' },
  })

  function token(claims: unknown, header: object = { alg: 'ES256', typ: 'JWT' }, key: KeyObject = ec.privateKey) {
    const data = `${encoded(header)}.${encoded(claims)}`
    const signature = sign('sha256', Buffer.from(data), { key, dsaEncoding: 'ieee-p1363' })
    return `${data}.${signature.toString('base64url')}`
  }
  const withToken = (text: string, headers: object = SDK) => createUser(OWN_APP, { key: `Bearer ${text}`, headers })

  beforeEach(() => {
    const gate = server.keys.apps.get(OWN_APP)
    if (gate) Object.assign(gate, { identityRequired: true, identityPublicKey: pem(ec.publicKey) })
  })

  test('ES256 and RS256 are believed', async () => {
    expect((await withToken(token(good()))).body.caller).toEqual({ kind: 'sdk', externalId: 'ada' })
    const gate = server.keys.apps.get(OWN_APP)
    if (gate) gate.identityPublicKey = pem(rsa.publicKey)
    expect((await withToken(token(good(), { alg: 'RS256' }, rsa.privateKey))).body.caller.externalId).toBe('ada')
  })

  test('an app that asks for identity takes nobody without a token', async () => {
    expect(await createUser(OWN_APP, { headers: SDK })).toMatchObject({ status: 401, body: MISSING })
  })

  test('a token without the SDK’s markers is a bad key', async () => {
    expect(await withToken(token(good()), {})).toMatchObject({ status: 401, body: BAD_KEY })
  })

  const none = () => `${encoded({ alg: 'none' })}.${encoded(good())}.AA`
  test.each<[string, () => string]>([
    ['of another key', () => token(good(), undefined, otherEc.privateKey)],
    ['without a signature', none],
    ['signed with the public key as a shared secret', () => token(good(), { alg: 'HS256' })],
    ['that names another algorithm than the key’s', () => token(good(), { alg: 'RS256' }, rsa.privateKey)],
    ['with critical extensions', () => token(good(), { alg: 'ES256', crit: ['b64'] })],
    ['for another app', () => token({ ...good(), iss: SIBLING_APP })],
    ['without an issuer', () => token({ ...good(), iss: undefined })],
    ['without an end', () => token({ ...good(), exp: undefined })],
    ['whose end is text', () => token({ ...good(), exp: '99999999999' })],
    ['that ends now', () => token({ ...good(), exp: server.clock.now().getTime() / 1000 })],
    ['not good yet', () => token({ ...good(), nbf: good().exp })],
    ['without an identity', () => token({ ...good(), identity: undefined })],
    ['whose identity is null', () => token({ ...good(), identity: null })],
    ['whose external id is a number', () => token({ ...good(), identity: { external_id: 5 } })],
    ['whose external id is empty', () => token({ ...good(), identity: { external_id: '' } })],
    ['whose claims are no object', () => token('x')],
    ['whose claims are null', () => token(null)],
    [
      'that was changed',
      () => token(good()).replace(/\.([^.]+)\./, `.${encoded({ ...good(), identity: { external_id: 'eve' } })}.`),
    ],
    ['that is noise', () => 'a.b.c'],
  ])('a token %s is refused', async (_, make) => {
    expect((await withToken(make())).status).toBe(401)
    expect(server.seen).toHaveLength(0)
  })

  test('time is the clock’s', async () => {
    const text = token(good())
    server.clock.advance({ seconds: 59 })
    expect((await withToken(text)).status).toBe(200)
    server.clock.advance({ seconds: 1 })
    expect((await withToken(text)).status).toBe(401)
  })
})

describe('the metrics page', () => {
  test('takes an organization key or the token of the settings', async () => {
    const metricsToken = 'a-token-of-the-settings'
    const own = fakeServer({ metricsToken })
    opened.push(own)
    const read = async (authorization?: string) => {
      const headers = authorization === undefined ? {} : { authorization }
      return (await own.app.inject({ url: '/metrics', headers })).statusCode
    }
    expect(await read(`Bearer ${metricsToken}`)).toBe(200)
    expect(await read('Key org')).toBe(200)
    expect(await read('Key own')).toBe(403)
    expect(await read(`Bearer ${metricsToken}x`)).toBe(401)
    expect(await read()).toBe(401)
    expect(await read('Key org-elsewhere')).toBe(403)
  })
})

test('every route refuses a request without a key, but those that declare themselves public', async () => {
  for (const { method, path, access } of fakeRoutes()) {
    const url = path.replace(':app_id', OWN_APP).replaceAll(/:\w+/g, 'x')
    const { statusCode } = await server.app.inject({ method, url })
    if (access.kind !== 'public') expect([path, statusCode]).toEqual([path, 401])
  }
})
