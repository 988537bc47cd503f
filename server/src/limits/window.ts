// Counts what was admitted during the last second (or minute), without keeping the time of each request.
// The log is a list of entries, oldest first: up to `grain` requests, with the time of the last of them. An entry
// counts until that time has left the window, so the limit is never exceeded in any window. Only the oldest entry can
// contain requests that are already outside, so fewer than `grain` requests are counted too long: a grain of 1 is an
// exact log, and a grain of 1 % of the limit refuses from 99 % on, whatever the pattern of the requests, with about a
// hundred entries.

import type { Allowance } from './rules.ts'

export type Window = {
  /** time, count, time, count, … */
  log: number[]
  /** Index of the first entry that still counts. */
  head: number
  /** Sum of the counts that still count. */
  total: number
}

export const emptyWindow = (): Window => ({ log: [], head: 0, total: 0 })

export function windowOf(log: number[]): Window {
  let total = 0
  for (let i = 1; i < log.length; i += 2) total += log[i] as number
  return { log, head: 0, total }
}

/** Largest number of requests in one entry: this share of the limit, or an exact log where the limit is small. */
export type Grain = { share: number; exactUpTo: number }
export const LOCAL_GRAIN: Grain = { share: 0.01, exactUpTo: 60 }
/** Coarser, because the whole log is sent to PostgreSQL and back. */
export const SHARED_GRAIN: Grain = { share: 0.05, exactUpTo: 60 }

const grainOf = ({ share, exactUpTo }: Grain, limit: number) =>
  limit <= exactUpTo ? 1 : Math.max(1, Math.floor(limit * share))

/**
 * Returns 0 when one more request may be admitted at `now`, otherwise the milliseconds until then if no other request
 * comes.
 */
export function waitMs(window: Window, now: number, { limit, windowMs }: Allowance): number {
  dropAged(window, now, windowMs)
  if (limit < 1) return windowMs
  let surplus = window.total - limit + 1
  if (surplus <= 0) return 0
  const { log } = window
  let i = window.head
  for (; i < log.length; i += 2) {
    surplus -= log[i + 1] as number
    if (surplus <= 0) break
  }
  return (log[i] as number) + windowMs - now
}

/** Counts requests that were admitted up to `now`. */
export function record(window: Window, now: number, limit: number, grain: Grain, count = 1) {
  const { log } = window
  const most = grainOf(grain, limit)
  for (let left = count; left > 0; ) {
    const last = log.length - 2
    // Another node's clock may be slightly ahead; the log stays in order.
    const time = last >= window.head ? Math.max(now, log[last] as number) : now
    const room = last >= window.head ? most - (log[last + 1] as number) : 0
    const added = Math.min(left, room > 0 ? room : most)
    if (room > 0) {
      log[last] = time
      log[last + 1] = (log[last + 1] as number) + added
    } else log.push(time, added)
    left -= added
  }
  window.total += count
}

/** Removes requests that were counted at `time` but not admitted in the end. */
export function unrecord(window: Window, time: number, count: number) {
  const { log } = window
  let left = count
  for (let i = window.head; i < log.length && left > 0; i += 2) {
    if ((log[i] as number) < time) continue
    const removed = Math.min(left, log[i + 1] as number)
    log[i + 1] = (log[i + 1] as number) - removed
    window.total -= removed
    left -= removed
  }
}

function dropAged(window: Window, now: number, windowMs: number) {
  const { log } = window
  if (log.length > 0 && (log[log.length - 2] as number) > now + windowMs) restamp(log, now)
  let { head } = window
  while (head < log.length && (log[head] as number) + windowMs <= now) {
    window.total -= log[head + 1] as number
    head += 2
  }
  if (head === log.length) {
    log.length = 0
    head = 0
  } else if (head > 32 && head * 2 > log.length) {
    log.splice(0, head)
    head = 0
  }
  window.head = head
}

/**
 * Called when the clock was set back by more than a window. Its entries count from now on, instead of until the old
 * time is reached again.
 */
function restamp(log: number[], now: number) {
  for (let i = 0; i < log.length; i += 2) log[i] = Math.min(log[i] as number, now)
}

export const livingLog = (window: Window): number[] => window.log.slice(window.head)

/** The time of the newest entry. When a whole window has passed since, nothing in it counts. */
export const newestMs = ({ log }: Window) =>
  log.length > 0 ? (log[log.length - 2] as number) : Number.NEGATIVE_INFINITY

/** Merges two separate logs into one. */
export function mergeLogs(left: number[], right: number[]): number[] {
  const merged: number[] = []
  let l = 0
  let r = 0
  while (l < left.length || r < right.length) {
    const fromLeft = r >= right.length || (l < left.length && (left[l] as number) <= (right[r] as number))
    if (fromLeft) {
      merged.push(left[l] as number, left[l + 1] as number)
      l += 2
    } else {
      merged.push(right[r] as number, right[r + 1] as number)
      r += 2
    }
  }
  return merged
}
