// The time units of the counts, and how the largest units that fit are combined to cover a window. All times are UTC.

export const timeUnits = ['instant', 'hour', 'day', 'month'] as const
export type TimeUnit = (typeof timeUnits)[number]

/** Includes `from` and excludes `until`. */
export type MetricsWindow = { from: Date; until: Date }

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/** The start of the unit that contains the time. */
export function floorOf(unit: TimeUnit, time: Date): Date {
  if (unit === 'instant') return time
  if (unit === 'month') return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth()))
  const ms = unit === 'hour' ? HOUR_MS : DAY_MS
  return new Date(Math.floor(time.getTime() / ms) * ms)
}

/** The start of the first unit that lies entirely at or after the time. */
function ceilingOf(unit: TimeUnit, time: Date): Date {
  const floor = floorOf(unit, time)
  if (floor.getTime() === time.getTime()) return time
  if (unit === 'month') return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + 1))
  return new Date(floor.getTime() + (unit === 'hour' ? HOUR_MS : DAY_MS))
}

/** Covers each moment of the window once: with months in the middle, and days, hours and instants on either side. */
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
