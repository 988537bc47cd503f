// Counters in the memory of a node that is alone.

import type { AppId } from '../lib/ids.ts'
import { LONGEST_WINDOW_MS } from './rules.ts'
import type { Counters } from './take.ts'
import { emptyWindow, livingLog, mergeLogs, newestMs, type Window, windowOf } from './window.ts'

export type CounterLog = { counter: string; log: number[] }

export type LocalCounters = {
  /** The counters of one app. Good until the next call. */
  of(appId: AppId, now: number): Counters
  /** Add what was counted elsewhere. */
  absorb(appId: AppId, logs: CounterLog[]): void
  /** Everything that still counts, by app. */
  living(now: number): Map<AppId, CounterLog[]>
  forget(appId: AppId, counters: string[]): void
  clear(): void
  isEmpty(): boolean
  size(): number
}

type Generation = Map<AppId, Map<string, Window>>

/**
 * Two generations: a counter in use is in the young one; every minute the old one is dropped whole and the young one
 * becomes old. A counter is thus forgotten one to two minutes after its last request, at no cost per counter.
 */
export function localCounters(): LocalCounters {
  let young: Generation = new Map()
  let old: Generation = new Map()
  let turnedMs = Number.NEGATIVE_INFINITY
  let appId: AppId = ''

  const inGeneration = (generation: Generation, app: AppId) => {
    let counters = generation.get(app)
    if (!counters) {
      counters = new Map()
      generation.set(app, counters)
    }
    return counters
  }

  const counters: Counters = {
    find: (key) => young.get(appId)?.get(key) ?? old.get(appId)?.get(key),
    open(key) {
      const mine = inGeneration(young, appId)
      let window = mine.get(key)
      if (!window) {
        window = old.get(appId)?.get(key) ?? emptyWindow()
        old.get(appId)?.delete(key)
        mine.set(key, window)
      }
      return window
    },
  }

  return {
    of(app, now) {
      // A clock that was set back turns too, else nothing would be forgotten until it has caught up.
      if (Math.abs(now - turnedMs) >= LONGEST_WINDOW_MS) {
        old = young
        young = new Map()
        turnedMs = now
      }
      appId = app
      return counters
    },
    absorb(app, logs) {
      const mine = inGeneration(young, app)
      for (const { counter, log } of logs) {
        const known = mine.get(counter) ?? old.get(app)?.get(counter)
        old.get(app)?.delete(counter)
        mine.set(counter, windowOf(known ? mergeLogs(livingLog(known), log) : log))
      }
    },
    living(now) {
      const found = new Map<AppId, CounterLog[]>()
      for (const generation of [old, young]) {
        for (const [app, windows] of generation) {
          const logs = found.get(app) ?? []
          for (const [counter, window] of windows)
            if (newestMs(window) + LONGEST_WINDOW_MS > now) logs.push({ counter, log: livingLog(window) })
          if (logs.length > 0) found.set(app, logs)
        }
      }
      return found
    },
    forget(app, keys) {
      for (const generation of [old, young]) {
        const windows = generation.get(app)
        for (const key of keys) windows?.delete(key)
        if (windows?.size === 0) generation.delete(app)
      }
    },
    clear() {
      young = new Map()
      old = new Map()
    },
    isEmpty: () => young.size === 0 && old.size === 0,
    size: () => [old, young].reduce((sum, all) => [...all.values()].reduce((n, some) => n + some.size, sum), 0),
  }
}
