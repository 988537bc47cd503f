// Looks up keys and what is known of their apps. Every request needs this, so answers come from memory, at most 4 s
// old.

import { timingSafeEqual } from 'node:crypto'
import type { AppGate, KeyLookup, KeyRecord } from '../../http/route.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AppId, KeyId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { Listener } from '../../storage/listen.ts'
import { findAppGate, KEYS_CHANNEL } from '../store.ts'
import { findKeysByHash, type KeyRow } from './store.ts'

export type KeyLookupContext = {
  db: Db
  clock: Clock
  listener: Pick<Listener, 'on'>
  /** Called whenever a key is loaded, which for a key in use happens every 4 s. */
  recordUse?: (keyId: KeyId, at: Date) => void
}

/**
 * Even with the longest statement on top, this stays within the 5 s in which a revoked key must stop working
 * everywhere.
 */
const MAX_AGE_MS = 4_000
const MAX_ENTRIES = 10_000
/**
 * Concurrent queries for keys. While they run, further keys gather, so that a flood of wrong keys costs few queries.
 */
const SLOTS = 2

export function createKeyLookup({ db, clock, listener, recordUse: noteUse }: KeyLookupContext): KeyLookup {
  const keys = createCache<KeyEntry>(clock)
  const apps = createCache<AppGate>(clock)
  const loadKey = createGatherer((hashes: Buffer[]) => findKeysByHash(db, hashes))

  listener.on(
    KEYS_CHANNEL,
    (payload) => {
      const [what, id] = payload.split(' ')
      if (what === 'key') keys.forget((entry) => entry.record.keyId === id)
      else if (what === 'app') apps.forget((app) => app.id === id)
      else forgetAll()
    },
    () => forgetAll(),
  )
  function forgetAll() {
    keys.forget(() => true)
    apps.forget(() => true)
  }

  return {
    find(hash) {
      // The hash of a guess says nothing about the hash of a key, so a lookup by hash leaks nothing; the comparison
      // guards against a lookup that returns another row.
      const found = keys.get(hash.toString('latin1'), async () => {
        const row = await loadKey(hash)
        if (row) noteUse?.(row.id, clock.now())
        return row && { hash: row.hash, record: recordOf(row) }
      })
      const checked = (entry: KeyEntry | undefined) =>
        entry && timingSafeEqual(entry.hash, hash) ? entry.record : undefined
      return found instanceof Promise ? found.then(checked) : checked(found)
    },
    findApp: (appId: AppId) => apps.get(appId, () => findAppGate(db, appId)),
  }
}

type KeyEntry = { hash: Buffer; record: KeyRecord }

const recordOf = ({ id, kind, organizationId, appId, permissions, ipAllowlist }: KeyRow): KeyRecord => ({
  keyId: id,
  kind,
  organizationId,
  appId,
  permissions,
  ipAllowlist,
})

type KeyCache<Value> = {
  get(name: string, load: () => Promise<Value | undefined>): Promise<Value | undefined> | Value | undefined
  forget(which: (value: Value) => boolean): void
}

/**
 * Caches what was found, for a while. What was not found is never cached, so that a new key works at once. Concurrent
 * callers for the same entry share one load.
 */
function createCache<Value extends object>(clock: Clock): KeyCache<Value> {
  const entries = new Map<string, { value: Value; askedMs: number }>()
  const loading = new Map<string, Promise<Value | undefined>>()
  let changes = 0

  function load(name: string, ask: () => Promise<Value | undefined>): Promise<Value | undefined> {
    // An entry is as old as the query, not as its answer: the row may change while the answer travels.
    const askedMs = clock.leaseMs()
    const changesBefore = changes
    const promise = ask()
      .then((value) => {
        // Something changed in the meantime, and this may be the state before it: good enough for the caller, too old
        // to keep.
        if (value && changes === changesBefore) {
          entries.delete(name)
          if (entries.size >= MAX_ENTRIES) entries.delete(entries.keys().next().value as string)
          entries.set(name, { value, askedMs })
        }
        return value
      })
      .finally(() => {
        if (loading.get(name) === promise) loading.delete(name)
      })
    loading.set(name, promise)
    return promise
  }

  return {
    get(name, ask) {
      const entry = entries.get(name)
      if (entry) {
        const ageMs = clock.leaseMs() - entry.askedMs
        // A negative age means that the clock was set back, so the real age is unknown.
        if (ageMs >= 0 && ageMs < MAX_AGE_MS) return entry.value
        entries.delete(name)
      }
      return loading.get(name) ?? load(name, ask)
    },
    forget(which) {
      changes++
      loading.clear()
      for (const [name, { value }] of entries) if (which(value)) entries.delete(name)
    },
  }
}

/** Queries that arrive while all slots are busy go out together in the next one. */
function createGatherer(query: (hashes: Buffer[]) => Promise<KeyRow[]>): (hash: Buffer) => Promise<KeyRow | undefined> {
  type Waiting = { hash: Buffer; resolve: (row: KeyRow | undefined) => void; reject: (error: unknown) => void }
  let waiting: Waiting[] = []
  let busy = 0

  async function flush() {
    if (busy >= SLOTS || waiting.length === 0) return
    const batch = waiting
    waiting = []
    busy++
    try {
      const rows = await query(batch.map(({ hash }) => hash))
      const byHash = new Map(rows.map((row) => [row.hash.toString('latin1'), row]))
      for (const { hash, resolve } of batch) resolve(byHash.get(hash.toString('latin1')))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      busy--
      void flush()
    }
  }

  return (hash) =>
    new Promise((resolve, reject) => {
      waiting.push({ hash, resolve, reject })
      void flush()
    })
}
