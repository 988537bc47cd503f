// Limits how fast email goes to each inbox provider. When a provider asks us to slow down, its rate is halved, and then
// rises a little with every second without complaint. Email to other providers is not delayed.

import type { Clock } from '../../lib/clock.ts'

export type ProviderThrottle = {
  /**
   * Returns undefined if the email may go now, and counts it. Otherwise returns how long it should wait, behind those
   * that were told to wait before.
   */
  reserve(lane: string): number | undefined
  /** Returns how long an email would have to wait now, without counting it as sent. */
  peekWaitMs(lane: string): number | undefined
  /**
   * Called when the provider asks us to slow down. Requests that began before the previous slowdown do not slow the
   * lane again.
   */
  slowDown(lane: string, beganMs: number): void
}

/** A slowed lane: from `sinceMs` on, `base` emails per second, and `step` more per second with every second. */
type Slowed = { sinceMs: number; base: number; step: number; used: number; promised: number }
/** The number of recent sends: in this window and in the one before it. */
type Recent = { windowMs: number; count: number; before: number }

const WINDOW_MS = 10_000
/** One email per minute: with fewer, we would never find out that the provider accepts more again. */
const LEAST_PER_SECOND = 1 / 60
/**
 * The rate recovers from half to full in five minutes. Once it reaches twice the full rate, the lane is no longer
 * limited.
 */
const RECOVERY_SECONDS = 600
/** Unused capacity accumulates for no longer than this. */
const BURST_SECONDS = 1
/** Tolerance for rounding in the square root and its inverse. */
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

  /** Returns undefined for a lane that is not limited. */
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

/** How many emails may have been sent by then since the lane was slowed. */
function capacityOf({ sinceMs, base, step }: Slowed, nowMs: number): number {
  const seconds = (nowMs - sinceMs) / 1000
  return base * seconds + (step * seconds ** 2) / 2
}

/** The time after which this many emails may have been sent. */
const reachedMs = ({ base, step }: Slowed, count: number) =>
  Math.ceil(((Math.sqrt(base ** 2 + 2 * step * count) - base) / step) * 1000)
