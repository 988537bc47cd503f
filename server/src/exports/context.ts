// What the operations on exports depend on, assembled once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { createQueue, type Queue } from '../queue/enqueue.ts'
import type { SegmentsContext } from '../segments/context.ts'
import type { Db } from '../storage/db.ts'

export type ExportsContext = {
  db: Db
  now: () => Date
  newId: NewId
  queue: Queue
  segments: SegmentsContext
  /** Where files are downloaded: PUBLIC_URL, or the server's own address. */
  baseUrl: () => string
}

export const createExportsContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  segments: SegmentsContext
  baseUrl: () => string
}): ExportsContext => ({
  db: parts.db,
  now: parts.clock.now,
  newId: parts.newId,
  queue: createQueue(parts),
  segments: parts.segments,
  baseUrl: parts.baseUrl,
})
