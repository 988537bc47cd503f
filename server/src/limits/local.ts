// Counters in the memory of a node: those of a node that counts alone, or those that it has not written yet.

import type { AppId } from '../lib/ids.ts'
import { createGenerationalMap } from './generational-map.ts'
import { LONGEST_WINDOW_MS } from './rules.ts'
import type { Counters } from './take.ts'
import { emptyWindow, livingLog, mergeLogs, newestMs, type Window, windowOf } from './window.ts'

export type CounterLog = { counter: string; log: number[] }

export type LocalCounters = {
  /** The counters of one app. The result is valid until the next call. */
  of(appId: AppId, now: number): Counters
  /** Adds all counts of another set of counters. */
  absorb(other: LocalCounters, now: number): void
  /** The apps that have counters. */
  apps(): AppId[]
  logsOf(appId: AppId): Iterable<[string, Window]>
  put(appId: AppId, counter: string, log: number[]): void
  /** Removes a counter, and returns its log of what still counts. */
  remove(appId: AppId, counter: string): number[] | undefined
  /** Removes some counters of an app and returns them. Counters on which nothing counts any more are dropped. */
  removeSome(appId: AppId, most: number, now: number): CounterLog[]
  isEmpty(): boolean
  size(): number
}

export function localCounters(): LocalCounters {
  const windows = createGenerationalMap<Window>()
  let appId: AppId = ''
  const counters: Counters = {
    find: (key) => windows.find(appId, key),
    open: (key) => windows.open(appId, key, emptyWindow),
  }

  return {
    of(app, now) {
      windows.age(now)
      appId = app
      return counters
    },
    absorb(other, now) {
      windows.age(now)
      for (const app of other.apps()) {
        for (const [key, window] of other.logsOf(app)) {
          const mine = windows.find(app, key)
          windows.set(app, key, mine ? windowOf(mergeLogs(livingLog(mine), livingLog(window))) : window)
        }
      }
    },
    apps: windows.apps,
    logsOf: windows.entries,
    put: (app, key, log) => windows.set(app, key, windowOf(log)),
    remove(app, key) {
      const window = windows.find(app, key)
      windows.delete(app, key)
      return window && livingLog(window)
    },
    removeSome(app, most, now) {
      const removed: CounterLog[] = []
      for (const [counter, window] of windows.entries(app)) {
        windows.delete(app, counter)
        if (newestMs(window) + LONGEST_WINDOW_MS > now) removed.push({ counter, log: livingLog(window) })
        if (removed.length === most) break
      }
      return removed
    },
    isEmpty: () => windows.size() === 0,
    size: windows.size,
  }
}
