import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../../test/app.ts'
import { anEmailContext } from '../../../test/email.ts'
import { told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'
import { findDefaultFrom } from '../domains/find-sending-domain.ts'
import { findEmailRoute } from '../find-route.ts'

const MASK = '********'
const clock = virtualClock()
let server: TestApp
let tenant: Tenant
beforeAll(async () => {
  server = await testApp({ clock, providers: { outbound: { route: {}, allow: ['10.1.0.0/16'], allowHttp: false } } })
})
afterAll(() => server.close())
beforeEach(async () => {
  tenant = await server.anotherTenant()
})

const ask = (method: string, body?: object, key = tenant.key) =>
  server.request(`/apps/${tenant.id}/email/settings`, {
    method,
    headers: { authorization: `Key ${key}` },
    ...(body && { body }),
  })
const put = (body: object, key?: string) => ask('PUT', body, key)
const route = (serverEmail?: Parameters<typeof anEmailContext>[0]['serverEmail']) =>
  findEmailRoute(anEmailContext({ db: server.db, clock, ...(serverEmail && { serverEmail }) }), tenant.id)

const RELAY = { host: 'smtp.example.com', username: 'shop', password: 'word' }
const NONE = { mode: null, relay: null, from_address: null, from_name: null, way: 'catch', paused_since: null }

describe('settings', () => {
  test('are none at first, then a relay with its password masked, then none again', async () => {
    expect(told(await ask('GET'))).toEqual({ status: 200, body: NONE })
    const shown = {
      ...NONE,
      mode: 'relay',
      way: 'relay',
      relay: {
        host: 'smtp.example.com',
        port: 587,
        tls: 'starttls',
        username: 'shop',
        password: MASK,
        pool: 5,
        per_second: null,
      },
      from_address: 'shop@example.com',
      from_name: 'Shop',
    }
    const set = await put({ relay: RELAY, from_address: 'shop@example.com', from_name: 'Shop' })
    expect(told(set)).toEqual({ status: 200, body: shown })
    expect(told(await ask('GET'))).toEqual({ status: 200, body: shown })
    expect(await route()).toEqual({
      kind: 'relay',
      of: 'app',
      isCatcher: false,
      host: 'smtp.example.com',
      port: 587,
      tls: 'starttls',
      auth: { user: 'shop', password: 'word' },
      connections: 5,
    })
    expect(await findDefaultFrom({ db: server.db }, tenant.id)).toEqual({ address: 'shop@example.com', name: 'Shop' })
    expect(told(await ask('DELETE'))).toEqual({ status: 200, body: NONE })
    expect(await route()).toEqual({ kind: 'catch' })
    expect(await findDefaultFrom({ db: server.db }, tenant.id)).toBeUndefined()
  })

  test('keep the password for the same place alone', async () => {
    await put({ relay: RELAY })
    const again = { ...RELAY, password: MASK, pool: 9, per_second: 20 }
    expect((await put({ relay: again })).status).toBe(200)
    expect(await route()).toMatchObject({ auth: { password: 'word' }, connections: 9, perSecond: 20 })
    for (const change of [{ host: 'evil.example.com' }, { port: 2525 }, { username: 'other' }])
      expect(told(await put({ relay: { ...RELAY, password: undefined, ...change } }))).toEqual({
        status: 400,
        body: { errors: ['relay.password is required: it was not given yet, or for another place'] },
      })
    expect(await route()).toMatchObject({ host: 'smtp.example.com', auth: { password: 'word' } })
    // Without a user there is no password to keep.
    await put({ relay: { host: 'smtp.example.com' } })
    expect((await ask('GET')).body.relay).toMatchObject({ username: null, password: null })
    expect((await put({ relay: { ...RELAY, password: undefined } })).status).toBe(400)
  })

  test('are sealed, and in the audit log without values', async () => {
    for (const change of [0, 1]) {
      await put({ relay: RELAY, from_address: 'a@example.com' })
      clock.advance({ seconds: change + 1 })
    }
    const [kept] = await server.db.query<{ sealed: string }>(
      sql`select credentials ->> 'email' as sealed from apps where id = ${tenant.id}`,
    )
    expect(kept?.sealed).toMatch(/^v1\./)
    await ask('DELETE')
    await ask('DELETE')
    const entries = await server.db.query<{ action: string; detail: { fields: string[] } }>(
      sql`select action, detail from audit_log where app_id = ${tenant.id} and action like 'email%' order by at`,
    )
    expect(entries.map(({ action }) => action)).toEqual([
      'email_settings.update',
      // The same password is sealed anew.
      'email_settings.update',
      'email_settings.delete',
    ])
    expect(entries[0]?.detail.fields).toEqual(['mode', 'relay', 'from_address', 'password'])
    expect(entries[1]?.detail.fields).toEqual(['password'])
  })

  test.each([
    [{ relay: { host: '127.0.0.1' } }, 'relay.host must not be a private address'],
    [{ relay: { host: '[::1]' } }, 'relay.host must not be a private address'],
    [{ relay: { host: '169.254.169.254' } }, 'relay.host must not be a private address'],
    [{ relay: { host: 'a b' } }, 'relay.host must be the full name or the address of a host'],
    [{ relay: { host: 'relay.example.com', port: 22 } }, 'relay.port must be 25, 465, 587, or 1024 and above'],
    [{ relay: { host: 'relay.example.com', port: 0 } }, 'relay.port must be at least 1'],
    [{ relay: { host: 'relay.example.com', password: 'x' } }, 'relay.username is required with relay.password'],
    [
      { relay: { ...RELAY, tls: 'none' } },
      'relay.tls must be "starttls" or "implicit" with relay.username: the password could be read on its way',
    ],
    [
      { relay: { ...RELAY, username: 'a\r\nRCPT TO:<x>' } },
      'relay.username and relay.password must not hold control characters',
    ],
    [{ mode: 'relay' }, 'relay is required with mode "relay"'],
    [{ mode: null, relay: RELAY }, 'mode must be "relay" where a relay is given'],
    [{ from_address: 'nobody' }, 'from_address must be an email address'],
    [{ from_address: 'a@b.example\r\nBcc: x@y.example' }, 'from_address must be an email address'],
    [{ from_name: 'a\nb' }, 'from_name must be a line of text'],
  ])('%j is refused, and changes nothing', async (body, error) => {
    expect(told(await put(body))).toEqual({ status: 400, body: { errors: [error] } })
    expect((await ask('GET')).body).toEqual(NONE)
  })

  test('may name a private address that the operator allows, and one with implicit TLS', async () => {
    expect((await put({ relay: { host: '10.1.2.3', tls: 'none', port: 1025 } })).status).toBe(200)
    const implicit = await put({ relay: { ...RELAY, port: 465 } })
    expect(implicit.body.relay).toMatchObject({ tls: 'implicit', port: 465 })
  })

  test('say direct with an organization key, or where the server does so anyway', async () => {
    expect(told(await put({ mode: 'direct' }))).toEqual({
      status: 403,
      body: { errors: ['mode "direct" is for organization keys, where the server itself does not send directly'] },
    })
    expect((await put({ mode: 'direct' }, tenant.organizationKey)).body.way).toBe('direct')
    expect(await route()).toEqual({ kind: 'direct' })
  })
})

describe('the way of the server', () => {
  const relay = { host: '10.0.0.9', port: 25, tls: 'opportunistic' as const, connections: 5, isCatcher: false }

  test('is that of apps that say nothing of their own', async () => {
    expect(await route({ route: relay, helo: 'mail.example.com' })).toEqual({ kind: 'relay', of: 'server', ...relay })
    expect(await route({ route: 'direct', helo: 'mail.example.com' })).toEqual({ kind: 'direct' })
    await put({ from_address: 'a@example.com' })
    expect(await route({ route: relay, helo: 'mail.example.com' })).toMatchObject({ of: 'server' })
  })

  test('gives way to an app’s own', async () => {
    await put({ relay: RELAY })
    expect(await route({ route: 'direct', helo: 'mail.example.com' })).toMatchObject({ of: 'app', host: RELAY.host })
  })
})
