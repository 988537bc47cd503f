// How fast mail goes to each inbox provider. One that asks us to slow down gets half as much as it got, and a little more with
// every second of peace; mail to the others is not held up by it.

import type { Clock } from '../../lib/clock.ts'

export type ProviderThrottle = {
  /** Undefined: it may go now, and counts. Otherwise for how long it should wait, behind those that were told so before. */
  reserve(lane: string): number | undefined
  /** The same for now, without counting: how long it would have to wait. */
  peekWaitMs(lane: string): number | undefined
  /** The provider asked us to; what began before the last time it did counts as one with that. */
  slowDown(lane: string, beganMs: number): void
}

/** A lane that was slowed: from `sinceMs` on, at `base` a second and `step` more with every second. */
type Slowed = { sinceMs: number; base: number; step: number; used: number; promised: number }
/** What went out lately: in this window, and in the one before it. */
type Recent = { windowMs: number; count: number; before: number }

const WINDOW_MS = 10_000
/** One in a minute: less would never find out that the peace is back. */
const LEAST_PER_SECOND = 1 / 60
/** From half of it to all of it in five minutes; at twice as much there is nothing to hold any more. */
const RECOVERY_SECONDS = 600
/** What was not used is not saved up for longer than this. */
const BURST_SECONDS = 1
/** Of the square root, and back. */
const ROUNDING = 1e-6
const LONGEST_MS = 4 * 3_600_000

export function createProviderThrottle(clock: Pick<Clock, 'now'>): ProviderThrottle {
  const slowed = new Map<string, Slowed & { full: number }>()
  const recent = new Map<string, Recent>()
  const nowMs = () => clock.now().getTime()

  function note(lane: string) {
    const windowMs = Math.floor(nowMs() / WINDOW_MS) * WINDOW_MS
    const last = recent.get(lane)
    if (last?.windowMs === windowMs) last.count++
    else recent.set(lane, { windowMs, count: 1, before: last?.windowMs === windowMs - WINDOW_MS ? last.count : 0 })
  }

  function perSecond(lane: string): number {
    const { windowMs = 0, count = 0, before = 0 } = recent.get(lane) ?? {}
    const seconds = Math.max(1000, nowMs() - windowMs + (before > 0 ? WINDOW_MS : 0)) / 1000
    return (count + before) / seconds
  }

  /** Undefined for a lane that goes as fast as it can. */
  function find(lane: string) {
    const found = slowed.get(lane)
    if (!found || rateOf(found, nowMs()) < 2 * found.full) return found
    slowed.delete(lane)
    return undefined
  }

  function look(lane: string, isTaken: boolean): number | undefined {
    const now = nowMs()
    const found = find(lane)
    if (isTaken && !found) note(lane)
    if (!found) return undefined
    const open = capacityOf(found, now)
    const used = Math.max(found.used, open - Math.max(1, rateOf(found, now) * BURST_SECONDS))
    if (used + 1 <= open + ROUNDING) {
      if (isTaken) found.used = used + 1
      return undefined
    }
    found.promised = Math.max(found.promised, used) + 1
    return Math.min(Math.max(found.sinceMs + reachedMs(found, found.promised) - now, 1), LONGEST_MS)
  }

  return {
    reserve: (lane) => look(lane, true),
    peekWaitMs: (lane) => look(lane, false),
    slowDown(lane, beganMs) {
      const sinceMs = nowMs()
      const found = find(lane)
      if (found && beganMs <= found.sinceMs) return
      const full = found?.full ?? Math.max(perSecond(lane), LEAST_PER_SECOND)
      const base = Math.max((found ? rateOf(found, sinceMs) : full) / 2, LEAST_PER_SECOND)
      slowed.set(lane, { sinceMs, base, step: full / RECOVERY_SECONDS, used: 0, promised: 0, full })
    },
  }
}

const rateOf = ({ sinceMs, base, step }: Slowed, nowMs: number) => base + (step * (nowMs - sinceMs)) / 1000

/** How many may have gone by then since it was slowed. */
function capacityOf({ sinceMs, base, step }: Slowed, nowMs: number): number {
  const seconds = (nowMs - sinceMs) / 1000
  return base * seconds + (step * seconds ** 2) / 2
}

/** After how long as many may have gone. */
const reachedMs = ({ base, step }: Slowed, count: number) =>
  Math.ceil(((Math.sqrt(base ** 2 + 2 * step * count) - base) / step) * 1000)
