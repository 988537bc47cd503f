// What the operations on segments depend on, assembled once.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { SharedPool } from '../storage/shared-pool.ts'
import type { UserReader } from '../users/read.ts'

export type SegmentsContext = {
  db: Db
  /**
   * For statements that read all of an app's users: a few connections that all apps share, and one minute per
   * statement.
   */
  counting: SharedPool
  now: () => Date
  newId: NewId
  /** Finds the users that aliases refer to. */
  reader: UserReader
  /**
   * Whether an active journey uses the segment. Called in the transaction that changes the segment and holds its lock.
   */
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
