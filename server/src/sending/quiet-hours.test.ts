import { describe, expect, test } from 'vitest'
import { quietHoursOf, quietUntil } from './quiet-hours.ts'
import { DAYS, DEFAULT_SETTINGS, type QuietHours } from './settings.ts'

const NIGHT: QuietHours = {
  start: '22:00',
  end: '08:00',
  days: [...DAYS],
  channels: ['push', 'sms'],
  fallbackTimeZone: 'UTC',
}
const WEEKEND: QuietHours = { ...NIGHT, start: '00:00', end: '00:00', days: ['saturday', 'sunday'] }

const until = (quiet: QuietHours, zone: string | null, now: string) =>
  quietUntil(quiet, zone, new Date(now))?.toISOString().replace('.000Z', 'Z')

describe('quiet hours', () => {
  test.each([
    ['2030-01-15T20:59:59Z', undefined],
    ['2030-01-15T21:00:00Z', '2030-01-16T07:00:00Z'],
    ['2030-01-15T23:30:00Z', '2030-01-16T07:00:00Z'],
    ['2030-01-16T06:59:59Z', '2030-01-16T07:00:00Z'],
    ['2030-01-16T07:00:00Z', undefined],
    ['2030-01-16T12:00:00Z', undefined],
  ])('over midnight: at %s until %s', (now, expected) => {
    expect(until(NIGHT, 'Europe/Berlin', now)).toBe(expected)
  })

  test.each([
    ['2030-01-15T11:59:59Z', undefined],
    ['2030-01-15T12:00:00Z', '2030-01-15T14:00:00Z'],
    ['2030-01-15T14:00:00Z', undefined],
  ])('within a day: at %s until %s', (now, expected) => {
    expect(until({ ...NIGHT, start: '12:00', end: '14:00' }, 'UTC', now)).toBe(expected)
  })

  test('are those of the user’s clock', () => {
    const now = '2030-01-15T13:30:00Z'
    expect(until(NIGHT, 'Asia/Tokyo', now)).toBe('2030-01-15T23:00:00Z')
    expect(until(NIGHT, 'Europe/Berlin', now)).toBeUndefined()
  })

  test('are those of the fallback where the user’s time zone is not known, and of UTC where that is not either', () => {
    const now = '2030-01-15T13:30:00Z'
    const tokyo = { ...NIGHT, fallbackTimeZone: 'Asia/Tokyo' }
    for (const zone of [null, '', 'Mars/Olympus'])
      expect(until(tokyo, zone, now), String(zone)).toBe('2030-01-15T23:00:00Z')
    expect(until(tokyo, 'Europe/Berlin', now)).toBeUndefined()
    expect(until({ ...NIGHT, fallbackTimeZone: 'gone' }, null, '2030-01-15T22:00:00Z')).toBe('2030-01-16T08:00:00Z')
  })

  // 18 January 2030 is a Friday.
  test.each([
    ['2030-01-18T23:59:59Z', undefined],
    ['2030-01-19T00:00:00Z', '2030-01-21T00:00:00Z'],
    ['2030-01-20T15:00:00Z', '2030-01-21T00:00:00Z'],
    ['2030-01-21T00:00:00Z', undefined],
  ])('of whole days follow each other: at %s until %s', (now, expected) => {
    expect(until(WEEKEND, 'UTC', now)).toBe(expected)
  })

  test('belong to the day on which they begin', () => {
    const friday = { ...NIGHT, days: ['friday' as const] }
    expect(until(friday, 'UTC', '2030-01-18T05:00:00Z')).toBeUndefined()
    expect(until(friday, 'UTC', '2030-01-18T22:00:00Z')).toBe('2030-01-19T08:00:00Z')
    expect(until(friday, 'UTC', '2030-01-19T05:00:00Z')).toBe('2030-01-19T08:00:00Z')
    expect(until(friday, 'UTC', '2030-01-19T22:00:00Z')).toBeUndefined()
  })

  test.each([
    // Forward at 02:00 on 31 March: the night has one hour less.
    ['22:00', '08:00', '2030-03-30T21:00:00Z', '2030-03-31T06:00:00Z'],
    // The end is never shown: it comes when the clock is put forward.
    ['22:00', '02:30', '2030-03-31T00:59:59Z', '2030-03-31T01:00:00Z'],
    ['22:00', '02:30', '2030-03-31T01:00:00Z', undefined],
    // Neither is the beginning.
    ['02:30', '06:00', '2030-03-31T00:59:59Z', undefined],
    ['02:30', '06:00', '2030-03-31T01:00:00Z', '2030-03-31T04:00:00Z'],
    // Back at 03:00 on 27 October: half past two is shown twice, and quiet lasts up to the second.
    ['22:00', '02:30', '2030-10-27T00:45:00Z', '2030-10-27T01:30:00Z'],
    ['22:00', '02:30', '2030-10-27T01:30:00Z', undefined],
    // And begins with the first.
    ['02:30', '06:00', '2030-10-27T00:30:00Z', '2030-10-27T05:00:00Z'],
    ['02:30', '06:00', '2030-10-27T01:15:00Z', '2030-10-27T05:00:00Z'],
  ])('from %s to %s on nights with another hour: at %s until %s', (start, end, now, expected) => {
    expect(until({ ...NIGHT, start, end }, 'Europe/Berlin', now)).toBe(expected)
  })

  test('never let through a moment at which the user’s clock shows a quiet time', () => {
    const zones = ['Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe']
    for (const zone of zones) {
      const clock = new Intl.DateTimeFormat('en-US', {
        timeZone: zone,
        hour: '2-digit',
        minute: '2-digit',
        hourCycle: 'h23',
      })
      for (let ms = Date.parse('2030-03-01Z'); ms < Date.parse('2030-11-30Z'); ms += 17 * 60_000) {
        const shown = clock.format(ms)
        const isQuiet = shown >= '22:00' || shown < '08:00'
        expect(quietUntil(NIGHT, zone, new Date(ms)) !== undefined, `${zone} ${new Date(ms).toISOString()}`).toBe(
          isQuiet,
        )
      }
    }
  })

  test('are for the channels that are named', () => {
    const settings = { ...DEFAULT_SETTINGS, quietHours: NIGHT }
    expect(quietHoursOf(settings, 'push')).toBe(NIGHT)
    expect(quietHoursOf(settings, 'email')).toBeUndefined()
    expect(quietHoursOf(DEFAULT_SETTINGS, 'push')).toBeUndefined()
  })
})
