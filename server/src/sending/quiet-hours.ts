// Hours in which nobody wants to be disturbed, on the clock of the user.

import { DAY_MS, dayOf, instantOf, readTimeOfDay, type TimeOfDay, timeZoneOf, wallOf } from '../lib/time-zone.ts'
import { DAYS, type DeliveryChannel, type DeliverySettings, type QuietHours } from './settings.ts'

/** Undefined where deliveries of this channel may disturb at any hour. */
export const quietHoursOf = ({ quietHours }: DeliverySettings, channel: DeliveryChannel): QuietHours | undefined =>
  quietHours?.channels.includes(channel) ? quietHours : undefined

/**
 * When the quiet of this moment ends; undefined when it is not quiet. Where clocks are put back, all is quiet from the first
 * time that they show the beginning to the last time that they show the end.
 */
export function quietUntil(quiet: QuietHours, timeZone: string | null | undefined, now: Date): Date | undefined {
  const zone = timeZoneOf(timeZone, quiet.fallbackTimeZone)
  const start = readTimeOfDay(quiet.start) as TimeOfDay
  const end = readTimeOfDay(quiet.end) as TimeOfDay
  const lengthMs = end > start ? end - start : end - start + DAY_MS
  const today = dayOf(wallOf(zone, now))
  let until: Date | undefined
  // Yesterday's may not be over. One that begins at or before the end of another goes on with it: a week of them is the most.
  for (let day = today - DAY_MS; day <= today + 7 * DAY_MS; day += DAY_MS) {
    if (!quiet.days.includes(DAYS[new Date(day).getUTCDay()] as (typeof DAYS)[number])) continue
    const begins = instantOf(zone, day + start)
    if (begins > (until ?? now)) break
    const ends = instantOf(zone, day + start + lengthMs, 'last')
    if (ends > (until ?? now)) until = ends
  }
  return until
}
