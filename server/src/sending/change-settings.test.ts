import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aCountedApp, type CountedApp } from '../../test/sending.ts'
import { told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { sql } from '../storage/sql.ts'
import { readSending } from './read.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let app: CountedApp
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(() => server.close())
beforeEach(async () => {
  app = await aCountedApp(server, clock, 0)
})

const put = (body: unknown, as: 'ask' | 'asOrganization' = 'ask') =>
  app[as]('/delivery_settings', { method: 'PUT', body })
const get = async () => (await app.ask('/delivery_settings')).body

const ALL_DAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const DEFAULTS = {
  quiet_hours: null,
  frequency_caps: [],
  throttle_per_minute: null,
  retention_days: null,
  limit_factor: 10,
}
const CAP = { channel: 'push', count: 3, window: 1, unit: 'days' }

describe('delivery settings', () => {
  test('are the defaults until somebody sets them', async () => {
    expect(told(await app.ask('/delivery_settings'))).toEqual({ status: 200, body: DEFAULTS })
    expect(told(await put({}))).toEqual({ status: 200, body: DEFAULTS })
  })

  test('that are given replace what is there, null takes the default again, the others stay', async () => {
    const quiet_hours = {
      start: '22:00',
      end: '08:00',
      days: ['friday', 'saturday'],
      channels: ['push'],
      fallback_time_zone: 'Europe/Berlin',
    }
    const first = { ...DEFAULTS, quiet_hours, throttle_per_minute: 600 }
    expect(told(await put({ quiet_hours, throttle_per_minute: 600, unknown: true }))).toEqual({
      status: 200,
      body: first,
    })
    const caps = [CAP, { channel: 'email', count: 1, window: 90, unit: 'minutes' }]
    const second = { ...first, frequency_caps: caps, retention_days: 30, throttle_per_minute: null }
    expect((await put({ frequency_caps: caps, retention_days: 30, throttle_per_minute: null })).body).toEqual(second)
    expect(await get()).toEqual(second)
    expect((await put({ quiet_hours: null, frequency_caps: null })).body).toEqual({ ...DEFAULTS, retention_days: 30 })
  })

  test('of quiet hours are for every day and channel, and by UTC, unless told', async () => {
    expect((await put({ quiet_hours: { start: '22:00', end: '08:00' } })).body.quiet_hours).toEqual({
      start: '22:00',
      end: '08:00',
      days: ALL_DAYS,
      channels: ['push', 'email', 'sms'],
      fallback_time_zone: 'UTC',
    })
  })

  test('reach those who send', async () => {
    await put({ quiet_hours: { start: '22:00', end: '08:00', channels: ['sms'] }, frequency_caps: [CAP] })
    const { settings } = await readSending(server.db, app.id, clock.now())
    expect(settings).toEqual({
      quietHours: { start: '22:00', end: '08:00', days: ALL_DAYS, channels: ['sms'], fallbackTimeZone: 'UTC' },
      frequencyCaps: [CAP],
      throttlePerMinute: null,
      retentionDays: null,
      limitFactor: 10,
    })
  })

  test('that are changed at the same time are all there', async () => {
    await Promise.all([put({ throttle_per_minute: 5 }), put({ retention_days: 7 }), put({ frequency_caps: [CAP] })])
    expect(await get()).toMatchObject({ throttle_per_minute: 5, retention_days: 7, frequency_caps: [CAP] })
  })

  test('leave a line in the audit log that says which', async () => {
    await put({ throttle_per_minute: 5, retention_days: null, unknown: 1 })
    const found = await server.db.query(
      sql`select action, actor_kind, detail from audit_log where app_id = ${app.id} and action like 'delivery_settings.%'`,
    )
    const detail = { fields: ['throttle_per_minute', 'retention_days'] }
    expect(found).toEqual([{ action: 'delivery_settings.update', actorKind: 'key', detail }])
  })
})

describe('the factor of the application limit', () => {
  test('is changed by an organization key alone', async () => {
    expect(told(await put({ limit_factor: 20, retention_days: 7 }))).toEqual({
      status: 403,
      body: { errors: ['limit_factor is changed by an organization key alone'] },
    })
    expect(await get()).toEqual(DEFAULTS)
    expect((await put({ limit_factor: 20 }, 'asOrganization')).body).toMatchObject({ limit_factor: 20 })
    // What was answered can be sent back.
    expect((await put(await get())).status).toBe(200)
  })

  test('counts at once, and wakes whoever sends', async () => {
    await app.subscribe(2)
    await app.take(21)
    expect((await app.ask('/sending')).body.hold).toMatchObject({ reason: 'disabled' })
    await put({ limit_factor: 21 }, 'asOrganization')
    expect((await app.ask('/sending')).body).toMatchObject({ hold: null, usage: { used: 20, limit: 42 } })
    const jobs = await server.db.query(sql`select key from jobs where app_id = ${app.id} and name = 'messages.wake'`)
    expect(jobs).toHaveLength(1)
  })
})

const NIGHT = { start: '22:00', end: '08:00' }
const cap = (more: object) => ({ frequency_caps: [{ ...CAP, ...more }] })

describe('refused, and nothing changes', () => {
  const wrong: [body: unknown, says: string][] = [
    [{ quiet_hours: {} }, 'quiet_hours.start is required'],
    [{ quiet_hours: 'never' }, 'quiet_hours must be an object or null'],
    [
      { quiet_hours: { ...NIGHT, start: '24:00' } },
      'quiet_hours.start must be a time of day from 00:00 to 23:59, as 22:00',
    ],
    [{ quiet_hours: { ...NIGHT, end: '9:00' } }, 'quiet_hours.end must be a time of day from 00:00 to 23:59, as 22:00'],
    [{ quiet_hours: { ...NIGHT, end: 8 } }, 'quiet_hours.end must be a string'],
    [{ quiet_hours: { ...NIGHT, days: [] } }, 'quiet_hours.days must not be empty'],
    [{ quiet_hours: { ...NIGHT, days: ['Friday'] } }, 'quiet_hours.days[0] must be "sunday", "monday"'],
    [{ quiet_hours: { ...NIGHT, channels: ['fax'] } }, 'quiet_hours.channels[0] must be "push", "email" or "sms"'],
    [
      { quiet_hours: { ...NIGHT, fallback_time_zone: 'Mars/Olympus' } },
      'quiet_hours.fallback_time_zone must be the name',
    ],
    [{ quiet_hours: { start: '00:00', end: '00:00' } }, 'quiet_hours must leave some time to send in'],
    [{ frequency_caps: CAP }, 'frequency_caps must be a list or null'],
    [cap({ count: 0 }), 'frequency_caps[0].count must be at least 1'],
    [cap({ count: 1.5 }), 'frequency_caps[0].count must be an integer'],
    [cap({ unit: 'weeks' }), 'frequency_caps[0].unit must be "minutes", "hours" or "days"'],
    [cap({ window: 31 }), 'frequency_caps[0].window must be 30 days at most'],
    [cap({ channel: 'push ' }), 'frequency_caps[0].channel must be'],
    [{ frequency_caps: [CAP, { ...CAP, count: 5 }] }, 'frequency_caps[1].channel must not be there twice'],
    [{ throttle_per_minute: 0 }, 'throttle_per_minute must be at least 1'],
    [{ throttle_per_minute: '60' }, 'throttle_per_minute must be an integer or null'],
    [{ retention_days: 3_651 }, 'retention_days must be at most 3650'],
    [{ limit_factor: 0 }, 'limit_factor must be at least 1'],
    [[], 'The body must be an object'],
  ]
  test.each(wrong)('%j: %s', async (body, says) => {
    await put({ retention_days: 9 })
    const answer = await put(body)
    expect(answer.status).toBe(400)
    expect(answer.body.errors[0]).toContain(says)
    expect(await get()).toEqual({ ...DEFAULTS, retention_days: 9 })
  })
})
