import { describe, expect, test } from 'vitest'
import { timeZoneOf } from '../../lib/time-zone.ts'
import { findOpenTime, findSameTimeOfDay } from './time-window.ts'

const at = (text: string) => new Date(text)
const nine = { hour: 9, minute: 0 }
const ten = { hour: 10, minute: 0 }
const day = [{ start: nine, end: ten }]

test('a window that is open lets through at once', () => {
  expect(findOpenTime(day, timeZoneOf('UTC'), at('2030-06-03T09:00:00Z'), 0.5)).toEqual(at('2030-06-03T09:00:00Z'))
  expect(findOpenTime(day, timeZoneOf('UTC'), at('2030-06-03T09:59:59.999Z'), 0.5)).toEqual(
    at('2030-06-03T09:59:59.999Z'),
  )
})

test('else at the drawn moment of the next', () => {
  expect(findOpenTime(day, timeZoneOf('UTC'), at('2030-06-03T08:00:00Z'), 0)).toEqual(at('2030-06-03T09:00:00Z'))
  expect(findOpenTime(day, timeZoneOf('UTC'), at('2030-06-03T10:00:00Z'), 0.5)).toEqual(at('2030-06-04T09:30:00Z'))
})

test('by the clock of the zone', () => {
  expect(findOpenTime(day, timeZoneOf('Asia/Tokyo'), at('2030-06-03T00:30:00Z'), 0)).toEqual(at('2030-06-03T00:30:00Z'))
  expect(findOpenTime(day, timeZoneOf('Asia/Tokyo'), at('2030-06-03T01:00:00Z'), 0.25)).toEqual(
    at('2030-06-04T00:15:00Z'),
  )
})

test('on its own day of the week', () => {
  // 2030-06-03 is a Monday.
  const friday = [{ start: nine, end: ten, day_of_week: 5 }]
  expect(findOpenTime(friday, timeZoneOf('UTC'), at('2030-06-03T09:30:00Z'), 0)).toEqual(at('2030-06-07T09:00:00Z'))
  expect(findOpenTime(friday, timeZoneOf('UTC'), at('2030-06-07T09:30:00Z'), 0)).toEqual(at('2030-06-07T09:30:00Z'))
  expect(findOpenTime(friday, timeZoneOf('UTC'), at('2030-06-07T10:00:00Z'), 0)).toEqual(at('2030-06-14T09:00:00Z'))
})

test('past midnight', () => {
  const night = [{ start: { hour: 22, minute: 0 }, end: { hour: 2, minute: 0 }, day_of_week: 1 }]
  expect(findOpenTime(night, timeZoneOf('UTC'), at('2030-06-04T01:59:00Z'), 0)).toEqual(at('2030-06-04T01:59:00Z'))
  expect(findOpenTime(night, timeZoneOf('UTC'), at('2030-06-04T02:00:00Z'), 0)).toEqual(at('2030-06-10T22:00:00Z'))
})

test('a whole day', () => {
  const midnight = { hour: 0, minute: 0 }
  const monday = [{ start: midnight, end: midnight, day_of_week: 1 }]
  for (const moment of ['2030-06-03T00:00:00Z', '2030-06-03T23:59:59.999Z'])
    expect(findOpenTime(monday, timeZoneOf('UTC'), at(moment), 0)).toEqual(at(moment))
  expect(findOpenTime(monday, timeZoneOf('UTC'), at('2030-06-04T00:00:00Z'), 0)).toEqual(at('2030-06-10T00:00:00Z'))
})

test('the earliest of several', () => {
  const two = [{ start: { hour: 18, minute: 0 }, end: { hour: 19, minute: 0 } }, ...day]
  expect(findOpenTime(two, timeZoneOf('UTC'), at('2030-06-03T12:00:00Z'), 0)).toEqual(at('2030-06-03T18:00:00Z'))
  expect(findOpenTime(two, timeZoneOf('UTC'), at('2030-06-03T20:00:00Z'), 0)).toEqual(at('2030-06-04T09:00:00Z'))
})

test('in the nights in which clocks are put forward and back', () => {
  const zone = timeZoneOf('America/New_York')
  const early = [{ start: { hour: 2, minute: 30 }, end: { hour: 3, minute: 30 } }]
  // 2:30 does not exist on 2030-03-10: it opens when the clock is put forward, at 07:00Z, until 3:30.
  expect(findOpenTime(early, zone, at('2030-03-10T05:00:00Z'), 0)).toEqual(at('2030-03-10T07:00:00Z'))
  expect(findOpenTime(early, zone, at('2030-03-10T07:29:00Z'), 0)).toEqual(at('2030-03-10T07:29:00Z'))
  // On 2030-11-03 the hour from 1 to 2 comes twice: a window over it is open for both.
  const twice = [{ start: { hour: 1, minute: 0 }, end: { hour: 1, minute: 45 } }]
  for (const moment of ['2030-11-03T05:10:00Z', '2030-11-03T06:40:00Z'])
    expect(findOpenTime(twice, zone, at(moment), 0)).toEqual(at(moment))
})

test('no window, no moment', () => {
  expect(findOpenTime([], timeZoneOf('UTC'), at('2030-06-03T08:00:00Z'), 0)).toBeUndefined()
})

describe('the same time of day as somebody was last there', () => {
  test('is within a day', () => {
    const now = at('2030-06-03T12:00:00Z')
    const zone = timeZoneOf('UTC')
    expect(findSameTimeOfDay(zone, at('2030-05-20T15:30:00Z'), now)).toEqual(at('2030-06-03T15:30:00Z'))
    expect(findSameTimeOfDay(zone, at('2030-05-20T09:30:00Z'), now)).toEqual(at('2030-06-04T09:30:00Z'))
    expect(findSameTimeOfDay(zone, now, now)).toEqual(now)
  })

  test('is by their clock, also when it was put forward or back since', () => {
    const zone = timeZoneOf('America/New_York')
    // 18:00 in winter, and in summer.
    expect(findSameTimeOfDay(zone, at('2030-03-08T23:00:00Z'), at('2030-03-12T12:00:00Z'))).toEqual(
      at('2030-03-12T22:00:00Z'),
    )
    expect(findSameTimeOfDay(zone, at('2030-11-01T22:00:00Z'), at('2030-11-05T12:00:00Z'))).toEqual(
      at('2030-11-05T23:00:00Z'),
    )
    // 23:30 there is the next day in UTC.
    expect(findSameTimeOfDay(zone, at('2030-03-09T04:30:00Z'), at('2030-03-12T03:00:00Z'))).toEqual(
      at('2030-03-12T03:30:00Z'),
    )
    // 2:30 does not exist on 2030-03-10.
    expect(findSameTimeOfDay(zone, at('2030-03-08T07:30:00Z'), at('2030-03-10T05:00:00Z'))).toEqual(
      at('2030-03-10T07:00:00Z'),
    )
  })
})
