// The units that counts are kept in, and how a window is put together from the largest that fit. All in UTC.

export const timeUnits = ['instant', 'hour', 'day', 'month'] as const
export type TimeUnit = (typeof timeUnits)[number]

/** From `from` on and before `until`. */
export type MetricsWindow = { from: Date; until: Date }

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/** When the unit began that this time lies in. */
export function floorOf(unit: TimeUnit, time: Date): Date {
  if (unit === 'instant') return time
  if (unit === 'month') return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth()))
  const ms = unit === 'hour' ? HOUR_MS : DAY_MS
  return new Date(Math.floor(time.getTime() / ms) * ms)
}

/** When the first unit begins that this time does not cut in two. */
function ceilingOf(unit: TimeUnit, time: Date): Date {
  const floor = floorOf(unit, time)
  if (floor.getTime() === time.getTime()) return time
  if (unit === 'month') return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + 1))
  return new Date(floor.getTime() + (unit === 'hour' ? HOUR_MS : DAY_MS))
}

/** Months in the middle, and on both sides of them days, hours and instants: each moment of the window once. */
export type WindowCover = Record<TimeUnit, readonly [MetricsWindow, MetricsWindow]>

export function coverWindow(window: MetricsWindow): WindowCover {
  const nothing: MetricsWindow = { from: window.until, until: window.until }
  const cover: Record<TimeUnit, [MetricsWindow, MetricsWindow]> = {
    instant: [nothing, nothing],
    hour: [nothing, nothing],
    day: [nothing, nothing],
    month: [nothing, nothing],
  }
  let rest = window
  for (const [i, unit] of timeUnits.entries()) {
    const larger = timeUnits[i + 1]
    const inner = larger && { from: ceilingOf(larger, rest.from), until: floorOf(larger, rest.until) }
    if (!inner || inner.from >= inner.until) {
      cover[unit] = [rest, nothing]
      break
    }
    cover[unit] = [
      { from: rest.from, until: inner.from },
      { from: inner.until, until: rest.until },
    ]
    rest = inner
  }
  return cover
}
