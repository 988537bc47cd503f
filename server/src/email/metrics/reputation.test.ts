import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aDomain, load } from '../../../test/email-events.ts'
import { told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { readRates } from './read-rates.ts'

let app: TestApp
const clock = virtualClock('2030-06-15T12:34:56.789Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const NONE = { bounce_rate: 0, complaint_rate: 0 }
const hoursAgo = (hours: number, ms = 0) => new Date(clock.now().getTime() - hours * 3_600_000 + ms).toISOString()
const events = (event: string, at: string, times: number, domain: string) =>
  Array.from({ length: times }, () => ({ domain, event, recipient: 'ann@gmail.com', at }))

test('without mail all rates are 0', async () => {
  expect(told(await app.app('/email_analytics/delivery_metrics'))).toEqual({
    status: 200,
    body: { last_24_hours: NONE, last_7_days: NONE, last_30_days: NONE },
  })
})

test('bounces among the sent and complaints among the delivered, over all domains of the app, exact at the edges', async () => {
  const tenant = await app.anotherTenant()
  const [one, two] = [aDomain(), aDomain()]
  const own = [
    ...events('sent', hoursAgo(0), 3, one),
    ...events('bounced', hoursAgo(24), 1, two),
    ...events('sent', hoursAgo(24), 1, two),
    ...events('delivered', hoursAgo(1), 4, one),
    ...events('complained', hoursAgo(1), 1, two),
    // A millisecond too old for a day.
    ...events('sent', hoursAgo(24, -1), 4, one),
    ...events('bounced', hoursAgo(24 * 7), 3, one),
    ...events('delivered', hoursAgo(24 * 7, -1), 6, two),
    ...events('complained', hoursAgo(24 * 30), 1, one),
    ...events('bounced', hoursAgo(24 * 30, -1), 100, one),
  ]
  await load(
    app,
    clock,
    own.map((line) => ({ ...line, app_id: tenant.id })),
  )
  await load(app, clock, events('bounced', hoursAgo(1), 50, one))
  const answer = await app.request(`/apps/${tenant.id}/email_analytics/delivery_metrics`, {
    headers: { authorization: `Key ${tenant.key}` },
  })
  expect(told(answer)).toEqual({
    status: 200,
    body: {
      last_24_hours: { bounce_rate: 1 / 4, complaint_rate: 1 / 4 },
      last_7_days: { bounce_rate: 4 / 8, complaint_rate: 1 / 4 },
      last_30_days: { bounce_rate: 4 / 8, complaint_rate: 2 / 10 },
    },
  })
  expect((await readRates(app.db, tenant.id, clock.now())).last_24_hours).toEqual({
    sent: 4,
    delivered: 4,
    bounced: 1,
    complained: 1,
    bounce_rate: 0.25,
    complaint_rate: 0.25,
  })
})

test('errors: 400 for a malformed app id, 404 for one that the key cannot reach', async () => {
  const at = (id: string) => app.request(`/apps/${id}/email_analytics/delivery_metrics`)
  expect(told(await at('x'))).toEqual({ status: 400, body: { errors: ['app_id must be a UUID'] } })
  for (const id of [newId(), (await app.anotherTenant()).id])
    expect(told(await at(id))).toEqual({ status: 404, body: { errors: ['App not found'] } })
})
