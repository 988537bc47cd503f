// What the reports depend on, assembled once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { createQueue, type Queue } from '../queue/enqueue.ts'
import type { SegmentsContext } from '../segments/context.ts'
import type { Db } from '../storage/db.ts'
import type { UserReader } from '../users/read.ts'

export type ReportsContext = {
  db: Db
  clock: Clock
  now: () => Date
  newId: NewId
  queue: Queue
  segments: SegmentsContext
  /** Finds users. */
  reader: UserReader
}

export const createReportsContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  segments: SegmentsContext
  reader: UserReader
}): ReportsContext => ({
  db: parts.db,
  clock: parts.clock,
  now: parts.clock.now,
  newId: parts.newId,
  queue: createQueue(parts),
  segments: parts.segments,
  reader: parts.reader,
})
