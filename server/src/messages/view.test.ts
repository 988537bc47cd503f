import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { anEmailUser, aPushUser, counted, mailing, messagesOf, NOT_FOUND, saying } from '../../test/messages.ts'
import { anEmail, NOBODY, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { goneReason } from './reasons.ts'
import { CreateMessageBody } from './schema.ts'

const NOW = '2030-01-01T09:00:00.500Z'
const NOW_SECONDS = Date.parse('2030-01-01T09:00:00Z') / 1000
let app: TestApp
let messages: ReturnType<typeof messagesOf>
beforeAll(async () => {
  app = await testApp({ clock: virtualClock(NOW) })
  messages = messagesOf(app)
})
afterAll(() => app.close())

const viewed = async (id: string) => (await messages.view(id)).body
const putInto = (id: string, state: string) =>
  app.db.query({
    text: `update messages set state = $2, expand_at = queued_at, completed_at = case when $2 = 'done' then queued_at end
      where id = $1`,
    values: [id, state],
  })

describe('view message', () => {
  test.each(['9:00AM', '21:45', '09:45:30', '9:45:30 pm'])(
    'delivery_time_of_day is %s as it was given',
    async (time) => {
      const id = await messages.sent(
        saying({ included_segments: ['Subscribed Users'], delayed_option: 'timezone', delivery_time_of_day: time }),
      )
      expect(await viewed(id)).toMatchObject({ delayed_option: 'timezone', delivery_time_of_day: time })
    },
  )

  test('delivery_time_of_day is null where the time of day of send_after is meant', async () => {
    const id = await messages.sent(saying({ included_segments: ['Subscribed Users'], delayed_option: 'timezone' }))
    expect(await viewed(id)).toMatchObject({ delayed_option: 'timezone', delivery_time_of_day: null })
  })

  test('answers the fields of the request, null where they were not set, and where it stands', async () => {
    const id = await messages.sent(
      saying({
        included_segments: ['Subscribed Users'],
        excluded_segments: ['Inactive Users'],
        name: 'Greeting',
        headings: { en: 'Hi' },
        data: { a: 1 },
        send_after: '2030-01-02T09:00:00Z',
        throttle_rate_per_minute: '60',
        custom_data: { b: 2 },
      }),
    )
    const body = await viewed(id)
    expect(body).toMatchObject({
      id,
      app_id: app.tenant.id,
      name: 'Greeting',
      contents: { en: 'Hello' },
      headings: { en: 'Hi' },
      subtitle: null,
      data: { a: 1 },
      custom_data: { b: 2 },
      included_segments: ['Subscribed Users'],
      excluded_segments: ['Inactive Users'],
      filters: null,
      include_aliases: null,
      target_channel: 'push',
      isIos: true,
      isEmail: false,
      email_subject: null,
      ttl: 259_200,
      priority: 10,
      throttle_rate_per_minute: 60,
      delayed_option: null,
      queued_at: NOW_SECONDS,
      send_after: NOW_SECONDS + 86_400,
      completed_at: null,
      canceled: false,
      successful: 0,
      failed: 0,
      errored: 0,
      converted: 0,
      received: 0,
      remaining: null,
      fcap_status: 'uncapped',
      platform_delivery_stats: {},
      delivery: { state: 'scheduled', states: {}, reasons: {} },
    })
    const ofTheRequest = ['idempotency_key', 'external_id', 'kind', 'isSms', 'channel_for_external_user_ids']
    const missing = Object.keys(CreateMessageBody.properties).filter((name) => !(name in body))
    expect(missing.sort()).toEqual(ofTheRequest.sort())
  })

  test('shows recipients as they were named', async () => {
    const user = await aPushUser(app)
    const { subscriptionIds, externalId } = user
    const address = anEmail()
    const cases: [object, object][] = [
      [saying({ include_subscription_ids: subscriptionIds }), { include_subscription_ids: subscriptionIds }],
      [
        saying({ include_player_ids: subscriptionIds }),
        { include_player_ids: subscriptionIds, include_subscription_ids: null },
      ],
      [
        saying({ include_aliases: { external_id: [externalId] }, target_channel: 'push' }),
        { include_aliases: { external_id: [externalId] } },
      ],
      [
        saying({ include_external_user_ids: [externalId] }),
        { include_external_user_ids: [externalId], include_aliases: null },
      ],
      [mailing({ email_to: [address] }), { email_to: [address], target_channel: 'email', isEmail: true, isIos: false }],
      [
        saying({ filters: [{ field: 'country', relation: '=', value: 'FR' }] }),
        { filters: [{ field: 'country', relation: '=', value: 'FR' }] },
      ],
    ]
    for (const [fields, shown] of cases) {
      const id = await messages.sent(fields as Record<string, unknown>)
      expect(await viewed(id)).toMatchObject(shown)
    }
  })

  test('shows the platforms it goes to, and the time of day', async () => {
    const id = await messages.sent(
      saying({
        included_segments: ['Subscribed Users'],
        isIos: true,
        isAnyWeb: true,
        delayed_option: 'timezone',
        delivery_time_of_day: '9:05PM',
      }),
    )
    expect(await viewed(id)).toMatchObject({
      isIos: true,
      isAnyWeb: true,
      isChromeWeb: true,
      isAndroid: false,
      isHuawei: false,
      delayed_option: 'timezone',
      delivery_time_of_day: '9:05PM',
    })
  })

  test('counts what became of each delivery, in all and by platform', async () => {
    const id = await messages.sent(saying({ included_segments: ['Subscribed Users'] }))
    await putInto(id, 'sending')
    await counted(app, id, [
      { state: 'sent', count: 10, part: 0 },
      { state: 'sent', count: 5, part: 1 },
      { state: 'sent', count: 7, platform: 'iOSPush' },
      { state: 'pending', count: 4 },
      { state: 'failed', reason: goneReason('UNREGISTERED'), count: 3 },
      { state: 'failed', reason: 'too large', count: 2 },
      { state: 'skipped', reason: 'unsubscribed', count: 6 },
      { state: 'skipped', reason: 'not_configured', count: 1, platform: 'HuaweiPush' },
      { state: 'skipped', reason: 'frequency_cap', count: 1 },
      { state: 'unknown', reason: 'timeout', count: 1 },
      { state: 'expired', reason: 'misconfigured', count: 8 },
      { state: 'clicked', count: 2 },
      { state: 'clicks', count: 5 },
      { state: 'received', count: 9, platform: 'iOSPush' },
      { state: 'canceled', count: 0 },
    ])
    expect(await viewed(id)).toMatchObject({
      successful: 22,
      failed: 9,
      errored: 12,
      skipped: 1,
      converted: 2,
      received: 9,
      remaining: 4,
      fcap_status: 'capped',
      platform_delivery_stats: {
        android: { successful: 15, failed: 9, errored: 11, converted: 2, received: 0, frequency_capped: 1 },
        ios: { successful: 7, failed: 0, errored: 0, converted: 0, received: 9, frequency_capped: 0 },
        huawei: { successful: 0, failed: 0, errored: 1, converted: 0, received: 0, frequency_capped: 0 },
      },
      delivery: {
        state: 'sending',
        states: { sent: 22, pending: 4, failed: 5, skipped: 8, unknown: 1, expired: 8 },
        reasons: {
          failed: { [goneReason('UNREGISTERED')]: 3, 'too large': 2 },
          skipped: { unsubscribed: 6, not_configured: 1, frequency_cap: 1 },
          unknown: { timeout: 1 },
          expired: { misconfigured: 8 },
        },
      },
    })
  })

  test('the two kinds of Safari are one platform; email and SMS count more', async () => {
    const { externalId } = await anEmailUser(app)
    const id = await messages.sent(mailing({ include_aliases: { external_id: [externalId] }, target_channel: 'email' }))
    await counted(app, id, [
      { state: 'sent', count: 1, platform: 'SafariPush' },
      { state: 'sent', count: 2, platform: 'SafariLegacyPush' },
      { state: 'sent', count: 4, platform: 'Email' },
      { state: 'clicked', count: 2, platform: 'Email' },
      { state: 'clicks', count: 3, platform: 'Email' },
      { state: 'opened', count: 1, platform: 'Email' },
      { state: 'opens', count: 6, platform: 'Email' },
      { state: 'sent', count: 1, platform: 'SMS' },
      { state: 'provider_successful', count: 3, platform: 'SMS' },
      { state: 'provider_failed', count: 2, platform: 'SMS' },
      { state: 'provider_errored', count: 1, platform: 'SMS' },
    ])
    const { platform_delivery_stats: stats, delivery } = await viewed(id)
    expect(stats.safari_web_push.successful).toBe(3)
    expect(stats.email).toMatchObject({
      successful: 4,
      opened: 6,
      unique_opens: 1,
      clicks: 3,
      unique_clicks: 2,
      bounced: 0,
      reported_spam: 0,
      unsubscribed: 0,
    })
    expect(stats.sms).toMatchObject({ provider_successful: 3, provider_failed: 2, provider_errored: 1 })
    expect(delivery.states).toEqual({ sent: 8 })
  })

  test('a message that is done says since when, and that nothing remains', async () => {
    const id = await messages.sent(saying({ included_segments: ['Subscribed Users'] }))
    await putInto(id, 'done')
    await counted(app, id, [{ state: 'sent', count: 1 }])
    expect(await viewed(id)).toMatchObject({ completed_at: NOW_SECONDS, remaining: 0, successful: 1 })
  })

  test.each([NOBODY, 'nonsense'])('answers 404 for the id %j', async (id) => {
    expect(told(await messages.view(id))).toEqual(NOT_FOUND)
  })

  test('answers 404 for a message of another app', async () => {
    const id = await messages.sent(saying({ included_segments: ['Subscribed Users'] }))
    const stranger = await app.anotherTenant()
    const headers = { authorization: `Key ${stranger.key}` }
    expect(told(await app.request(`/notifications/${id}?app_id=${stranger.id}`, { headers }))).toEqual(NOT_FOUND)
  })

  test('needs an app_id', async () => {
    const answer = await app.request(`/notifications/${NOBODY}`)
    expect(told(answer)).toEqual({ status: 400, body: { errors: ['app_id is required'] } })
  })
})
