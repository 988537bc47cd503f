// The published client, unmodified, against the message operations.

import { randomUUID } from 'node:crypto'
import * as OneSignal from '@onesignal/node-onesignal'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../app.ts'
import { aSentEmail, notificationTypesOf } from '../email-back.ts'
import { aPushUser } from '../messages.ts'
import { anEmail, anId, NOBODY } from '../users.ts'

let app: TestApp
let appId: string
let client: OneSignal.DefaultApi
beforeAll(async () => {
  app = await testApp()
  appId = app.tenant.id
  client = new OneSignal.DefaultApi(
    OneSignal.createConfiguration({
      restApiKey: app.tenant.key,
      baseServer: new OneSignal.ServerConfiguration(app.url, {}),
    }),
  )
})
afterAll(() => app.close())

function notification(more: Partial<OneSignal.Notification>): OneSignal.Notification {
  return Object.assign(new OneSignal.Notification(), { app_id: appId, contents: { en: 'Hello' }, ...more })
}
const everybody = { included_segments: ['Subscribed Users'] }

async function expectFailure(call: Promise<unknown>, code: number, ...messages: string[]) {
  const error = await call.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(OneSignal.ApiException)
  expect({ code: error.code, errorMessages: error.errorMessages }).toEqual({ code, errorMessages: messages })
}

describe('createNotification', () => {
  test('sends to a subscription, to users by alias, and to segments', async () => {
    const user = await aPushUser(app)
    for (const more of [
      { include_subscription_ids: user.subscriptionIds },
      { include_aliases: { external_id: [user.externalId] }, target_channel: 'push' as const },
      { included_segments: ['Active Users'], excluded_segments: ['Inactive Users'] },
      { filters: [{ field: 'tag', key: 'plan', relation: '=', value: 'gold' }] as OneSignal.FilterExpression[] },
    ]) {
      const created = await client.createNotification(notification(more))
      expect(created).toMatchObject({ id: anId() })
      expect(OneSignal.isMessageSent(created)).toBe(true)
    }
  })

  test('sends an email, and a push with much to it', async () => {
    const email = notification({ email_to: [anEmail()], email_subject: 'Hello', email_body: '<p>Hello</p>' })
    expect(await client.createNotification(email)).toMatchObject({ id: anId() })
    const push = notification({
      ...everybody,
      headings: { en: 'Hi' },
      data: { a: 1 },
      buttons: [{ id: 'a', text: 'A' }],
      is_ios: true,
      ios_badge_type: 'Increase',
      ios_badge_count: 1,
      throttle_rate_per_minute: '60',
      ttl: 60,
      priority: 10,
      send_after: 'Thu Sep 24 2099 14:00:00 GMT-0700 (PDT)',
      custom_data: { b: 2 },
    })
    expect(await client.createNotification(push)).toMatchObject({ id: anId() })
  })

  test('warms up a domain', async () => {
    const stage = { start: '2099-01-01T09:00:00.000Z', end: '2099-01-01T17:00:00.000Z', quota: 100 }
    const warmUp = notification({
      ...everybody,
      target_channel: 'email',
      email_subject: 'Hello',
      email_body: '<p>Hello</p>',
      kind: 'warmup',
      email_warm_up: { strategy: 'custom', stages: [stage] },
    })
    const { id } = await client.createNotification(warmUp)
    expect((await client.getNotification(appId, id as string)).email_warm_up).toEqual({
      strategy: 'custom',
      stages: [{ ...stage, acked: false }],
      status: 'initializing',
      is_live: false,
    })
  })

  test('tells that nobody is subscribed', async () => {
    const created = await client.createNotification(notification({ include_subscription_ids: [NOBODY] }))
    expect(created).toMatchObject({ id: '', errors: [OneSignal.OneSignalErrors.NO_SUBSCRIBERS] })
    expect(OneSignal.isMessageSent(created)).toBe(false)
  })

  test('reports who is not subscribed', async () => {
    const [there, gone] = [await aPushUser(app), await aPushUser(app, { enabled: false })]
    const include_subscription_ids = [...there.subscriptionIds, ...gone.subscriptionIds]
    const created = await client.createNotification(notification({ include_subscription_ids }))
    expect(created).toMatchObject({ id: anId(), errors: { invalid_player_ids: gone.subscriptionIds } })
  })

  test('fails in the words of its catalogue', async () => {
    await expectFailure(
      client.createNotification(notification({})),
      400,
      OneSignal.OneSignalErrors.NO_TARGETING_SPECIFIED,
    )
    await expectFailure(
      client.createNotification(notification({ ...everybody, contents: { fr: 'Bonjour' } })),
      400,
      'Message Notifications must have English language content',
    )
  })

  test('createNotificationWithRetry gets the first answer again', async () => {
    const idempotency_key = randomUUID()
    const send = () => client.createNotificationWithRetry(notification({ ...everybody, idempotency_key }))
    const first = await send()
    expect(first).toMatchObject({ response: { id: anId(), external_id: idempotency_key }, wasReplayed: false })
    expect(await send()).toEqual({ response: first.response, wasReplayed: true })
    // Without a key it makes its own.
    const other = await client.createNotificationWithRetry(notification(everybody))
    expect(other).toMatchObject({ response: { external_id: anId() }, wasReplayed: false })
  })
})

describe('the others', () => {
  test('getNotification reads what was asked and where it stands', async () => {
    const { id } = await client.createNotification(notification({ ...everybody, name: 'Greeting', data: { a: 1 } }))
    const seen = await client.getNotification(appId, id as string)
    expect(seen).toMatchObject({
      id,
      name: 'Greeting',
      contents: { en: 'Hello' },
      data: { a: 1 },
      included_segments: ['Subscribed Users'],
      is_ios: true,
      successful: 0,
      failed: 0,
      remaining: null,
      completed_at: null,
      canceled: false,
      queued_at: expect.any(Number),
      send_after: expect.any(Number),
    })
    await expectFailure(client.getNotification(appId, NOBODY), 404, OneSignal.OneSignalErrors.NOTIFICATION_NOT_FOUND)
  })

  test('getNotifications pages through them', async () => {
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.push((await client.createNotification(notification(everybody))).id as string)
    const page = await client.getNotifications(appId, 2, 1, 1)
    expect(page).toMatchObject({ offset: 1, limit: 2, total_count: expect.any(Number) })
    expect(page.notifications).toHaveLength(2)
    const from = await client.getNotifications(appId, 50, undefined, undefined, '2020-01-01T00:00:00Z')
    const seen = from.notifications?.map(({ id }) => id)
    for (const id of ids) expect(seen).toContain(id)
    const next = await client.getNotifications(appId, 50, undefined, undefined, from.next_time_offset)
    // Only what was scheduled for later stands behind, and here nothing does.
    expect(next.notifications).toEqual([])
    expect(next.next_time_offset).toBe(from.next_time_offset)
  })

  test('cancelNotification stops one, once and for all', async () => {
    const { id } = await client.createNotification(notification({ ...everybody, send_after: '2099-01-01T00:00:00Z' }))
    expect(await client.cancelNotification(appId, id as string)).toEqual({ success: true })
    expect((await client.getNotification(appId, id as string)).canceled).toBe(true)
    await expectFailure(client.cancelNotification(appId, NOBODY), 404, OneSignal.OneSignalErrors.NOTIFICATION_NOT_FOUND)
  })

  test('unsubscribeEmailWithToken unsubscribes who got an email, with the token that stood in it', async () => {
    const email = await aSentEmail(app, { at: new Date() })
    const another = await aSentEmail(app, { at: new Date() })
    const { id } = email.message
    expect(await client.unsubscribeEmailWithToken(appId, id, email.references.unsubscribe)).toEqual({ success: true })
    expect(await client.unsubscribeEmailWithToken(appId, id, email.references.unsubscribe)).toEqual({ success: true })
    expect(await notificationTypesOf(app, email)).toBe(-2)
    const refused = 'token is not one of this message'
    await expectFailure(client.unsubscribeEmailWithToken(appId, id, another.references.unsubscribe), 400, refused)
    await expectFailure(client.unsubscribeEmailWithToken(appId, NOBODY, another.references.unsubscribe), 400, refused)
    await expectFailure(client.unsubscribeEmailWithToken(appId, id, 'nonsense'), 400, refused)
    expect(await notificationTypesOf(app, another)).toBeNull()
  })

  test('estimateNotificationRecipients counts before anything is sent', async () => {
    const user = await aPushUser(app)
    const estimate = await client.estimateNotificationRecipients({
      app_id: appId,
      include_aliases: { external_id: [user.externalId] },
      target_channel: 'push',
    })
    expect(estimate).toMatchObject({ count: 1, uncapped_count: 1, cap_applied: false })
  })
})
