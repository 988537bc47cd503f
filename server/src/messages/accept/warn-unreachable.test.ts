import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { anEmailUser, anSmsUser, aPushUser, mailing, messagesOf, saying } from '../../../test/messages.ts'
import { aUser } from '../../../test/users.ts'
import { newAppSettings, smsSettings } from '../../sink/app-settings.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const ANDROID = expect.stringMatching(/^Android devices .*fcm_v1_service_account_json/)
const APPLE = expect.stringMatching(/^Apple devices .*apns_p8/)
const TEXTS = expect.stringMatching(/^Text messages .*sms_settings/)
const to = (...subscriptionIds: (string | undefined)[]) => ({ include_subscription_ids: subscriptionIds })
const iPhone = { type: 'iOSPush', token: '0'.repeat(64) }
const browser = {
  type: 'ChromePush',
  token: 'https://push.example/1',
  web_auth: 'x'.repeat(22),
  web_p256: 'y'.repeat(87),
}

describe('a message of an app without credentials', () => {
  test.each([
    ['to an Android device', async () => saying(to((await aPushUser(app)).subscriptionIds[0])), [ANDROID]],
    [
      'to a user by alias',
      async () =>
        saying({ target_channel: 'push', include_aliases: { external_id: [(await aPushUser(app)).externalId] } }),
      [ANDROID],
    ],
    [
      'to Apple devices alone',
      async () => saying({ included_segments: ['Total Subscriptions'], isIos: true }),
      [APPLE],
    ],
    [
      'by text',
      async () => saying({ name: 'x', ...to((await anSmsUser(app)).subscriptionIds[0]), target_channel: 'sms' }),
      [TEXTS],
    ],
    ['to everybody', async () => saying({ included_segments: ['Total Subscriptions'] }), [ANDROID]],
  ])('%s says that it reaches nobody, and is accepted', async (_, make, warnings) => {
    const { status, body } = await messagesOf(app).send(await make())
    expect([status, body.id !== '']).toEqual([200, true])
    expect(body.warnings).toEqual(warnings)
  })

  test('says nothing where somebody is reached, and nothing of mail', async () => {
    const both = await aUser(app, { subscriptions: [iPhone, browser] })
    const { send } = messagesOf(app)
    for (const fields of [
      saying(to(...both.subscriptionIds)),
      saying({ included_segments: ['Total Subscriptions'] }),
      mailing({ target_channel: 'email', ...to((await anEmailUser(app)).subscriptionIds[0]) }),
    ])
      expect((await send(fields)).body).not.toHaveProperty('warnings')
    expect((await send(saying(to(both.subscriptionIds[0])))).body.warnings).toEqual([APPLE])
  })
})

test('once the app has credentials nothing is said, at once', async () => {
  const headers = { authorization: `Key ${app.tenant.organizationKey}` }
  const set = (path: string, body: object) => app.app(path, { method: 'PUT', headers, body })
  const device = to((await aPushUser(app)).subscriptionIds[0])
  const { send } = messagesOf(app)
  expect((await send(saying(device))).body.warnings).toEqual([ANDROID])
  expect(await set('', newAppSettings())).toMatchObject({ status: 200 })
  expect((await send(saying(device))).body).not.toHaveProperty('warnings')
  expect(await set('/sms_settings', smsSettings)).toMatchObject({ status: 200 })
  const text = saying({ name: 'x', ...to((await anSmsUser(app)).subscriptionIds[0]), target_channel: 'sms' })
  expect((await send(text)).body).not.toHaveProperty('warnings')
})
