import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../../test/app.ts'
import { SMPP, setSms, TWILIO } from '../../../test/sms.ts'
import { told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { secretBox } from '../../lib/secrets.ts'
import { sql } from '../../storage/sql.ts'
import { readSmsProvider } from './configure.ts'

const MASK = '********'
const SECRET_KEY = 'the secret key of these tests'
let app: TestApp
let tenant: Tenant
const clock = virtualClock()
beforeAll(async () => {
  app = await testApp({ clock, publicUrl: 'https://bell.example/', secretKey: SECRET_KEY })
})
afterAll(() => app.close())

/** Each test has an app of its own. */
async function anApp(): Promise<Tenant> {
  tenant = await app.anotherTenant()
  return tenant
}
const headers = () => ({ authorization: `Key ${tenant.organizationKey}` })
const path = () => `/apps/${tenant.id}/sms_settings`
const put = (body: object) => setSms(app, body, tenant)
const view = async () => (await app.request(path(), { headers: headers() })).body
const provider = () => readSmsProvider({ db: app.db, secrets: secretBox(SECRET_KEY) }, tenant.id)
const refused = (...errors: string[]) => ({ status: 400, body: { errors } })

describe('a provider of texts', () => {
  test('is not there until it is set, and not after it was taken away', async () => {
    await anApp()
    expect(await view()).toEqual({ kind: null })
    expect(await provider()).toBeUndefined()
    await put(TWILIO)
    expect(told(await app.request(path(), { method: 'DELETE', headers: headers() }))).toEqual({
      status: 200,
      body: { kind: null },
    })
    expect(await provider()).toBeUndefined()
    const [stored] = await app.db.query(sql`select sms_settings, credentials from apps where id = ${tenant.id}`)
    expect(stored).toEqual({ smsSettings: null, credentials: {} })
    expect((await app.request(path(), { method: 'DELETE', headers: headers() })).status).toBe(200)
  })

  test('like Twilio is shown without its token, with the address that texts have to be sent to', async () => {
    await anApp()
    const shown = {
      kind: 'twilio',
      account_sid: TWILIO.account_sid,
      auth_token: MASK,
      from: TWILIO.from,
      messaging_service_sid: null,
      opt_out_words: [],
      opt_in_words: [],
      callback_url: `https://bell.example/feedback/twilio/${tenant.id}`,
    }
    expect(told(await put(TWILIO))).toEqual({ status: 200, body: shown })
    expect(await view()).toEqual(shown)
    expect(await provider()).toMatchObject({ kind: 'twilio', secret: TWILIO.auth_token })
  })

  test('that speaks SMPP is shown without its password', async () => {
    await anApp()
    expect(told(await put({ ...SMPP, tls: true, source_addr_ton: 5, source_addr_npi: 0 }))).toEqual({
      status: 200,
      body: {
        kind: 'smpp',
        host: 'smsc.example.com',
        port: 3550,
        tls: true,
        system_id: 'shop',
        password: MASK,
        system_type: null,
        from: SMPP.from,
        source_addr_ton: 5,
        source_addr_npi: 0,
        opt_out_words: [],
        opt_in_words: [],
      },
    })
    expect(await provider()).toMatchObject({ kind: 'smpp', secret: SMPP.password })
  })

  test('leaves the push credentials as they are, and they it', async () => {
    await anApp()
    await app.request(`/apps/${tenant.id}`, { headers: headers() })
    await put(TWILIO)
    const body = { name: 'Shop', fcm_sender_id: '123' }
    expect((await app.request(`/apps/${tenant.id}`, { method: 'PUT', headers: headers(), body })).status).toBe(200)
    expect(await provider()).toMatchObject({ secret: TWILIO.auth_token })
    const [stored] = await app.db.query<{ credentials: object }>(
      sql`select credentials from apps where id = ${tenant.id}`,
    )
    expect(Object.keys(stored?.credentials ?? {}).sort()).toEqual(['sms', 'vapid'])
  })
})

describe('its secret', () => {
  test('stays when it is masked or left out, and with whom it was given for', async () => {
    await anApp()
    await put(TWILIO)
    const { auth_token, ...without } = TWILIO
    expect((await put({ ...without, from: '+15550009999' })).status).toBe(200)
    expect((await put({ ...TWILIO, auth_token: MASK })).status).toBe(200)
    expect(await provider()).toMatchObject({ secret: auth_token })
    expect(told(await put({ ...without, account_sid: 'AC2' }))).toEqual(
      refused('auth_token is required: it was not given yet, or for another place'),
    )
    expect(told(await put({ ...SMPP, password: MASK }))).toEqual(
      refused('password is required: it was not given yet, or for another place'),
    )
    await put(SMPP)
    for (const elsewhere of [{ host: 'evil.example' }, { port: 9999 }, { tls: true }, { system_id: 'other' }])
      expect((await put({ ...SMPP, password: null, ...elsewhere })).status).toBe(400)
    expect((await put({ ...SMPP, password: null, system_type: 'VMA' })).status).toBe(200)
    expect(await provider()).toMatchObject({ kind: 'smpp', system_type: 'VMA', secret: SMPP.password })
  })

  test('is neither in the database in clear nor in the audit log', async () => {
    await anApp()
    await put({ ...TWILIO, auth_token: 'marker-of-the-token' })
    const stored = await app.db.query(sql`select * from apps where id = ${tenant.id}`)
    const audit = await app.db.query<{ action: string; detail: object }>(sql`
      select action, detail from audit_log where app_id = ${tenant.id} and action like 'sms%'`)
    expect(JSON.stringify([stored, audit])).not.toContain('marker-of-the-token')
    expect(audit).toEqual([
      {
        action: 'sms_settings.update',
        detail: { fields: ['kind', 'account_sid', 'from', 'opt_out_words', 'opt_in_words', 'secret'] },
      },
    ])
    await put({ ...TWILIO, auth_token: MASK })
    expect(
      await app.db.query(sql`select id from audit_log where app_id = ${tenant.id} and action like 'sms%'`),
    ).toHaveLength(1)
  })
})

describe('what cannot work', () => {
  test.each<[object, string[]]>([
    [{ ...TWILIO, account_sid: null }, ['account_sid is required with kind "twilio"']],
    [
      { ...TWILIO, account_sid: 'AC/../1' },
      ['account_sid must be the id of an account, as ACxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'],
    ],
    [{ ...TWILIO, from: '' }, ['from or messaging_service_sid is required with kind "twilio"']],
    [{ ...TWILIO, auth_token: undefined }, ['auth_token is required: it was not given yet, or for another place']],
    [{ ...TWILIO, auth_token: 'tökén' }, ['auth_token must consist of letters, digits and signs']],
    [
      { kind: 'smpp', password: 'x' },
      [
        'host is required with kind "smpp"',
        'system_id is required with kind "smpp"',
        'from is required with kind "smpp"',
      ],
    ],
    [{ ...SMPP, host: 'a b' }, ['host must be the name or the address of a host']],
    [{ ...SMPP, source_addr_ton: 1 }, ['source_addr_ton and source_addr_npi must be given together']],
    [{ ...TWILIO, opt_out_words: ['!?'] }, ['opt_out_words must hold words']],
  ])('is refused, all of it at once: %j', async (body, errors) => {
    await anApp()
    expect(told(await put(body))).toEqual(refused(...errors))
    expect(await view()).toEqual({ kind: null })
  })

  test.each<[object]>([
    [{}],
    [{ ...TWILIO, kind: 'pigeon' }],
    [{ ...SMPP, port: 25 }],
    [{ ...SMPP, port: '2775' }],
    [{ ...TWILIO, opt_out_words: 'STOP' }],
    [{ ...TWILIO, auth_token: 'x'.repeat(257) }],
  ])('is refused by its form: %j', async (body) => {
    await anApp()
    expect((await put(body)).status).toBe(400)
  })

  test('words are kept bare, in capitals and once', async () => {
    await anApp()
    await put({ ...TWILIO, opt_out_words: ['arrêt', ' ARRÊT! ', 'Baja'], opt_in_words: ['Alta'] })
    expect(await view()).toMatchObject({ opt_out_words: ['ARRÊT', 'BAJA'], opt_in_words: ['ALTA'] })
  })
})

test('settings set at the same time leave one of them whole', async () => {
  await anApp()
  await Promise.all([put(TWILIO), put(SMPP), put(TWILIO), put(SMPP)])
  const found = await provider()
  expect(found?.secret).toBe(found?.kind === 'twilio' ? TWILIO.auth_token : SMPP.password)
})

test('nobody asks about an app that is not there', async () => {
  await anApp()
  expect((await app.request(`/apps/${newId()}/sms_settings`, { headers: headers() })).status).toBe(404)
})
