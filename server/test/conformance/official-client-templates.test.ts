// The published client, unmodified, against the template operations.

import * as OneSignal from '@onesignal/node-onesignal'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SYSTEM } from '../../src/apps/app.ts'
import { createApp } from '../../src/apps/create.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../app.ts'
import { aName, anId, NOBODY } from '../users.ts'

let app: TestApp
let appId: string
let client: OneSignal.DefaultApi
beforeAll(async () => {
  app = await testApp()
  appId = app.tenant.id
  client = new OneSignal.DefaultApi(
    OneSignal.createConfiguration({
      restApiKey: app.tenant.key,
      organizationApiKey: app.tenant.organizationKey,
      baseServer: new OneSignal.ServerConfiguration(app.url, {}),
    }),
  )
})
afterAll(() => app.close())

const make = (more: Partial<OneSignal.CreateTemplateRequest> = {}) =>
  client.createTemplate({ app_id: appId, name: aName(), contents: { en: 'Hello {{ first_name }}' }, ...more })

async function expectFailure(call: Promise<unknown>, code: number, message: string) {
  const error = await call.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(OneSignal.ApiException)
  expect({ code: error.code, errorMessages: error.errorMessages }).toEqual({ code, errorMessages: [message] })
}

test('createTemplate makes a push, an email and a text message', async () => {
  const push = await make({ headings: { en: 'Hi', de: 'Hallo' }, subtitle: { en: 'There' } })
  expect(push).toMatchObject({
    id: anId(),
    channel: 'push',
    content: { headings: { en: 'Hi', de: 'Hallo' }, isIos: true, isEmail: false },
  })
  const email = await make({
    is_email: true,
    email_subject: 'Hi',
    email_body: '<p>Hi</p>',
    email_bcc: ['a@example.com'],
    dynamic_content: '{"a": {"b": "c"}}',
  })
  expect(email).toMatchObject({ channel: 'email', content: { isEmail: true, email_bcc: ['a@example.com'] } })
  expect(await make({ is_sms: true })).toMatchObject({ channel: 'sms', content: { isSMS: true } })
})

test('createTemplate tells what is wrong', async () => {
  await expectFailure(
    make({ contents: { en: '{{ x' } }),
    400,
    'contents.en: line 1, column 1: output "{{ x" not closed',
  )
  await expectFailure(make({ is_email: true, email_subject: 'x' }), 400, 'email_body is required for an email')
})

test('viewTemplates reads the list, in pages and by channel', async () => {
  const made = await make({ is_sms: true })
  const list = await client.viewTemplates(appId, 50, 0, 'sms')
  expect(list.templates?.map(({ id }) => id)).toContain(made.id)
  expect(list.templates?.at(-1)).toMatchObject({ id: made.id, name: made.name, created_at: made.created_at })
  const second = await client.viewTemplates(appId, 1, 1)
  expect(second.templates).toHaveLength(1)
  expect((await client.viewTemplates(appId)).templates?.[1]?.id).toBe(second.templates?.[0]?.id)
})

test('viewTemplate, updateTemplate and deleteTemplate', async () => {
  const { id = '', name } = await make()
  expect(await client.viewTemplate(id, appId)).toMatchObject({ id, name, channel: 'push' })
  const updated = await client.updateTemplate(id, appId, { name: 'Renamed', contents: { en: 'Bye' } })
  expect(updated).toMatchObject({ id, name: 'Renamed', content: { contents: { en: 'Bye' } } })
  expect(await client.deleteTemplate(id, appId)).toMatchObject({ success: true })
  await expectFailure(client.deleteTemplate(id, appId), 404, 'template not found')
  await expectFailure(client.viewTemplate(NOBODY, appId), 404, 'template not found')
})

test('copyTemplateToApp copies into another app of the organization', async () => {
  const target = await createApp(
    { db: app.db, clock: systemClock() },
    app.tenant.organizationId,
    { name: 'Another' },
    SYSTEM,
  )
  const { id = '', name } = await make()
  const copy = await client.copyTemplateToApp(id, appId, { target_app_id: target })
  expect(copy).toMatchObject({ name, channel: 'push' })
  expect(copy.id).not.toBe(id)
  await expectFailure(client.copyTemplateToApp(id, appId, { target_app_id: NOBODY }), 404, 'App not found')
})
