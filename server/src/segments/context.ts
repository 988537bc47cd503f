// What the operations on segments are made of, put together once.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { SharedPool } from '../storage/shared-pool.ts'
import type { UserReader } from '../users/read.ts'

export type SegmentsContext = {
  db: Db
  /** For statements that look at all of an app's users: few connections, shared by all apps, and a minute for each statement. */
  counting: SharedPool
  now: () => Date
  newId: NewId
  /** Whom an alias names. */
  reader: UserReader
  /** Whether an active journey uses it. Asked in the transaction that changes it, behind its lock. */
  isUsed: (db: Db, appId: AppId, id: string) => Promise<boolean>
}

export function createSegmentsContext(parts: {
  db: Db
  counting: SharedPool
  clock: Clock
  newId: NewId
  reader: UserReader
  isUsed: SegmentsContext['isUsed']
}): SegmentsContext {
  const { db, counting, clock, newId, reader, isUsed } = parts
  return { db, counting, now: clock.now, newId, reader, isUsed }
}
