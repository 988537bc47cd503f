// Quiet hours, in the time zone of the user.

import { DAY_MS, dayOf, instantOf, readTimeOfDay, type TimeOfDay, timeZoneOf, wallOf } from '../lib/time-zone.ts'
import { DAYS, type DeliveryChannel, type DeliverySettings, type QuietHours } from './settings.ts'

/** Undefined when quiet hours do not apply to the channel. */
export const quietHoursOf = ({ quietHours }: DeliverySettings, channel: DeliveryChannel): QuietHours | undefined =>
  quietHours?.channels.includes(channel) ? quietHours : undefined

/**
 * When the present quiet period ends; undefined when there is none. When clocks are set back, the quiet period lasts
 * from the first time they show its start to the last time they show its end.
 */
export function quietUntil(quiet: QuietHours, timeZone: string | null | undefined, now: Date): Date | undefined {
  const zone = timeZoneOf(timeZone, quiet.fallbackTimeZone)
  const start = readTimeOfDay(quiet.start) as TimeOfDay
  const end = readTimeOfDay(quiet.end) as TimeOfDay
  const lengthMs = end > start ? end - start : end - start + DAY_MS
  const today = dayOf(wallOf(zone, now))
  let until: Date | undefined
  // Starts with yesterday's period, which may not be over. A period that begins before another ends continues it, for a
  // week at most.
  for (let day = today - DAY_MS; day <= today + 7 * DAY_MS; day += DAY_MS) {
    if (!quiet.days.includes(DAYS[new Date(day).getUTCDay()] as (typeof DAYS)[number])) continue
    const begins = instantOf(zone, day + start)
    if (begins > (until ?? now)) break
    const ends = instantOf(zone, day + start + lengthMs, 'last')
    if (ends > (until ?? now)) until = ends
  }
  return until
}
