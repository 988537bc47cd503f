import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { systemClock } from '../lib/clock.ts'
import { secretBox } from '../lib/secrets.ts'
import { marks, newAppSettings, smsSettings } from '../sink/app-settings.ts'
import { openPushSettings } from './credentials/credentials.ts'
import { fillWithStandIns, findStandIns } from './stand-ins.ts'

const SECRET = 'a key for this test alone'
let app: TestApp
beforeAll(async () => {
  app = await testApp({ secretKey: SECRET })
})
afterAll(() => app.close())

test('apps get what they lack, keep what is theirs, and are known again', async () => {
  const secrets = secretBox(SECRET)
  const ctx = { db: app.db, clock: systemClock(), secrets }
  const standIns = { push: newAppSettings(), sms: smsSettings, marks }
  const headers = { authorization: `Key ${app.tenant.organizationKey}` }
  const { apns_key_id, apns_team_id, apns_p8 } = newAppSettings()
  const own = await app.request('/apps', {
    headers,
    body: { name: 'Own', apns_p8, apns_team_id, apns_key_id: 'OWNKEY0001', apns_bundle_id: 'com.example.own' },
  })
  expect(own.status).toBe(200)
  expect(apns_key_id).toBe(marks.apnsKeyId)
  expect(await findStandIns(ctx, marks)).toEqual([])

  expect(await fillWithStandIns(ctx, standIns)).toBe(2)
  expect(await fillWithStandIns(ctx, standIns)).toBe(0)
  const credentials = async (id: string) => openPushSettings({ db: app.db, secrets }, id)
  expect(await credentials(app.tenant.id)).toMatchObject({
    settings: { apns_bundle_id: 'com.example.sink' },
    secrets: { fcm_v1_service_account_json: { projectId: 'sink' }, apns_p8: {} },
  })
  expect(await credentials(own.body.id)).toMatchObject({
    settings: { apns_key_id: 'OWNKEY0001', apns_bundle_id: 'com.example.own' },
    secrets: { fcm_v1_service_account_json: { projectId: 'sink' }, apns_p8: {} },
  })
  const found = await findStandIns(ctx, marks)
  expect(Object.fromEntries(found.map(({ appId, providers }) => [appId, providers]))).toEqual({
    [app.tenant.id]: ['APNs', 'FCM', 'Huawei', 'ADM', 'WNS', 'SMS'],
    [own.body.id]: ['FCM', 'Huawei', 'ADM', 'WNS', 'SMS'],
  })
})
