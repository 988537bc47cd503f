// A map of values per app and key, which forgets those that were not used for a while.

import type { AppId } from '../lib/ids.ts'
import { LONGEST_WINDOW_MS } from './rules.ts'

export type GenerationalMap<Value> = {
  /** To be called with the time before anything else. Forgets what has not been opened for one to two minutes. */
  age(now: number): void
  find(appId: AppId, key: string): Value | undefined
  /** Returns the existing value, or creates one, and keeps it for another minute. */
  open(appId: AppId, key: string, make: () => Value): Value
  set(appId: AppId, key: string, value: Value): void
  delete(appId: AppId, key: string): void
  apps(): AppId[]
  /** All values of an app. */
  entries(appId: AppId): Iterable<[string, Value]>
  clear(): void
  size(): number
}

type Generation<Value> = Map<AppId, Map<string, Value>>

/**
 * There are two generations. Values in use are in the young one; every minute the old one is dropped as a whole and the
 * young one becomes old. Forgetting thus costs nothing per value.
 */
export function createGenerationalMap<Value>(): GenerationalMap<Value> {
  let young: Generation<Value> = new Map()
  let old: Generation<Value> = new Map()
  let turnedMs = Number.NEGATIVE_INFINITY

  function valuesOf(generation: Generation<Value>, appId: AppId) {
    let values = generation.get(appId)
    if (!values) {
      values = new Map()
      generation.set(appId, values)
    }
    return values
  }

  function deleteFrom(generation: Generation<Value>, appId: AppId, key: string) {
    const values = generation.get(appId)
    if (values?.delete(key) && values.size === 0) generation.delete(appId)
  }

  function set(appId: AppId, key: string, value: Value) {
    deleteFrom(old, appId, key)
    valuesOf(young, appId).set(key, value)
  }

  const find = (appId: AppId, key: string) => young.get(appId)?.get(key) ?? old.get(appId)?.get(key)

  return {
    age(now) {
      // A clock that was set back counts as well; otherwise nothing would be forgotten until it has caught up.
      if (Math.abs(now - turnedMs) < LONGEST_WINDOW_MS) return
      old = young
      young = new Map()
      turnedMs = now
    },
    find,
    open(appId, key, make) {
      const isYoung = young.get(appId)?.get(key)
      if (isYoung) return isYoung
      const value = old.get(appId)?.get(key) ?? make()
      set(appId, key, value)
      return value
    },
    set,
    delete(appId, key) {
      deleteFrom(young, appId, key)
      deleteFrom(old, appId, key)
    },
    apps: () => [...new Set([...old.keys(), ...young.keys()])],
    *entries(appId) {
      for (const generation of [old, young]) yield* generation.get(appId) ?? []
    },
    clear() {
      young = new Map()
      old = new Map()
    },
    size: () => [old, young].reduce((sum, all) => [...all.values()].reduce((n, some) => n + some.size, sum), 0),
  }
}
