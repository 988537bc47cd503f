// Records when keys were last used. Gathered in memory and written for all keys at once, so that requests do not pay
// for it.

import type { KeyId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/db.ts'
import { upsertKeyUsage } from './store.ts'

export type KeyUsage = {
  record(keyId: KeyId, at: Date): void
  /** Writes what was recorded. If that fails, the entries are kept for the next attempt. */
  flush(): Promise<void>
  close(): Promise<void>
}

const EVERY_MS = 60_000

export function createKeyUsage({ db, log }: { db: Db; log: Log }): KeyUsage {
  let uses = new Map<KeyId, Date>()

  function note(keyId: KeyId, at: Date) {
    const known = uses.get(keyId)
    if (!known || known < at) uses.set(keyId, at)
  }

  async function flush() {
    if (uses.size === 0) return
    const written = uses
    uses = new Map()
    try {
      await upsertKeyUsage(db, written)
    } catch (error) {
      log.debug({ reason: (error as Error).message }, 'last uses of keys not written')
      for (const [keyId, at] of written) note(keyId, at)
    }
  }

  const timer = setInterval(() => void flush(), EVERY_MS).unref()
  return {
    record: note,
    flush,
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}
