// The published client, unmodified: apps, API keys and the audit log.

import * as OneSignal from '@onesignal/node-onesignal'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../app.ts'
import { aP8, aP12 } from '../credentials.ts'
import { anId, NOBODY } from '../users.ts'

let app: TestApp
let client: OneSignal.DefaultApi
let appId: string
const clientFor = (organizationApiKey: string) =>
  new OneSignal.DefaultApi(
    OneSignal.createConfiguration({
      restApiKey: app.tenant.key,
      organizationApiKey,
      baseServer: new OneSignal.ServerConfiguration(app.url, {}),
    }),
  )
beforeAll(async () => {
  app = await testApp()
  appId = app.tenant.id
  client = clientFor(app.tenant.organizationKey)
})
afterAll(() => app.close())

async function expectFailure(call: Promise<unknown>, code: number, ...messages: string[]) {
  const error = await call.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(OneSignal.ApiException)
  expect({ code: error.code, errorMessages: error.errorMessages }).toEqual({ code, errorMessages: messages })
}

describe('apps', () => {
  test('createApp, getApp and getApps', async () => {
    const made = await client.createApp({ name: 'Made by the client' })
    expect(made).toMatchObject({ id: anId(), name: 'Made by the client', players: 0, messageable_players: 0 })
    const seen = await client.getApp(made.id as string)
    expect(seen).toEqual(made)
    const all = await client.getApps()
    expect(all.map(({ id }) => id)).toEqual([appId, made.id])
  })

  test('updateApp changes what is given, and what getApp answers can be sent back', async () => {
    const { id = '' } = await client.createApp({ name: 'Shop' })
    const apple = { apns_key_id: 'ABCDE12345', apns_team_id: 'TEAM123456', apns_bundle_id: 'com.example.shop' }
    const web = {
      site_name: 'Shop',
      chrome_web_origin: 'https://example.com',
      safari_site_origin: 'https://example.com',
    }
    const changed = await client.updateApp(id, {
      name: 'Store',
      apns_p8: aP8().file,
      apns_env: 'sandbox',
      ...apple,
      ...web,
      safari_apns_p12: aP12('word', 'web.com.example'),
      safari_apns_p12_password: 'word',
      additional_data_is_root_payload: true,
    })
    expect(changed).toMatchObject({
      ...apple,
      ...web,
      name: 'Store',
      apns_p8: '********',
      safari_apns_p12: '********',
      safari_push_id: 'web.com.example',
      additional_data_is_root_payload: true,
    })
    const seen = await client.getApp(id)
    expect(await client.updateApp(id, seen)).toEqual(seen)
  })

  test('errors come as ApiException with their messages', async () => {
    await expectFailure(client.updateApp(appId, { apns_p8: 'x' }), 400, 'apns_p8 must be the file in Base64')
    await expectFailure(client.getApp(NOBODY), 404, 'App not found')
    await expectFailure(
      client.updateApp(appId, { organization_id: NOBODY }),
      403,
      'The organization key does not belong to the organization of organization_id',
    )
    await expectFailure(clientFor(app.tenant.key).getApps(), 403, 'This operation needs an organization key')
    await expectFailure(
      clientFor('x'.repeat(40)).getApp(appId),
      401,
      OneSignal.OneSignalErrors.INVALID_API_KEY,
      'What this server takes for a key is explained at /docs/accounts-and-keys#section-keys-ids',
    )
  })
})

describe('API keys', () => {
  test('createApiKey, viewApiKeys, updateApiKey, rotateApiKey and deleteApiKey', async () => {
    const made = await client.createApiKey(appId, {
      name: 'CI',
      ip_allowlist_mode: 'explicit',
      ip_allowlist: ['127.0.0.0/8'],
    })
    const id = made.token_id as string
    const find = async () => (await client.viewApiKeys(appId)).tokens?.find(({ token_id }) => token_id === id)
    expect(made).toEqual({ token_id: anId(), formatted_token: expect.stringMatching(/^os_v2_app_/) })
    expect(await find()).toMatchObject({ name: 'CI', ip_allowlist_mode: 'explicit', ip_allowlist: ['127.0.0.0/8'] })

    await client.updateApiKey(appId, id, { name: 'Back end', ip_allowlist_mode: 'disabled' })
    expect(await find()).toMatchObject({ name: 'Back end', ip_allowlist_mode: 'disabled' })

    const rotated = await client.rotateApiKey(appId, id)
    expect(rotated.token_id).toBe(id)
    expect(rotated.formatted_token).not.toBe(made.formatted_token)

    await client.deleteApiKey(appId, id)
    expect(await find()).toBeUndefined()
    await expectFailure(client.deleteApiKey(appId, id), 404, 'Key not found')
    await expectFailure(client.createApiKey(appId, { name: '' }), 400, 'name must not be empty')
  })
})

describe('the audit log', () => {
  test('listAuditLogs, page by page', async () => {
    const { organizationId } = app.tenant
    const start = new Date(Date.now() - 3_600_000).toISOString()
    await client.updateApp(appId, { name: 'Renamed' })
    const first = await client.listAuditLogs(organizationId, start, undefined, undefined, 2)
    expect(first.audit_logs).toHaveLength(2)
    expect(first.has_more).toBe(true)
    const rest = await client.listAuditLogs(organizationId, undefined, undefined, first.next_cursor)
    expect(rest.has_more).toBe(false)
    const updates = await client.listAuditLogs(
      organizationId,
      start,
      undefined,
      undefined,
      undefined,
      [appId],
      ['app.update'],
    )
    expect(updates.audit_logs?.at(-1)).toMatchObject({
      id: anId(),
      action: 'app.update',
      app_id: appId,
      organization_id: organizationId,
      actor: { type: 'organization', id: anId() },
      targets: [{ type: 'app', id: appId }],
      context: { ip: '127.0.0.1' },
      metadata: { name: 'Renamed' },
    })
    await expectFailure(client.listAuditLogs(organizationId), 400, 'start_time is required without a cursor')
    await expectFailure(client.listAuditLogs(NOBODY, start), 404, 'Organization not found')
  })
})
