import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aPushUser, mailing, messagesOf, saying } from '../../../test/messages.ts'
import { anEmail, told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { reserveMessages } from '../../sending/reserve.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let app: TestApp
let messages: ReturnType<typeof messagesOf>
beforeAll(async () => {
  app = await testApp({ clock })
  messages = messagesOf(app)
})
afterAll(() => app.close())

const REFUSED = {
  status: 403,
  body: {
    errors: [
      'This app is disabled: it has delivered more messages within 15 minutes than its application message limit. Re-enable it, or wait.',
    ],
  },
}

test('an app that crossed its limit takes no message; retries, views and cancels go on', async () => {
  const { subscriptionIds } = await aPushUser(app)
  const targets = { include_subscription_ids: subscriptionIds }
  const keyed = saying({ ...targets, idempotency_key: randomUUID() })
  const broadcast = saying({ included_segments: ['Subscribed Users'], idempotency_key: randomUUID() })
  const first = await messages.send(keyed)
  const second = await messages.send(broadcast)

  // One subscription allows ten in 15 minutes.
  await app.db.transaction((db) => reserveMessages(db, app.tenant.id, 11, clock.now()))
  const before = await messages.count()
  for (const fields of [
    saying(targets),
    saying({ ...targets, idempotency_key: randomUUID() }),
    saying({ included_segments: ['Subscribed Users'] }),
    mailing({ email_to: [anEmail()] }),
  ])
    expect(told(await messages.send(fields))).toEqual(REFUSED)
  expect(await messages.count()).toBe(before)
  const players = await app.request(`/players?app_id=${app.tenant.id}`)
  expect(players.body.total_count).toBe(1)

  expect(told(await messages.send(keyed))).toEqual(told(first))
  expect(told(await messages.send(broadcast))).toEqual(told(second))
  expect((await messages.view(first.body.id)).status).toBe(200)
  expect((await messages.cancel(first.body.id)).status).toBe(200)

  // It ends by itself when the window has room again.
  clock.advance({ minutes: 16 })
  expect((await messages.send(saying(targets))).status).toBe(200)
})

test('an app that was paused takes messages; they wait', async () => {
  const { subscriptionIds } = await aPushUser(app)
  expect((await app.app('/sending/pause', { method: 'POST' })).status).toBe(200)
  expect((await messages.send(saying({ include_subscription_ids: subscriptionIds }))).status).toBe(200)
})
