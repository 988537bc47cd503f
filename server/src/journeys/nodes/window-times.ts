// When a time window lets somebody through. Pure; walls' clocks are those of lib/time-zone.ts, so that nights in which they are
// put forward or back are as anybody would expect.

import { DAY_MS, dayOf, instantOf, nextTimeOfDay, type TimeZone, wallOf } from '../../lib/time-zone.ts'
import type { TimeOfDay, TimeWindow } from './node.ts'

const MINUTE_MS = 60_000
const DAYS_AHEAD = 8

type Opening = { start: Date; end: Date }

const timeOf = ({ hour, minute }: TimeOfDay) => (hour * 60 + minute) * MINUTE_MS

/** 1 is Monday, as in the interface. */
const weekdayOf = (dayMs: number) => ((Math.floor(dayMs / DAY_MS) + 3) % 7) + 1

/** The window on the day that begins at `day` on the wall; undefined on other days than its own. */
function openingOn(zone: TimeZone, window: TimeWindow, day: number): Opening | undefined {
  if (window.day_of_week !== undefined && window.day_of_week !== weekdayOf(day)) return undefined
  const start = timeOf(window.start)
  const end = timeOf(window.end)
  return {
    start: instantOf(zone, day + start),
    end: instantOf(zone, day + end + (end <= start ? DAY_MS : 0), 'last'),
  }
}

/** The moment itself while a window is open, else one inside the next; `drawn` says which. Undefined where none ever opens. */
export function findOpenTime(
  windows: readonly TimeWindow[],
  zone: TimeZone,
  now: Date,
  drawn: number,
): Date | undefined {
  const today = dayOf(wallOf(zone, now))
  let next: Opening | undefined
  // Yesterday's may last until today.
  for (let n = -1; n <= DAYS_AHEAD; n++)
    for (const window of windows) {
      const opening = openingOn(zone, window, today + n * DAY_MS)
      if (!opening || opening.end <= now) continue
      if (opening.start <= now) return now
      if (!next || opening.start < next.start) next = opening
    }
  return next && new Date(next.start.getTime() + Math.floor(drawn * (next.end.getTime() - next.start.getTime())))
}

/** When their clock shows the same time of day again. */
export function findSameTimeOfDay(zone: TimeZone, lastActive: Date, now: Date): Date {
  const wall = wallOf(zone, lastActive)
  return nextTimeOfDay(zone, wall - dayOf(wall), now)
}
