// Secrets go in and never come out: not in an answer, not in a line of the log at any level, not in the clear in the database.

import { createPrivateKey } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Log } from '../../src/lib/log.ts'
import { Sql } from '../../src/storage/sql.ts'
import { type Answer, type TestApp, testApp } from '../app.ts'
import { aP8, aP12, aServiceAccount, base64, hostileP12, rsaPem } from '../credentials.ts'
import { keychain } from '../fixtures/p12.ts'
import { readCatalogue } from '../sql-rules/catalogue.ts'
import { NOBODY } from '../users.ts'

const PASSWORDS = ['marker-apns-word-7c1f', 'marker-safari-word-9a2e', 'marker-wrong-word-51d0']
const SECRET_KEY = 'marker-secret-key-of-the-server'
/** Markers by the name of what they would give away. */
const markers = new Map<string, string>()
const answers: string[] = []
const lines: string[] = []
let app: TestApp

beforeAll(async () => {
  // Without the fence that hides what is logged by mistake: there must be nothing to hide.
  const log: Log = pino({ level: 'trace' }, { write: (line) => void lines.push(line) })
  app = await testApp({ secretKey: SECRET_KEY, log })
})
afterAll(() => app.close())

const plant = (name: string, secret: string) => {
  markers.set(name, secret)
  return secret
}
/** The middle of what a PEM holds: on one line, and on the lines of a file. */
function plantPem(name: string, pem: string) {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' }).toString('base64')
  plant(`${name} in one line`, der.slice(60, 100))
  plant(`${name} in lines`, pem.split('\n')[2]?.slice(0, 40) ?? '')
}

async function ask(path: string, method = 'GET', body?: object): Promise<Answer> {
  const headers = { authorization: `Key ${app.tenant.organizationKey}` }
  const answer = await app.request(path, { method, headers, ...(body && { body }) })
  answers.push(JSON.stringify(answer.body), JSON.stringify([...answer.headers]))
  return answer
}

const APPLE = { apns_key_id: 'ABCDE12345', apns_team_id: 'TEAM123456', apns_bundle_id: 'com.example.shop' }

/** Everything that can be done with apps and keys, rightly and wrongly. */
async function useEverything() {
  const appPath = `/apps/${app.tenant.id}`
  const p8 = aP8()
  plant('p8 file', p8.file.slice(40, 90))
  plantPem('p8', p8.pem)
  plantPem('RSA key', rsaPem())
  const account = aServiceAccount({ private_key_id: plant('key id of the account', 'marker-private-key-id') })
  plant('service account file', account.slice(200, 260))
  const safari = aP12(plant('safari password', PASSWORDS[1] as string), 'web.com.example')
  plant('safari p12', safari.slice(400, 460))
  const p12 = aP12(plant('p12 password', PASSWORDS[0] as string))
  plant('p12', p12.slice(400, 460))
  plant('wrong password', PASSWORDS[2] as string)
  plant('secret key', SECRET_KEY)

  const configured = await ask(appPath, 'PUT', {
    ...APPLE,
    apns_p8: p8.file,
    fcm_v1_service_account_json: account,
    site_name: 'Shop',
    chrome_web_origin: 'https://example.com',
    safari_site_origin: 'https://example.com',
    safari_apns_p12: safari,
    safari_apns_p12_password: PASSWORDS[1],
  })
  expect(configured.status).toBe(200)
  await ask(appPath)
  await ask('/apps')
  expect((await ask(appPath, 'PUT', { apns_p12: p12, apns_p12_password: PASSWORDS[0] })).status).toBe(200)
  expect((await ask(appPath, 'PUT', { apns_p8: p8.file })).status).toBe(200)
  await ask('/apps', 'POST', { name: 'Second', ...APPLE, apns_p8: p8.file })

  const twilio = {
    kind: 'twilio',
    account_sid: 'AC1',
    from: '+15550001111',
    auth_token: plant('token of texts', 'marker-auth-token-3b7e'),
  }
  const smpp = {
    kind: 'smpp',
    host: 'a.example',
    system_id: 'a',
    password: plant('smpp', 'marker-smpp-word-4c'),
    from: '1234',
  }
  for (const settings of [twilio, smpp])
    expect((await ask(`${appPath}/sms_settings`, 'PUT', settings)).status).toBe(200)
  expect((await ask(`${appPath}/sms_settings`, 'PUT', { ...twilio, from: 'not a sender at all' })).status).toBe(400)
  await ask(`${appPath}/sms_settings`)

  // What is refused must not be quoted.
  for (const wrong of [
    { apns_p12: p12, apns_p12_password: PASSWORDS[2] },
    { apns_p12: base64(keychain), apns_p12_password: PASSWORDS[2] },
    { apns_p12: base64(hostileP12()), apns_p12_password: PASSWORDS[2] },
    { apns_p8: p8.pem },
    { apns_p8: account },
    { apns_p8: p8.file, apns_p12: p12 },
    { fcm_v1_service_account_json: aServiceAccount({ type: 'marker' }) },
    { fcm_v1_service_account_json: aServiceAccount({ project_id: rsaPem() }) },
    { fcm_v1_service_account_json: base64(rsaPem()) },
    { safari_apns_p12: safari.slice(0, 800), safari_apns_p12_password: PASSWORDS[1] },
    { apns_env: rsaPem().slice(0, 16), apns_p12_password: [PASSWORDS[0]] },
    { organization_id: NOBODY, apns_p8: p8.file },
  ])
    expect((await ask(appPath, 'PUT', wrong)).status).toBeGreaterThanOrEqual(400)
  const raw = `{"apns_p8":"${p8.file}","apns_p12_password":"${PASSWORDS[0]}"`
  const torn = await app.request(appPath, {
    method: 'PUT',
    raw,
    headers: { authorization: `Key ${app.tenant.organizationKey}` },
  })
  answers.push(JSON.stringify(torn.body))

  // A key is shown by the answer that makes it, and by no other.
  const made = await app.request(`${appPath}/auth/tokens`, {
    body: { name: 'CI' },
    headers: { authorization: `Key ${app.tenant.organizationKey}` },
  })
  plant('key', made.body.formatted_token.slice(10))
  const rotated = await app.request(`${appPath}/auth/tokens/${made.body.token_id}/rotate`, {
    method: 'POST',
    headers: { authorization: `Key ${app.tenant.organizationKey}` },
  })
  plant('rotated key', rotated.body.formatted_token.slice(10))
  plant('organization key', app.tenant.organizationKey.slice(10))
  await app.request(`${appPath}/auth/tokens`, { headers: { authorization: `Key ${rotated.body.formatted_token}` } })
  await ask(`${appPath}/auth/tokens`)
  await ask(`${appPath}/auth/tokens/${made.body.token_id}`, 'PATCH', { name: 'Other' })
  await ask(
    `/organizations/${app.tenant.organizationId}/audit_logs?start_time=${new Date(Date.now() - 60_000).toISOString()}`,
  )
  await ask(`${appPath}/auth/tokens/${made.body.token_id}`, 'DELETE')
}

describe('secrets', () => {
  beforeAll(useEverything, 60_000)

  test('are in no answer', () => {
    expect(answers.length).toBeGreaterThan(40)
    expect(markers.size).toBeGreaterThan(12)
    const all = answers.join('\n')
    for (const [name, marker] of markers) expect([name, all.includes(marker)]).toEqual([name, false])
  })

  test('are in no line of the log', () => {
    const all = lines.join('')
    expect(all).toContain('updateApp')
    for (const [name, marker] of markers) expect([name, all.includes(marker)]).toEqual([name, false])
  })

  test('are nowhere in the database in clear', async () => {
    const { tables } = await readCatalogue(app.db)
    expect(tables.length).toBeGreaterThan(10)
    for (const { name: table } of tables) {
      const [row] = await app.db.query<{ content: string | null }>(
        new Sql(`select string_agg(t::text, E'\n') as content from ${table} t`, []),
      )
      for (const [name, marker] of markers)
        expect([table, name, (row?.content ?? '').includes(marker)]).toEqual([table, name, false])
    }
  })

  test('would be found if they were there', async () => {
    // The same search, for what is no secret: it must see into jsonb and into every table.
    const { tables } = await readCatalogue(app.db)
    const seen = new Set<string>()
    for (const { name: table } of tables) {
      const [row] = await app.db.query<{ content: string | null }>(
        new Sql(`select string_agg(t::text, E'\n') as content from ${table} t`, []),
      )
      if (row?.content?.includes('com.example.shop')) seen.add(table)
    }
    expect([...seen]).toEqual(['apps'])
    expect(answers.join('\n')).toContain('com.example.shop')
  })
})
