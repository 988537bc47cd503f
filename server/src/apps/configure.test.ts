import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type TestApp, testApp } from '../../test/app.ts'
import { aP8, aP12, aServiceAccount, base64, hostileP12, rsaPem } from '../../test/credentials.ts'
import { elliptic, keychain, withoutKey } from '../../test/fixtures/p12.ts'
import { anEmail, anId, aUser, NOBODY, told } from '../../test/users.ts'
import { type VirtualClock, virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())

const MASK = '********'
const headers = () => ({ authorization: `Key ${app.tenant.organizationKey}` })
const put = (appId: string, body: object, query = '') =>
  app.request(`/apps/${appId}${query}`, { method: 'PUT', headers: headers(), body })
const view = async (appId: string, query = '') =>
  (await app.request(`/apps/${appId}${query}`, { headers: headers() })).body
const create = (body: object) => app.request('/apps', { headers: headers(), body })
async function anApp(body: object = {}): Promise<string> {
  const { status, body: made } = await create({ name: 'Shop', ...body })
  if (status !== 200) throw new Error(JSON.stringify(made))
  return made.id
}
const auditOf = (appId: string) =>
  app.db.query<{ action: string; detail: object; actorIp: string | null }>(sql`
    select action, detail, actor_ip from audit_log where app_id = ${appId} order by at, action`)
const refused = (...errors: string[]) => ({ status: 400, body: { errors } })

/** What is refused leaves everything as it was. */
async function expectRefused(appId: string, body: object, ...errors: string[]) {
  const before = await view(appId)
  const [stored] = await app.db.query(sql`select push_settings, credentials from apps where id = ${appId}`)
  clock.advance({ minutes: 1 })
  expect(told(await put(appId, body))).toEqual(refused(...errors))
  expect(await view(appId)).toEqual(before)
  expect(await app.db.query(sql`select push_settings, credentials from apps where id = ${appId}`)).toEqual([stored])
}

const WEB = {
  site_name: 'Our shop',
  chrome_web_origin: 'https://example.com',
  safari_site_origin: 'https://www.example.com',
  safari_apns_p12: '',
}
const APPLE = { apns_key_id: 'ABCDE12345', apns_team_id: 'TEAM123456', apns_bundle_id: 'com.example.shop' }

describe('the app object', () => {
  test('has every field, of which those that are not set are null', async () => {
    const { status, body } = await create({ name: 'Shop' })
    expect(status).toBe(200)
    expect(body).toEqual({
      id: anId(),
      name: 'Shop',
      players: 0,
      messageable_players: 0,
      created_at: clock.now().toISOString(),
      updated_at: clock.now().toISOString(),
      organization_id: app.tenant.organizationId,
      fcm_v1_service_account_json: null,
      fcm_sender_id: null,
      chrome_web_key: expect.stringMatching(/^B[\w-]{86}$/),
      chrome_web_origin: null,
      chrome_web_gcm_sender_id: null,
      chrome_web_default_notification_icon: null,
      chrome_web_sub_domain: null,
      apns_env: 'production',
      apns_certificates: null,
      apns_p12: null,
      apns_p8: null,
      apns_team_id: null,
      apns_key_id: null,
      apns_bundle_id: null,
      safari_site_origin: null,
      safari_push_id: null,
      safari_apns_certificates: null,
      safari_apns_p12: null,
      safari_icon_16_16: null,
      safari_icon_32_32: null,
      safari_icon_64_64: null,
      safari_icon_128_128: null,
      safari_icon_256_256: null,
      site_name: null,
      huawei_app_id: null,
      huawei_app_secret: null,
      huawei_project_id: null,
      huawei_package_name: null,
      adm_client_id: null,
      adm_client_secret: null,
      wns_package_sid: null,
      wns_client_secret: null,
      additional_data_is_root_payload: false,
      keyless: true,
      require_identity: false,
      identity_public_key: null,
      warnings: [],
    })
    expect(await view(body.id)).toEqual(body)
  })

  test('counts all subscriptions as players, and as messageable those of web and mobile that can be reached', async () => {
    const tenant = await app.anotherTenant()
    const organization = { authorization: `Key ${tenant.organizationKey}` }
    const look = (query = '') => app.request(`/apps/${tenant.id}${query}`, { headers: organization })
    const draft = (subscription: object) =>
      app.request(`/apps/${tenant.id}/users`, {
        headers: { authorization: `Key ${tenant.key}` },
        body: { identity: { external_id: newId() }, subscriptions: [subscription] },
      })
    await draft({ type: 'iOSPush', token: newId() })
    await draft({ type: 'ChromePush', token: newId() })
    await draft({ type: 'AndroidPush', token: newId(), enabled: false })
    await draft({ type: 'AndroidPush', token: newId(), notification_types: -2 })
    await draft({ type: 'AndroidPush' })
    await draft({ type: 'Email', token: anEmail() })
    const gone = await draft({ type: 'FirefoxPush', token: newId() })
    expect((await look()).body).toMatchObject({ players: 7, messageable_players: 3 })
    await app.request(`/apps/${tenant.id}/subscriptions/${gone.body.subscriptions[0].id}`, {
      method: 'DELETE',
      headers: { authorization: `Key ${tenant.key}` },
    })
    expect((await look()).body).toMatchObject({ players: 6, messageable_players: 2 })
    const [listed] = (await app.request('/apps', { headers: organization })).body
    expect(listed).toEqual((await look()).body)
  })

  test('leaves messageable_players out where view=config is passed', async () => {
    const appId = await anApp()
    const { messageable_players, ...rest } = await view(appId)
    expect(messageable_players).toBe(0)
    expect(await view(appId, '?view=config')).toEqual(rest)
    expect(told(await put(appId, {}, '?view=config'))).toEqual({ status: 200, body: rest })
    expect(told(await put(appId, {}, '?view=all'))).toEqual(refused('view must be "config"'))
  })

  test('is listed with all others of its organization, oldest first, and with none of another', async () => {
    const tenant = await app.anotherTenant()
    const list = async () =>
      (await app.request('/apps', { headers: { authorization: `Key ${tenant.organizationKey}` } })).body
    const first = await list()
    expect(first.map(({ id }: { id: string }) => id)).toEqual([tenant.id])
    clock.advance({ seconds: 1 })
    const second = await app.request('/apps', {
      headers: { authorization: `Key ${tenant.organizationKey}` },
      body: { name: 'Second' },
    })
    expect(await list()).toEqual([...first, second.body])
  })
})

describe('creating an app', () => {
  test('takes the whole configuration at once', async () => {
    const { body } = await create({ name: 'Shop', ...WEB, ...APPLE, apns_p8: aP8().file, apns_env: 'development' })
    const { safari_apns_p12, ...shown } = WEB
    expect(body).toMatchObject({ ...shown, ...APPLE, apns_p8: MASK, apns_env: 'development' })
    expect(await auditOf(body.id)).toMatchObject([{ action: 'app.create' }, { action: 'app.update' }])
  })

  test('makes nothing when anything is wrong', async () => {
    const count = async () => (await app.request('/apps', { headers: headers() })).body.length
    const before = await count()
    expect((await create({ name: 'Shop', apns_p8: 'bm8=' })).status).toBe(400)
    expect((await create({ name: 'Shop', chrome_web_origin: 'https://example.com' })).status).toBe(400)
    expect(told(await create({}))).toEqual(refused('name is required'))
    expect(told(await create({ name: '' }))).toEqual(refused('name must not be empty'))
    expect(await count()).toBe(before)
  })
})

describe('name', () => {
  test('is changed, and the change is dated', async () => {
    const appId = await anApp()
    const created = clock.now().toISOString()
    clock.advance({ hours: 1 })
    const { body } = await put(appId, { name: 'Store' })
    expect(body).toMatchObject({ name: 'Store', created_at: created, updated_at: clock.now().toISOString() })
    expect(await view(appId)).toEqual(body)
  })

  test('has at most 128 characters, whatever they are', async () => {
    const appId = await anApp()
    for (const letter of ['x', '😀']) {
      expect((await put(appId, { name: letter.repeat(128) })).body.name).toBe(letter.repeat(128))
      await expectRefused(appId, { name: letter.repeat(129) }, 'name must have at most 128 characters')
    }
    await expectRefused(appId, { name: '' }, 'name must not be empty')
    await expectRefused(appId, { name: 7 }, 'name must be a string or null')
  })
})

describe('organization_id', () => {
  test('of the key is accepted, in any case', async () => {
    const appId = await anApp({ organization_id: app.tenant.organizationId })
    expect((await put(appId, { organization_id: app.tenant.organizationId.toUpperCase() })).status).toBe(200)
  })

  test('that the key is not associated with is denied, whether or not there is such an organization', async () => {
    const appId = await anApp()
    const other = await app.anotherTenant()
    const denied = {
      status: 403,
      body: { errors: ['The organization key does not belong to the organization of organization_id'] },
    }
    for (const organization_id of [other.organizationId, NOBODY]) {
      expect(told(await put(appId, { organization_id, name: 'Taken' }))).toEqual(denied)
      expect(told(await create({ organization_id, name: 'Taken' }))).toEqual(denied)
    }
    expect(await view(appId)).toMatchObject({ name: 'Shop', organization_id: app.tenant.organizationId })
    await expectRefused(appId, { organization_id: 'ours' }, 'organization_id must be a UUID')
  })
})

describe('web push', () => {
  test('is configured by the name and both origins of the site', async () => {
    const appId = await anApp()
    const { safari_apns_p12, ...shown } = WEB
    expect((await put(appId, WEB)).body).toMatchObject(shown)
    expect((await put(appId, { site_name: 'Another' })).body).toMatchObject({ ...shown, site_name: 'Another' })
  })

  const { safari_apns_p12, safari_site_origin, chrome_web_origin, site_name } = WEB
  const chrome = { chrome_web_origin }
  const safari = { safari_site_origin, safari_apns_p12 }

  test.each([
    ['the name of the site alone', { site_name }],
    ['Chrome without Safari', { site_name, ...chrome }],
    ['Safari without Chrome', { site_name, ...safari }],
  ])('takes %s', async (_, body) => {
    const appId = await anApp()
    const { safari_apns_p12: _file, ...shown } = body as Partial<typeof WEB>
    expect((await put(appId, body)).body).toMatchObject({
      site_name: null,
      chrome_web_origin: null,
      safari_site_origin: null,
      ...shown,
    })
  })

  test.each([
    ['chrome_web_origin', chrome],
    ['safari_site_origin', safari],
    ['chrome_web_origin and safari_site_origin', { ...chrome, ...safari }],
  ])('needs site_name with %s, given or stored', async (origins, body) => {
    const appId = await anApp()
    const error = `site_name is required with ${origins}`
    await expectRefused(appId, body, error)
    await expectRefused(appId, { ...body, site_name: '' }, error)
    await put(appId, { site_name })
    expect((await put(appId, body)).status).toBe(200)
    await expectRefused(appId, { site_name: '' }, error)
  })

  test('is taken back as a whole', async () => {
    const appId = await anApp(WEB)
    const cleared = { site_name: '', chrome_web_origin: '', safari_site_origin: '' }
    expect((await put(appId, cleared)).body).toMatchObject({
      site_name: null,
      chrome_web_origin: null,
      safari_site_origin: null,
    })
  })

  test.each([
    ['https://example.com/', 'https://example.com'],
    ['https://Example.COM:443', 'https://example.com'],
    ['https://example.com:8443', 'https://example.com:8443'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
  ])('takes the origin %s', async (given, kept) => {
    const appId = await anApp({ ...WEB, chrome_web_origin: given, safari_site_origin: given })
    expect(await view(appId)).toMatchObject({ chrome_web_origin: kept, safari_site_origin: kept })
  })

  test.each([
    'http://example.com',
    'example.com',
    'https://',
    'https://example.com/shop',
    'https://example.com?x=1',
    'https://example.com#x',
    'https://user:word@example.com',
    'https://user@example.com',
    'https://exa mple.com',
    'https://example.com:99999',
    'ftp://example.com',
    'javascript:alert(1)',
  ])('refuses the origin %s', async (given) => {
    const appId = await anApp()
    const says = (field: string) => `${field} must be an https origin, as https://example.com, without a path`
    await expectRefused(
      appId,
      { ...WEB, chrome_web_origin: given, safari_site_origin: given },
      says('chrome_web_origin'),
      says('safari_site_origin'),
    )
  })

  const icons = ['chrome_web_default_notification_icon', 'safari_icon_256_256', 'safari_icon_16_16']
  test.each(icons)('takes an https address as %s, and no other', async (field) => {
    const appId = await anApp()
    const address = 'https://cdn.example.com/icons/256.png?v=2'
    expect((await put(appId, { [field]: address })).body[field]).toBe(address)
    for (const wrong of [
      'http://example.com/a.png',
      '/a.png',
      'https:///',
      'data:image/png;base64,AAAA',
      'https://u:p@x.example',
    ])
      await expectRefused(appId, { [field]: wrong }, `${field} must be the https address of an image`)
    expect((await put(appId, { [field]: '' })).body[field]).toBeNull()
  })

  test('gives the app a key pair of its own that stays', async () => {
    const [one, other] = [await anApp(), await anApp()]
    const { chrome_web_key: key } = await view(one)
    expect(Buffer.from(key, 'base64url')).toHaveLength(65)
    expect((await view(other)).chrome_web_key).not.toBe(key)
    expect((await put(one, { ...WEB, chrome_web_key: 'mine' })).body.chrome_web_key).toBe(key)
  })

  test('gives an app of the command line its pair once, however many look at once', async () => {
    const { id, organizationKey } = await app.anotherTenant()
    const look = () => app.request(`/apps/${id}`, { headers: { authorization: `Key ${organizationKey}` } })
    const answers = await Promise.all(Array.from({ length: 10 }, look))
    const keys = new Set(answers.map(({ body }) => body.chrome_web_key))
    expect(keys.size).toBe(1)
    expect([...keys][0]).toMatch(/^B[\w-]{86}$/)
  })
})

describe('safari_apns_p12', () => {
  test('must be there, possibly empty, whenever safari_site_origin is set', async () => {
    const appId = await anApp()
    const { safari_apns_p12, ...rest } = WEB
    const says = 'safari_apns_p12 must be there, if only as "", whenever safari_site_origin is set'
    await expectRefused(appId, rest, says)
    expect((await put(appId, WEB)).status).toBe(200)
    await expectRefused(appId, { safari_site_origin: 'https://example.org' }, says)
    expect((await put(appId, { safari_site_origin: 'https://example.org', safari_apns_p12: '' })).status).toBe(200)
    expect((await put(appId, { site_name: 'x' })).status).toBe(200)
  })

  test('is opened with its password, shown as a mask with its push id, and cleared by ""', async () => {
    const appId = await anApp()
    const file = aP12('word', 'web.com.example')
    const set = await put(appId, { ...WEB, safari_apns_p12: file, safari_apns_p12_password: 'word' })
    const shown = { safari_apns_p12: MASK, safari_apns_certificates: MASK, safari_push_id: 'web.com.example' }
    expect(set.body).toMatchObject(shown)
    expect((await put(appId, { safari_apns_p12: MASK })).body).toMatchObject(shown)
    expect((await put(appId, { safari_apns_p12: '' })).body).toMatchObject({
      safari_apns_p12: null,
      safari_apns_certificates: null,
      safari_push_id: null,
    })
    await expectRefused(
      appId,
      { safari_apns_p12: file, safari_apns_p12_password: 'Word' },
      'safari_apns_p12 cannot be opened with its password',
    )
  })
})

describe('apns_p8', () => {
  test('is taken with key id, team id and bundle id', async () => {
    const appId = await anApp()
    expect((await put(appId, { ...APPLE, apns_p8: aP8().file })).body).toMatchObject({
      ...APPLE,
      apns_p8: MASK,
      apns_certificates: null,
      apns_env: 'production',
    })
  })

  test.each(Object.keys(APPLE))('needs %s', async (name) => {
    const appId = await anApp()
    const { [name as keyof typeof APPLE]: _, ...rest } = APPLE
    await expectRefused(appId, { ...rest, apns_p8: aP8().file }, `${name} is required with apns_p8`)
    await put(appId, { ...APPLE, apns_p8: aP8().file })
    await expectRefused(appId, { [name]: '' }, `${name} is required with apns_p8`)
  })

  test('is taken with the line breaks of a command line', async () => {
    const appId = await anApp()
    const file = aP8().file.replaceAll(/(.{64})/g, '$1\r\n')
    expect((await put(appId, { ...APPLE, apns_p8: file })).status).toBe(200)
  })

  const NO_KEY = 'apns_p8 must be a p8 file from Apple: an EC private key on P-256 in PEM'
  test.each([
    ['text that is not Base64', 'not base64!', 'apns_p8 must be the file in Base64'],
    ['the key without Base64', aP8().pem, 'apns_p8 must be the file in Base64'],
    ['Base64 that was cut', 'AAAAA', 'apns_p8 must be the file in Base64'],
    ['nothing that is a key', base64('hello'), NO_KEY],
    ['a key of another curve', aP8('P-384').file, NO_KEY],
    ['an RSA key', base64(rsaPem()), NO_KEY],
    ['a p12', base64(keychain), NO_KEY],
    ['half of a key', base64(aP8().pem.slice(0, 120)), NO_KEY],
    ['a key under a passphrase', base64(aP8().pem.replaceAll('PRIVATE KEY', 'ENCRYPTED PRIVATE KEY')), NO_KEY],
    ['a file that is too large', base64(Buffer.alloc(65_537)), 'apns_p8 must have at most 65536 bytes'],
    ['a field that is too long', 'A'.repeat(90_001), 'apns_p8 must have at most 90000 characters'],
  ])('is not %s', async (_, apns_p8, says) => {
    await expectRefused(await anApp(), { ...APPLE, apns_p8 }, says)
  })

  test.each([
    ['production', 'production'],
    ['development', 'development'],
    ['sandbox', 'development'],
    ['', 'production'],
  ])('is used in the environment %j', async (given, kept) => {
    const appId = await anApp({ apns_env: 'development' })
    expect((await put(appId, { apns_env: given })).body.apns_env).toBe(kept)
  })

  test.each([
    [{ apns_env: 'test' }, 'apns_env must be "production" or "development"'],
    [{ apns_env: 'Production' }, 'apns_env must be "production" or "development"'],
    [{ apns_bundle_id: 'com example' }, 'apns_bundle_id must be a bundle id, as com.example.app'],
    [{ fcm_sender_id: '12a' }, 'fcm_sender_id must consist of digits'],
    [{ chrome_web_gcm_sender_id: '-1' }, 'chrome_web_gcm_sender_id must consist of digits'],
    [{ site_name: 'x'.repeat(129) }, 'site_name must have at most 128 characters'],
    [{ additional_data_is_root_payload: 'true' }, 'additional_data_is_root_payload must be true or false or null'],
    [{ apns_p8: 1 }, 'apns_p8 must be a string or null'],
    [{ site_name: 'a\0b' }, 'site_name contains U+0000 or half of a surrogate pair'],
  ])('%j is refused, and nothing changes', async (body, says) => {
    await expectRefused(await anApp(), body, says)
  })
})

describe('apns_p12', () => {
  test.each([
    ['as Keychain writes it', () => base64(keychain), 'secret'],
    ['under AES', () => aP12('secret', undefined, 'aes256'), 'secret'],
    ['without a password', () => aP12(''), undefined],
    ['with an elliptic key', () => base64(elliptic), 'secret'],
  ])('%s is opened with its password', async (_, file, apns_p12_password) => {
    const appId = await anApp()
    const { status, body } = await put(appId, { apns_p12: file(), apns_p12_password })
    expect(status).toBe(200)
    expect(body).toMatchObject({ apns_p12: MASK, apns_certificates: MASK, apns_p8: null })
  })

  test.each([
    ['under another password', () => base64(keychain), 'cannot be opened with its password'],
    ['without its private key', () => base64(withoutKey), 'must hold a certificate together with its private key'],
    ['that is none', () => base64('hello'), 'must be a p12 file'],
    ['that is not Base64', () => '***', 'must be the file in Base64'],
  ])('%s is refused', async (kind, file, says) => {
    const password = kind === 'without its private key' ? 'secret' : 'Secret'
    await expectRefused(await anApp(), { apns_p12: file(), apns_p12_password: password }, `apns_p12 ${says}`)
  })

  test('that would take for ever is refused, while others are served', async () => {
    const appId = await anApp()
    const hostile = put(appId, { apns_p12: base64(hostileP12()), apns_p12_password: 'x' })
    await aUser(app)
    expect(told(await hostile)).toEqual(
      refused('apns_p12 asks for more than 2000000 rounds of key derivation; export it again with fewer'),
    )
  })

  test('of which one organization sends many is refused to it alone', async () => {
    const other = await app.anotherTenant()
    const crafted = { apns_p12: base64(hostileP12()), apns_p12_password: 'x' }
    const appId = await anApp()
    const hostile = Array.from({ length: 8 }, () => put(appId, crafted))
    const { status } = await app.request(`/apps/${other.id}`, {
      method: 'PUT',
      headers: { authorization: `Key ${other.organizationKey}` },
      body: { apns_p12: base64(keychain), apns_p12_password: 'secret' },
    })
    expect(status).toBe(200)
    const answers = await Promise.all(hostile)
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([400, 429]))
    expect(answers.find((answer) => answer.status === 429)?.headers.get('retry-after')).toBe('5')
  })

  test('replaces a p8, and a p8 replaces it', async () => {
    const appId = await anApp({ ...APPLE, apns_p8: aP8().file })
    const p12 = { apns_p12: base64(keychain), apns_p12_password: 'secret' }
    expect((await put(appId, p12)).body).toMatchObject({ apns_p8: null, apns_p12: MASK, apns_certificates: MASK })
    expect((await put(appId, { apns_p8: aP8().file })).body).toMatchObject({ apns_p8: MASK, apns_certificates: null })
    expect((await put(appId, { ...p12, apns_p8: MASK })).body).toMatchObject({ apns_p8: null, apns_p12: MASK })
  })

  test('and p8 are not taken in one body', async () => {
    const both = { ...APPLE, apns_p8: aP8().file, apns_p12: base64(keychain), apns_p12_password: 'secret' }
    await expectRefused(await anApp(), both, 'apns_p8 and apns_p12 cannot be set together')
  })
})

describe('fcm_v1_service_account_json', () => {
  test('is taken, and shown as a mask; the sender id is null unless given', async () => {
    const appId = await anApp()
    const { body } = await put(appId, { fcm_v1_service_account_json: aServiceAccount() })
    expect(body).toMatchObject({ fcm_v1_service_account_json: MASK, fcm_sender_id: null })
    expect((await put(appId, { fcm_sender_id: '1234567890' })).body.fcm_sender_id).toBe('1234567890')
  })

  const says = (what: string) => `fcm_v1_service_account_json must be the JSON of a service account: ${what}`
  test.each([
    ['JSON that is not Base64', '{"type":"service_account"}', 'fcm_v1_service_account_json must be the file in Base64'],
    ['no JSON', base64('hello'), says('it is not a JSON object')],
    ['JSON that is no object', base64('null'), says('it is not a JSON object')],
    ['another type', aServiceAccount({ type: 'authorized_user' }), says('its type must be "service_account"')],
    ['no project', aServiceAccount({ project_id: undefined }), says('its project_id is missing or not valid')],
    ['a path as project', aServiceAccount({ project_id: 'a/../b' }), says('its project_id is missing or not valid')],
    ['no email', aServiceAccount({ client_email: 7 }), says('its client_email is missing or not valid')],
    ['no key', aServiceAccount({ private_key: 'x' }), says('its private_key is missing or not an RSA key in PEM')],
    [
      'an EC key',
      aServiceAccount({ private_key: aP8().pem }),
      says('its private_key is missing or not an RSA key in PEM'),
    ],
  ])('is not %s', async (_, fcm_v1_service_account_json, error) => {
    await expectRefused(await anApp(), { fcm_v1_service_account_json }, error)
  })
})

describe('what is not spoken of', () => {
  const everything = () => ({
    ...WEB,
    ...APPLE,
    safari_apns_p12: aP12('word', 'web.com.example'),
    safari_apns_p12_password: 'word',
    fcm_v1_service_account_json: aServiceAccount(),
    apns_p8: aP8().file,
    additional_data_is_root_payload: true,
  })

  test.each([
    ['everything', everything],
    ['nothing', () => ({})],
    ['a site without a certificate', () => WEB],
  ])('stays as it is, and so does what is sent back as it was answered: %s is set', async (_, configuration) => {
    const appId = await anApp(configuration())
    const before = await view(appId)
    const { additional_data_is_root_payload } = { additional_data_is_root_payload: false, ...configuration() }
    expect(before).toMatchObject({ additional_data_is_root_payload })
    const [stored] = await app.db.query(sql`select push_settings, credentials from apps where id = ${appId}`)
    const entries = await auditOf(appId)
    clock.advance({ hours: 1 })
    expect((await put(appId, {})).body).toEqual(before)
    expect((await put(appId, before)).body).toEqual(before)
    expect(await app.db.query(sql`select push_settings, credentials from apps where id = ${appId}`)).toEqual([stored])
    expect(await auditOf(appId)).toEqual(entries)
  })

  test('is null: clients send it for what they do not know', async () => {
    const appId = await anApp(everything())
    const before = await view(appId)
    const nulls = Object.fromEntries(Object.keys(everything()).map((name) => [name, null]))
    expect((await put(appId, { name: null, organization_id: null, ...nulls })).body).toEqual(before)
  })

  test('and "" clears', async () => {
    const appId = await anApp(everything())
    const cleared = Object.keys(everything()).filter((name) => !/password|root_payload/.test(name))
    const { body } = await put(appId, {
      ...Object.fromEntries(cleared.map((name) => [name, ''])),
      additional_data_is_root_payload: false,
    })
    for (const name of cleared) expect([name, body[name]]).toEqual([name, null])
    expect(body.additional_data_is_root_payload).toBe(false)
  })

  test('are email and SMS, which cannot be configured here, and whatever else nobody knows', async () => {
    const appId = await anApp()
    const before = await view(appId)
    const strange = {
      email_provider: 'x',
      sms_from: '+15550001',
      basic_auth_key: 'k',
      players: 5,
      id: NOBODY,
      gcm_key: 'x',
    }
    expect((await put(appId, strange)).body).toEqual(before)
  })
})

describe('an update', () => {
  test('tells everything that is wrong at once', async () => {
    const body = { chrome_web_origin: 'x', apns_env: 'x', apns_p8: 'x', apns_p12: 'x', safari_icon_256_256: 'x' }
    const answer = await put(await anApp(), body)
    const fields = answer.body.errors.map((error: string) => error.split(' ')[0])
    expect(fields).toEqual(['chrome_web_origin', 'apns_env', 'safari_icon_256_256', 'apns_p8', 'apns_p8', 'apns_p12'])
  })

  test('is in the audit log, with who, from where and which fields, and without their values', async () => {
    const appId = await anApp()
    clock.advance({ minutes: 1 })
    await put(appId, { name: 'Store', ...WEB, ...APPLE, apns_p8: aP8().file })
    const log = await auditOf(appId)
    expect(log).toEqual([
      { action: 'app.create', actorIp: '127.0.0.1', detail: expect.anything() },
      {
        action: 'app.update',
        actorIp: '127.0.0.1',
        detail: {
          name: 'Store',
          fields: [
            'name',
            'chrome_web_origin',
            'apns_team_id',
            'apns_key_id',
            'apns_bundle_id',
            'safari_site_origin',
            'site_name',
            'apns_p8',
          ],
        },
      },
    ])
  })

  test('at the same time as others loses none of them', async () => {
    const appId = await anApp()
    const answers: Answer[] = await Promise.all([
      put(appId, { ...APPLE, apns_p8: aP8().file }),
      put(appId, WEB),
      put(appId, { fcm_sender_id: '1' }),
      put(appId, { additional_data_is_root_payload: true }),
      put(appId, { safari_icon_32_32: 'https://example.com/32.png' }),
      put(appId, { fcm_v1_service_account_json: aServiceAccount() }),
    ])
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200))
    expect(await view(appId)).toMatchObject({
      apns_p8: MASK,
      site_name: WEB.site_name,
      fcm_sender_id: '1',
      additional_data_is_root_payload: true,
      safari_icon_32_32: 'https://example.com/32.png',
      fcm_v1_service_account_json: MASK,
    })
  })

  test('needs a body', async () => {
    const appId = await anApp()
    const bare = await app.request(`/apps/${appId}`, { method: 'PUT', headers: headers() })
    expect(told(bare)).toEqual(refused('The body must be an object'))
  })
})

describe('SDKs without a key', () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = publicKey.export({ type: 'spki', format: 'pem' }) as string
  const doorOf = ({ keyless, require_identity, identity_public_key }: Record<string, unknown>) => ({
    keyless,
    require_identity,
    identity_public_key,
  })

  test('are let in without proof at first; the app can ask for it, or shut the door', async () => {
    const id = await anApp()
    expect(doorOf(await view(id))).toEqual({ keyless: true, require_identity: false, identity_public_key: null })
    const proving = await put(id, { require_identity: true, identity_public_key: pem })
    const asked = { keyless: true, require_identity: true, identity_public_key: pem }
    expect(doorOf(proving.body)).toEqual(asked)
    expect(doorOf((await put(id, { name: 'Other', keyless: null, identity_public_key: null })).body)).toEqual(asked)
    const shut = await put(id, { keyless: false, require_identity: false, identity_public_key: '' })
    expect(doorOf(shut.body)).toEqual({ keyless: false, require_identity: false, identity_public_key: null })
    const sdk = { accept: 'application/vnd.onesignal.v1+json', 'sdk-version': 'onesignal/web/1', authorization: '' }
    expect((await app.request(`/apps/${id}/users`, { headers: sdk, body: { identity: {} } })).status).toBe(401)
    expect((await auditOf(id)).map(({ detail }) => detail)).toContainEqual({
      fields: ['keyless', 'require_identity', 'identity_public_key'],
    })
  })

  test('can be configured with a new app', async () => {
    const id = await anApp({ require_identity: true, identity_public_key: pem })
    expect(await view(id)).toMatchObject({ require_identity: true, identity_public_key: pem })
  })

  test.each<[string, object, string]>([
    ['proof without a key', { require_identity: true }, 'Identity verification needs a public key'],
    [
      'a key that is none',
      { identity_public_key: 'nonsense' },
      'The identity key must be a public key in PEM: EC on P-256, or RSA of 2048 bits or more',
    ],
  ])('%s is refused', async (_, body, error) => expectRefused(await anApp(), body, error))

  test('are warned of where the app has addresses', async () => {
    const { id, key, organizationKey } = await app.anotherTenant()
    const organization = { authorization: `Key ${organizationKey}` }
    const warnings = async () => (await app.request(`/apps/${id}`, { headers: organization })).body.warnings
    expect(await warnings()).toEqual([])
    const body = { subscriptions: [{ type: 'Email', token: anEmail() }] }
    await app.request(`/apps/${id}/users`, { headers: { authorization: `Key ${key}` }, body })
    expect(await warnings()).toEqual([expect.stringMatching(/external id of a user can sign in.*require_identity/s)])
    await app.request(`/apps/${id}`, { method: 'PUT', headers: organization, body: { keyless: false } })
    expect(await warnings()).toEqual([])
  })
})
