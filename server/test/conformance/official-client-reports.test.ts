// The published client, unmodified: history, exports, outcomes, live activities, reputation of email.

import * as OneSignal from '@onesignal/node-onesignal'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { virtualClock } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../app.ts'
import { load } from '../email-events.ts'
import { runJobs } from '../events.ts'
import { aStoredMessage, deliver, fetchFile, linesOf } from '../stored-messages.ts'
import { aName, anId, aUser, NOBODY } from '../users.ts'

let app: TestApp
let appId: string
let client: OneSignal.DefaultApi
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
  appId = app.tenant.id
  client = new OneSignal.DefaultApi(
    OneSignal.createConfiguration({
      restApiKey: app.tenant.key,
      baseServer: new OneSignal.ServerConfiguration(app.url, {}),
    }),
  )
})
afterAll(() => app.close())

async function expectFailure(call: Promise<unknown>, code: number, ...errorMessages: string[]) {
  const error = await call.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(OneSignal.ApiException)
  expect({ code: error.code, errorMessages: error.errorMessages }).toEqual({ code, errorMessages })
}

const BUSY = 'An export of this kind is being made already. Ask again when it is ready.'
const { NOTIFICATION_NOT_FOUND } = OneSignal.OneSignalErrors

test('getNotificationHistory leads to the file', async () => {
  const message = await aStoredMessage(app, { at: clock.now() })
  const user = await aUser(app, { subscriptions: [{ type: 'AndroidPush', token: aName() }] })
  const [subscriptionId] = user.subscriptionIds as [string]
  await deliver(app, message, [{ subscriptionId, userId: user.id }])
  const body = { events: 'sent' as const, email: 'me@example.com', app_id: appId }
  const answer = await client.getNotificationHistory(message.id, body)
  expect(answer.success).toBe(true)
  await expectFailure(client.getNotificationHistory(message.id, body), 400, BUSY)
  await runJobs(app, clock)
  const { text } = await fetchFile(answer.destination_url as string)
  expect(linesOf(text)[1]?.slice(0, 3)).toEqual([subscriptionId, user.id, user.externalId])
  await expectFailure(client.getNotificationHistory(NOBODY, body), 404, NOTIFICATION_NOT_FOUND)
})

test('exportEvents leads to the file', async () => {
  const message = await aStoredMessage(app, { at: clock.now() })
  await deliver(app, message, [{ subscriptionId: NOBODY, state: 'failed', reason: 'UNREGISTERED' }])
  const { csv_file_url } = await client.exportEvents(message.id, appId)
  expect((await fetchFile(csv_file_url as string)).status).toBe(403)
  await runJobs(app, clock)
  expect((await fetchFile(csv_file_url as string)).text).toContain('failed,UNREGISTERED')
  await expectFailure(client.exportEvents(NOBODY, appId), 404, NOTIFICATION_NOT_FOUND)
})

test('exportSubscriptions leads to the file, with a body and without', async () => {
  const user = await aUser(app, { subscriptions: [{ type: 'AndroidPush', token: aName() }] })
  const { csv_file_url } = await client.exportSubscriptions(appId, { extra_fields: ['external_user_id'] })
  await expectFailure(client.exportSubscriptions(appId), 400, BUSY)
  await runJobs(app, clock)
  expect((await fetchFile(csv_file_url as string)).text).toContain(`,${user.externalId}\r\n`)
  const again = await client.exportSubscriptions(appId)
  expect(again.csv_file_url).not.toBe(csv_file_url)
  await runJobs(app, clock)
})

test('getOutcomes answers what SDKs told', async () => {
  const id = aName('bought')
  await app.request('/outcomes/measure', { body: { app_id: appId, id, weight: 2.5, device_type: 1 } })
  await app.request('/outcomes/measure', { body: { app_id: appId, id, weight: 4, direct: true, device_type: 0 } })
  expect(await client.getOutcomes(appId, `${id}.count,${id}.sum`)).toEqual({
    outcomes: [
      { id, value: 2, aggregation: 'count' },
      { id, value: 6.5, aggregation: 'sum' },
    ],
  })
  const narrow = await client.getOutcomes(appId, `${id}.sum`, `${id}.count`, '1mo', '0', 'direct')
  expect(narrow.outcomes).toEqual([
    { id, value: 4, aggregation: 'sum' },
    { id, value: 1, aggregation: 'count' },
  ])
  await expectFailure(
    client.getOutcomes(appId, id),
    400,
    `outcome_names: "${id}" must be the name of an outcome, followed by .count or .sum`,
  )
})

test('startLiveActivity and updateLiveActivity', async () => {
  const user = await aUser(app, { subscriptions: [{ type: 'iOSPush', token: aName() }] })
  const activityId = aName('order/a b')
  const started = await client.startLiveActivity(appId, 'Order', {
    name: 'An order',
    event: 'start',
    activity_id: activityId,
    event_attributes: { order: 7 },
    event_updates: { status: 'baking' },
    contents: { en: 'On its way' },
    headings: { en: 'Order 7' },
    include_subscription_ids: user.subscriptionIds,
  })
  expect(started).toEqual({ notification_id: anId() })
  const change = { name: 'Baked', event: 'update' as const, event_updates: { status: 'baked' } }
  await expectFailure(client.updateLiveActivity(appId, activityId, change), 400, 'No device shows this live activity')
  await app.app(`/live_activities/${encodeURIComponent(activityId)}/token`, {
    body: { subscription_id: user.subscriptionIds[0], push_token: 'a token' },
  })
  expect(await client.updateLiveActivity(appId, activityId, change)).toEqual({ id: anId() })
  expect(await client.updateLiveActivity(appId, activityId, { ...change, event: 'end' })).toEqual({ id: anId() })
})

test('getEmailReputation answers the rates of three windows', async () => {
  const none = { bounce_rate: 0, complaint_rate: 0 }
  expect(await client.getEmailReputation(appId)).toEqual({ last_24_hours: none, last_7_days: none, last_30_days: none })
  const line = {
    domain: 'example.com',
    recipient: 'ann@example.com',
    at: new Date(clock.now().getTime() - 1).toISOString(),
  }
  await load(app, clock, [
    ...['sent', 'sent', 'sent', 'delivered', 'bounced'].map((event) => ({ ...line, event })),
    { ...line, event: 'delivered', at: '2029-12-20T00:00:00Z' },
    { ...line, event: 'complained' },
  ])
  expect(await client.getEmailReputation(appId)).toEqual({
    last_24_hours: { bounce_rate: 1 / 3, complaint_rate: 1 },
    last_7_days: { bounce_rate: 1 / 3, complaint_rate: 1 },
    last_30_days: { bounce_rate: 1 / 3, complaint_rate: 0.5 },
  })
  await expectFailure(client.getEmailReputation(NOBODY), 404, 'App not found')
  await expectFailure(client.getEmailReputation('no id'), 400, 'app_id must be a UUID')
})
