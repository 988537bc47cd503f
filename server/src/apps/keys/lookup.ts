// Which key is this, and what is known of its app? Asked by every request, so answered from memory, at most 4 s old.

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
  /** Told of a key when it is looked up, which for one in use happens every 4 s. */
  recordUse?: (keyId: KeyId, at: Date) => void
}

/** With the longest statement on top it stays within the 5 s in which a revoked key must be dead everywhere. */
const MAX_AGE_MS = 4_000
const MAX_ENTRIES = 10_000
/** Queries for keys at once. While they run, further keys gather: a flood of wrong keys is a few queries. */
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
      // The hash of a guess says nothing about the hash of a key, so finding it by lookup gives nothing away; the comparison
      // guards against a lookup that answers with another row.
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
 * What was found, for a while; what was not found is never kept, so a new key works at once. Callers who ask for the same
 * thing while it is being loaded share the load.
 */
function createCache<Value extends object>(clock: Clock): KeyCache<Value> {
  const entries = new Map<string, { value: Value; askedMs: number }>()
  const loading = new Map<string, Promise<Value | undefined>>()
  let changes = 0

  function load(name: string, ask: () => Promise<Value | undefined>): Promise<Value | undefined> {
    // As old as the question, not as the answer: the row may change while the answer travels.
    const askedMs = clock.leaseMs()
    const changesBefore = changes
    const promise = ask()
      .then((value) => {
        // Something changed meanwhile, and this may be how it was before: good for who asked, too old to keep.
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
        // Below zero: the clock was set back, and nobody knows how old it is.
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

/** Questions that come while all slots are busy travel together in the next query. */
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
