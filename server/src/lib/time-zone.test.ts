import { describe, expect, test } from 'vitest'
import { instantOf, isTimeZone, nextTimeOfDay, readTimeOfDay, timeZoneOf, wallOf } from './time-zone.ts'

const at = (text: string) => new Date(text)
const wall = (text: string) => Date.parse(`${text}Z`)
const time = (text: string) => readTimeOfDay(text) as number
const iso = (date: Date) => date.toISOString().replace('.000Z', 'Z')

describe('a time zone', () => {
  test.each([
    'Europe/Berlin',
    'America/St_Johns',
    'Asia/Kathmandu',
    'Pacific/Apia',
    'UTC',
    'EST',
    'europe/berlin',
    '+02:00',
  ])('%s is known', (name) => expect(isTimeZone(name)).toBe(true))

  test.each(['', 'Mars/Olympus', 'GMT+2', '0', 'undefined', '\0'])('%j is not', (name) =>
    expect(isTimeZone(name)).toBe(false),
  )

  test('is the first name that is known, else UTC', () => {
    expect(timeZoneOf('Mars/Olympus', null, 'Asia/Tokyo', 'UTC').name).toBe('Asia/Tokyo')
    expect(timeZoneOf('Mars/Olympus').name).toBe('UTC')
    expect(timeZoneOf(undefined, '').name).toBe('UTC')
  })

  test.each([
    ['Europe/Berlin', '2030-01-15T12:00:00Z', '2030-01-15T13:00:00'],
    ['Europe/Berlin', '2030-07-15T12:00:00Z', '2030-07-15T14:00:00'],
    ['Asia/Kathmandu', '2030-01-15T12:00:00Z', '2030-01-15T17:45:00'],
    ['America/St_Johns', '2030-01-15T02:00:00Z', '2030-01-14T22:30:00'],
    ['Pacific/Kiritimati', '2030-01-15T12:00:00Z', '2030-01-16T02:00:00'],
    ['UTC', '2030-01-15T12:00:00Z', '2030-01-15T12:00:00'],
  ])('%s: the clock at %s shows %s', (name, moment, shown) => {
    expect(wallOf(timeZoneOf(name), at(moment))).toBe(wall(shown))
    expect(instantOf(timeZoneOf(name), wall(shown))).toEqual(at(moment))
  })

  test('finds every quarter of an hour of a year again, in every zone', () => {
    for (const name of [
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'Africa/Casablanca',
      'Asia/Tehran',
    ]) {
      const zone = timeZoneOf(name)
      for (let ms = Date.parse('2030-01-01Z'); ms < Date.parse('2031-01-01Z'); ms += 900_000) {
        const shown = wallOf(zone, new Date(ms))
        const [first, last] = [instantOf(zone, shown), instantOf(zone, shown, 'last')]
        // Shown twice at most; one of the two is the moment it began with.
        if (first.getTime() !== ms && last.getTime() !== ms) expect.fail(`${name} ${new Date(ms).toISOString()}`)
      }
    }
  })
})

// In 2030 Berlin's clocks go forward on 31 March, 02:00 to 03:00, and back on 27 October, 03:00 to 02:00.
describe('a night on which clocks are put forward', () => {
  test.each([
    ['01:59:59', '2030-03-31T00:59:59Z'],
    ['02:00:00', '2030-03-31T01:00:00Z'],
    ['02:30:00', '2030-03-31T01:00:00Z'],
    ['02:59:59', '2030-03-31T01:00:00Z'],
    ['03:00:00', '2030-03-31T01:00:00Z'],
    ['03:30:00', '2030-03-31T01:30:00Z'],
  ])('%s means %s', (shown, moment) => {
    const berlin = timeZoneOf('Europe/Berlin')
    for (const which of ['first', 'last'] as const)
      expect(iso(instantOf(berlin, wall(`2030-03-31T${shown}`), which))).toBe(moment)
  })

  test('at midnight: the day begins at one', () => {
    // In Santiago, on 8 September 2030.
    const santiago = timeZoneOf('America/Santiago')
    expect(iso(instantOf(santiago, wall('2030-09-08T00:30:00')))).toBe('2030-09-08T04:00:00Z')
    expect(iso(nextTimeOfDay(santiago, time('00:30'), at('2030-09-08T03:30:00Z')))).toBe('2030-09-08T04:00:00Z')
    expect(iso(nextTimeOfDay(santiago, time('00:30'), at('2030-09-08T04:00:01Z')))).toBe('2030-09-09T03:30:00Z')
  })

  test('over a whole day: it begins when that day is skipped', () => {
    // There was no 30 December 2011 in Samoa.
    expect(iso(instantOf(timeZoneOf('Pacific/Apia'), wall('2011-12-30T12:00:00')))).toBe('2011-12-30T10:00:00Z')
  })
})

describe('a night on which clocks are put back', () => {
  test.each([
    ['01:59:59', '2030-10-26T23:59:59Z', '2030-10-26T23:59:59Z'],
    ['02:00:00', '2030-10-27T00:00:00Z', '2030-10-27T01:00:00Z'],
    ['02:30:00', '2030-10-27T00:30:00Z', '2030-10-27T01:30:00Z'],
    ['03:00:00', '2030-10-27T02:00:00Z', '2030-10-27T02:00:00Z'],
  ])('%s means %s, and at last %s', (shown, first, last) => {
    const berlin = timeZoneOf('Europe/Berlin')
    expect(iso(instantOf(berlin, wall(`2030-10-27T${shown}`)))).toBe(first)
    expect(iso(instantOf(berlin, wall(`2030-10-27T${shown}`), 'last'))).toBe(last)
  })
})

describe('the next time of day', () => {
  test.each([
    ['Europe/Berlin', '09:00', '2030-01-15T07:00:00Z', '2030-01-15T08:00:00Z'],
    ['Europe/Berlin', '09:00', '2030-01-15T08:00:00Z', '2030-01-15T08:00:00Z'],
    ['Europe/Berlin', '09:00', '2030-01-15T08:00:00.001Z', '2030-01-16T08:00:00Z'],
    ['Pacific/Kiritimati', '09:00', '2030-01-15T12:00:00Z', '2030-01-15T19:00:00Z'],
    ['Pacific/Pago_Pago', '23:30', '2030-01-15T12:00:00Z', '2030-01-16T10:30:00Z'],
    // The day between has 23 hours.
    ['Europe/Berlin', '09:00', '2030-03-30T08:00:01Z', '2030-03-31T07:00:00Z'],
    ['Europe/Berlin', '02:30', '2030-03-31T00:00:00Z', '2030-03-31T01:00:00Z'],
    ['Europe/Berlin', '02:30', '2030-03-31T01:00:01Z', '2030-04-01T00:30:00Z'],
    // It comes to half past two twice; the first counts, and who asks after that waits for the next day.
    ['Europe/Berlin', '02:30', '2030-10-27T00:00:00Z', '2030-10-27T00:30:00Z'],
    ['Europe/Berlin', '02:30', '2030-10-27T00:30:01Z', '2030-10-28T01:30:00Z'],
    ['Mars/Olympus', '09:00', '2030-01-15T07:00:00Z', '2030-01-15T09:00:00Z'],
  ])('in %s at %s from %s on is %s', (name, shown, from, expected) => {
    expect(iso(nextTimeOfDay(timeZoneOf(name), time(shown), at(from)))).toBe(expected)
  })
})

describe('a time of day', () => {
  test.each([
    ['00:00', 0],
    ['21:45', 21 * 60 + 45],
    ['9:00AM', 9 * 60],
    ['9:00 pm', 21 * 60],
    ['12:00AM', 0],
    ['12:30PM', 12 * 60 + 30],
    ['23:59', 24 * 60 - 1],
  ])('%s', (text, minutes) => expect(readTimeOfDay(text)).toBe(minutes * 60_000))

  test('09:45:30', () => expect(readTimeOfDay('09:45:30')).toBe(35_130_000))

  test.each(['', '9', '24:00', '9:60', '9:5', '13:00PM', '0:30AM', '09:45:60', ' 9:00', '9:00XM', '９:00'])(
    '%j is none',
    (text) => expect(readTimeOfDay(text)).toBeUndefined(),
  )
})
