// Parses moments and times of day in the formats that people and programs use. A text that cannot be parsed is refused:
// a message sent at the wrong hour is worse than a refused one. Times without a zone are in UTC.

import { ownProperty } from '../../lib/own-property.ts'

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const FULL_MONTHS = 'january february march april may june july august september october november december'.split(' ')
/** Abbreviations that are longer than three letters. */
const OTHER_MONTHS: Record<string, string> = { sept: 'sep' }
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const FULL_WEEKDAYS = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ')
/** Offsets from UTC, in hours, of the zone names that email uses. */
const ZONES: Record<string, number> = { EST: -5, EDT: -4, CST: -6, CDT: -5, MST: -7, MDT: -6, PST: -8, PDT: -7 }

const CLOCK = String.raw`(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:\.(?<fraction>\d{1,9}))?)?(?:\s*(?<half>[ap]m))?`
const ZONE = String.raw`(?<zone>z|(?:utc|gmt)?[+-]\d{2}(?::?\d{2})?|utc|gmt|[ecmp][sd]t)(?:\s*\([^()]{1,64}\))?`
const TIME = String.raw`(?:(?:t|\s+|,\s*|\s+at\s+)${CLOCK}(?:\s*${ZONE})?)?`
const WEEKDAY = String.raw`(?:(?<weekday>[a-z]{3,9}),?\s+)?`

const FORMS = [
  // 2015-09-24T14:00:00Z, 2015-09-24 14:00:00 GMT-0700, 2015/09/24 14:00
  String.raw`(?<year>\d{4})(?<mark>[-/])(?<month>\d{1,2})\k<mark>(?<day>\d{1,2})${TIME}`,
  // Thu Sep 24 2015 14:00:00 GMT-0700 (PDT), September 24th 2015, 2:00:00 pm UTC-07:00
  String.raw`${WEEKDAY}(?<monthName>[a-z]{3,9})\.?\s+(?<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?<year>\d{4})${TIME}`,
  // Thu, 24 Sep 2015 14:00:00 GMT
  String.raw`${WEEKDAY}(?<day>\d{1,2})(?:st|nd|rd|th)?\s+(?<monthName>[a-z]{3,9})\.?,?\s+(?<year>\d{4})${TIME}`,
  // 9/24/2015 2:00 pm: the month comes first
  String.raw`(?<month>\d{1,2})/(?<day>\d{1,2})/(?<year>\d{4})${TIME}`,
].map((form) => new RegExp(`^${form}$`, 'i'))

const placeIn = (name: string, short: string[], full: string[]) => {
  const place = full.indexOf(name)
  return place >= 0 ? place : short.indexOf(name)
}

/** Returns undefined when the text cannot be parsed, or no such moment exists. */
export function parseInstant(given: string): Date | undefined {
  const text = given.trim()
  for (const form of FORMS) {
    const parts = form.exec(text)?.groups
    if (parts) return momentOf(parts)
  }
  return undefined
}

const monthNamed = (name: string) => ownProperty(OTHER_MONTHS, name) ?? name

function momentOf(parts: Record<string, string | undefined>): Date | undefined {
  const month =
    parts.monthName === undefined
      ? Number(parts.month) - 1
      : placeIn(monthNamed(parts.monthName.toLowerCase()), MONTHS, FULL_MONTHS)
  const [year, day] = [Number(parts.year), Number(parts.day)]
  const date = new Date(Date.UTC(year, month, day))
  // `Date` would silently turn a day that does not exist (30 February) into another one.
  if (month < 0 || date.getUTCFullYear() !== year || date.getUTCMonth() !== month || date.getUTCDate() !== day)
    return undefined
  if (parts.weekday && placeIn(parts.weekday.toLowerCase(), WEEKDAYS, FULL_WEEKDAYS) !== date.getUTCDay())
    return undefined
  const seconds = parts.hour === undefined ? 0 : secondsOf(parts)
  const minutesFromUtc = offsetOf(parts.zone ?? 'z')
  if (seconds === undefined || minutesFromUtc === undefined) return undefined
  const ms = Number((parts.fraction ?? '').slice(0, 3).padEnd(3, '0'))
  return new Date(date.getTime() + (seconds - minutesFromUtc * 60) * 1000 + ms)
}

function offsetOf(zone: string): number | undefined {
  const named = ownProperty(ZONES, zone.toUpperCase())
  if (named !== undefined) return named * 60
  const offset = /([+-])(\d{2}):?(\d{2})?$/.exec(zone)
  if (!offset) return 0
  const [, sign, hours, minutes = '0'] = offset
  if (Number(hours) > 14 || Number(minutes) > 59) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

/** Seconds after midnight. */
function secondsOf({ hour, minute, second = '0', half }: Record<string, string | undefined>): number | undefined {
  let hours = Number(hour)
  if (half !== undefined) {
    if (hours < 1 || hours > 12) return undefined
    hours = (hours % 12) + (half.toLowerCase() === 'pm' ? 12 : 0)
  }
  if (hours > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  return hours * 3600 + Number(minute) * 60 + Number(second)
}

const TIME_OF_DAY = new RegExp(`^${CLOCK}$`, 'i')
const HOUR_OF_DAY = /^(?<hour>\d{1,2})\s*(?<half>[ap]m)$/i

/** Parses `9:00AM`, `21:45` or `09:45:30` to seconds after midnight. */
export function parseTimeOfDay(given: string): number | undefined {
  const text = given.trim()
  const parts = TIME_OF_DAY.exec(text)?.groups ?? HOUR_OF_DAY.exec(text)?.groups
  return parts === undefined ? undefined : secondsOf({ minute: '0', ...defined(parts) })
}

const defined = (parts: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined))
