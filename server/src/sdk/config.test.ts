import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { NOBODY } from '../../test/users.ts'
import { SYSTEM } from '../apps/app.ts'
import { setApp } from '../apps/create.ts'
import { KEYLESS_REQUESTS_PER_SECOND } from '../http/keyless-limiter.ts'
import { virtualClock } from '../lib/clock.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

/** Nobody in particular: no key, none of the marks of an SDK. Each test is a second of its own at the door. */
async function get(path: string, headers: Record<string, string> = {}) {
  clock.advanceLease({ seconds: 1 })
  const response = await fetch(`${app.url}${path}`, { headers })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
const json = async (path: string) => JSON.parse((await get(path)).text)

async function configured(settings: object = {}): Promise<string> {
  const headers = { authorization: `Key ${app.tenant.organizationKey}` }
  const { body } = await app.request('/apps', {
    headers,
    body: {
      name: 'Shop',
      site_name: 'Our shop',
      chrome_web_origin: 'https://example.com',
      safari_site_origin: 'https://example.com',
      safari_apns_p12: '',
      ...settings,
    },
  })
  return body.id
}
const keyOf = async (appId: string) =>
  (await app.request(`/apps/${appId}`, { headers: { authorization: `Key ${app.tenant.organizationKey}` } })).body
    .chrome_web_key

describe('configuration for web SDKs', () => {
  test.each(['', '/api/v1'])('is that of the app, below "%s"', async (prefix) => {
    const appId = await configured({ chrome_web_default_notification_icon: 'https://example.com/icon.png' })
    const key = await keyOf(appId)
    const { status, text, headers } = await get(`${prefix}/sync/${appId}/web`)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(JSON.parse(text)).toMatchObject({
      success: true,
      version: 2,
      app_id: appId,
      features: { restrict_origin: { enable: false }, session_threshold: 30 },
      config: {
        origin: 'https://example.com',
        siteInfo: {
          name: 'Our shop',
          origin: 'https://example.com',
          defaultIconUrl: 'https://example.com/icon.png',
        },
        integration: { kind: 'custom' },
        vapid_public_key: key,
        onesignal_vapid_public_key: key,
        outcomes: { direct: { enabled: true } },
      },
      generated_at: clock.now().getTime() / 1000,
    })
    expect(Buffer.from(key, 'base64url')).toHaveLength(65)
  })

  test('is there for a site in Safari alone', async () => {
    const appId = await configured({ chrome_web_origin: '' })
    const origin = 'https://example.com'
    expect(await json(`/sync/${appId}/web`)).toMatchObject({ success: true, config: { origin, siteInfo: { origin } } })
  })

  test('is a script that calls the function named, with the same object', async () => {
    const appId = await configured()
    const { status, text, headers } = await get(`/sync/${appId}/web?callback=__jp0`)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/javascript; charset=utf-8')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    const called: unknown[] = []
    new Function('__jp0', text)((given: unknown) => called.push(given))
    expect(called).toEqual([await json(`/sync/${appId}/web`)])
  })

  test.each(['a.b', '$', '_x9', 'OneSignal.__jp12'])('calls %s', async (callback) => {
    const { status, text } = await get(`/sync/${NOBODY}/web?callback=${callback}`)
    expect([status, text.startsWith(`/**/${callback}({"success":false`)]).toEqual([200, true])
  })

  test.each(['', '1a', 'a b', 'a()', 'alert(1)//', 'a.', '.a', 'a;b', 'a[0]', 'ä', '\u2028', 'a'.repeat(129)])(
    'calls nothing that is not the name of a function: %j',
    async (callback) => {
      const { status, text, headers } = await get(`/sync/${NOBODY}/web?callback=${encodeURIComponent(callback)}`)
      expect(status).toBe(400)
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(JSON.parse(text)).toEqual({ errors: ['callback must be the name of a JavaScript function'] })
    },
  )

  test.each([NOBODY, 'nonsense'])('says with 200 that there is no app %s', async (appId) => {
    const { status, text } = await get(`/sync/${appId}/web`)
    expect([status, JSON.parse(text)]).toEqual([200, { success: false, code: 1, message: 'App not found' }])
  })

  test('says that an app is not configured for the web, and nevertheless its key', async () => {
    const { body } = await app.request('/apps', {
      headers: { authorization: `Key ${app.tenant.organizationKey}` },
      body: { name: 'Mobile only' },
    })
    expect(await json(`/sync/${body.id.toUpperCase()}/web`)).toEqual({
      success: false,
      code: 2,
      message: expect.stringContaining('site_name'),
      app_id: body.id,
      config: { vapid_public_key: body.chrome_web_key },
    })
  })

  test('gives an app its key pair when nobody has looked at it before', async () => {
    const { id } = await app.anotherTenant()
    const { config } = await json(`/sync/${id}/web`)
    expect(Buffer.from(config.vapid_public_key, 'base64url')).toHaveLength(65)
    expect((await json(`/sync/${id}/web`)).config).toEqual(config)
  })
})

describe('configuration for mobile SDKs', () => {
  test('names the sender for Android', async () => {
    const params = await json(`/apps/${await configured({ fcm_sender_id: '123456789' })}/android_params.js`)
    expect(params).toMatchObject({
      android_sender_id: '123456789',
      jwt_required: false,
      chnl_lst: [],
      receive_receipts_enable: true,
      outcomes: { indirect: { enabled: true, notification_attribution: { minutes_since_displayed: 60, limit: 5 } } },
    })
    expect(await json(`/apps/${await configured()}/android_params.js`)).not.toHaveProperty('android_sender_id')
  })

  test('says whether the app asks for proof of identity', async () => {
    const appId = await configured()
    await setApp({ db: app.db, clock }, appId, { identityPublicKey: PUBLIC_KEY, identityRequired: true }, SYSTEM)
    expect(await json(`/apps/${appId}/android_params.js`)).toMatchObject({ jwt_required: true })
    expect(await json(`/apps/${appId}/ios_params.js`)).toMatchObject({ jwt_required: true, require_user_id_auth: true })
    expect(await json(`/apps/${await configured()}/ios_params.js`)).toMatchObject({ require_user_id_auth: false })
  })

  test('knows no experiments', async () => {
    const path = `/apps/${app.tenant.id}/sdk/features/android/5.9.5`
    expect(await json(path)).toEqual({ features: [] })
    expect(await json(`/api/v1${path}`)).toEqual({ features: [] })
  })

  test.each(['android_params.js', 'ios_params.js', 'sdk/features/ios/5'])(
    '%s is there for apps alone',
    async (file) => {
      expect(await get(`/apps/${NOBODY}/${file}`)).toMatchObject({ status: 404, text: '{"errors":["App not found"]}' })
      expect(await get(`/apps/nonsense/${file}`)).toMatchObject({ status: 400 })
    },
  )
})

describe('what an SDK has already', () => {
  test.each([
    ['/sync/:id/web', true],
    ['/sync/:id/web?callback=__jp1', true],
    ['/apps/:id/android_params.js', true],
    ['/apps/:id/ios_params.js', false],
  ])('is not sent again: %s', async (path, changesWithSite) => {
    const appId = await configured()
    const address = path.replace(':id', appId)
    const first = await get(address)
    const etag = first.headers.get('etag') as string
    expect(etag).toMatch(/^"[\w-]{22}"$/)
    expect(first.headers.get('access-control-expose-headers')).toContain('ETag')
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*'])
      expect(await get(address, { 'if-none-match': known })).toMatchObject({ status: 304, text: '' })
    expect(await get(address, { 'if-none-match': '"other"' })).toMatchObject({ status: 200, text: first.text })

    if (!changesWithSite) return
    const changed = await app.request(`/apps/${appId}`, {
      method: 'PUT',
      headers: { authorization: `Key ${app.tenant.organizationKey}` },
      body: { site_name: 'Another name', fcm_sender_id: '42' },
    })
    expect(changed.status).toBe(200)
    const second = await get(address, { 'if-none-match': etag })
    expect(second.status).toBe(200)
    expect(second.text).not.toBe(first.text)
  })
})

test.each(['application/json', 'application/x-protobuf', 'text/plain'])(
  'telemetry of SDKs is taken in whatever form: %s',
  async (type) => {
    const response = await fetch(`${app.url}/sdk/log?app_id=${app.tenant.id}`, {
      method: 'POST',
      headers: { 'content-type': type, 'content-encoding': 'gzip' },
      body: Buffer.alloc(200_000, 1),
    })
    expect([response.status, await response.json()]).toEqual([200, {}])
  },
)

test('scripts of any site may ask, with the headers of SDKs', async () => {
  for (const path of [`/sync/${app.tenant.id}/web`, `/apps/${app.tenant.id}/android_params.js`]) {
    const { headers } = await get(path, { origin: 'https://example.com' })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    const preflight = await fetch(`${app.url}${path}`, {
      method: 'OPTIONS',
      headers: { origin: 'https://example.com', 'access-control-request-method': 'GET' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('SDK-Version')
  }
})

test('one address is answered so many times in a second, and no more, by each operation', async () => {
  clock.advanceLease({ seconds: 1 })
  const statuses: number[] = []
  for (let i = 0; i <= KEYLESS_REQUESTS_PER_SECOND; i++) {
    const response = await fetch(`${app.url}/sync/${app.tenant.id}/web`)
    await response.arrayBuffer()
    statuses.push(response.status)
  }
  expect(statuses.filter((status) => status === 200)).toHaveLength(KEYLESS_REQUESTS_PER_SECOND)
  expect(statuses.at(-1)).toBe(429)
  expect((await fetch(`${app.url}/apps/${app.tenant.id}/ios_params.js`)).status).toBe(200)
  expect((await get(`/sync/${app.tenant.id}/web`)).status).toBe(200)
})

const PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9
q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==
-----END PUBLIC KEY-----
`
