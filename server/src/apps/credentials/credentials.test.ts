import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aP8, aP12, aServiceAccount, rsaPem } from '../../../test/credentials.ts'
import { NOBODY } from '../../../test/users.ts'
import { readApnsCredentials } from '../../channels/push/apns/provider.ts'
import { secretBox } from '../../lib/secrets.ts'
import { sql } from '../../storage/sql.ts'
import { findApp } from '../store.ts'
import { openPushSettings } from './credentials.ts'
import { withVapidPair } from './vapid.ts'

const SECRET = 'one secret key of this test'
let app: TestApp
beforeAll(async () => {
  app = await testApp({ secretKey: SECRET })
})
afterAll(() => app.close())

const read = (appId: string, secretKey = SECRET) =>
  openPushSettings({ db: app.db, secrets: secretBox(secretKey) }, appId)
const request = (path: string, method: string, body: object) =>
  app.request(path, { method, headers: { authorization: `Key ${app.tenant.organizationKey}` }, body })
const anApp = async (body: object): Promise<string> =>
  (await request('/apps', 'POST', { name: 'Shop', ...body })).body.id

const APPLE = { apns_key_id: 'ABCDE12345', apns_team_id: 'TEAM123456', apns_bundle_id: 'com.example.shop' }

async function readApple(appId: string) {
  const opened = await read(appId)
  return opened && readApnsCredentials(opened)
}

describe('the credentials of an app', () => {
  test('are a pair for web push and nothing else, unless configured', async () => {
    const appId = await anApp({})
    expect(await read(appId)).toEqual({
      name: 'Shop',
      vapid: { publicKey: expect.any(String), privateKey: expect.any(String) },
      settings: {},
      secrets: {},
    })
    expect(await read(NOBODY)).toBeUndefined()
  })

  test('sign for web push what its public key verifies, also for an app that nobody has looked at', async () => {
    const { id, organizationKey } = await app.anotherTenant()
    const vapid = (await read(id))?.vapid
    const shown = await app.request(`/apps/${id}`, { headers: { authorization: `Key ${organizationKey}` } })
    expect(shown.body.chrome_web_key).toBe(vapid?.publicKey)
    const point = Buffer.from(vapid?.publicKey ?? '', 'base64url')
    const jwk = {
      kty: 'EC',
      crv: 'P-256',
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33).toString('base64url'),
    }
    const signature = sign(
      'sha256',
      Buffer.from('x'),
      createPrivateKey({ key: { ...jwk, d: vapid?.privateKey ?? '' }, format: 'jwk' }),
    )
    expect(verify('sha256', Buffer.from('x'), createPublicKey({ key: jwk, format: 'jwk' }), signature)).toBe(true)
  })

  test('hold the pair that was there first, whoever comes later with another', async () => {
    const { id } = await app.anotherTenant()
    const stale = await findApp(app.db, id)
    if (!stale) throw new Error('no app')
    const ctx = { db: app.db, secrets: secretBox(SECRET) }
    const first = await withVapidPair(ctx, stale)
    expect((await withVapidPair(ctx, stale)).vapidPublicKey).toBe(first.vapidPublicKey)
    expect((await read(id))?.vapid.publicKey).toBe(first.vapidPublicKey)
  })

  test('for Apple are a token key, or a certificate with the topic that it names', async () => {
    const { file, pem } = aP8()
    const appId = await anApp({ ...APPLE, apns_p8: file, apns_env: 'development' })
    expect(await readApple(appId)).toEqual({
      kind: 'token',
      environment: 'development',
      key: pem,
      keyId: 'ABCDE12345',
      teamId: 'TEAM123456',
      topic: 'com.example.shop',
    })
    await request(`/apps/${appId}`, 'PUT', { apns_p12: aP12('word', 'com.example.own'), apns_p12_password: 'word' })
    expect(await readApple(appId)).toEqual({
      kind: 'certificate',
      environment: 'development',
      key: rsaPem(),
      certificate: expect.stringMatching(/^-----BEGIN CERTIFICATE-----/),
      topic: 'com.example.own',
    })
  })

  test('for Google are the account and its key, and no address from the file', async () => {
    const appId = await anApp({
      fcm_v1_service_account_json: aServiceAccount({ token_uri: 'https://evil.example/token' }),
    })
    const credentials = await read(appId)
    expect(credentials?.secrets.fcm_v1_service_account_json).toEqual({
      projectId: 'test-project',
      clientEmail: 'push@test-project.iam.gserviceaccount.com',
      privateKey: rsaPem(),
    })
    expect(JSON.stringify(credentials)).not.toContain('evil')
  })

  test('open with the key they were sealed with, also when a newer one stands before it, and with no other', async () => {
    const appId = await anApp({ ...APPLE, apns_p8: aP8().file })
    const before = await read(appId)
    expect(await read(appId, `a newer secret key,${SECRET}`)).toEqual(before)
    await expect(read(appId, 'a newer secret key')).rejects.toThrow('sealed with a key that SECRET_KEY does not hold')
  })

  test('do not open in the row of another app, or under another name', async () => {
    const [own, other] = [await anApp({ ...APPLE, apns_p8: aP8().file }), await anApp({})]
    await app.db.query(sql`
      update apps set credentials = credentials || (select jsonb_build_object('apns_p8', o.credentials -> 'apns_p8') from apps o where o.id = ${own})
      where id = ${other}`)
    await expect(read(other)).rejects.toThrow()
    await app.db.query(sql`
      update apps set credentials = credentials || jsonb_build_object('apns_p12', credentials -> 'apns_p8') where id = ${own}`)
    await expect(read(own)).rejects.toThrow()
  })
})
