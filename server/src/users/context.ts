// What the operations on users are made of, put together once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { type Change, createChange } from './change.ts'
import { type ConcealTiming, createConcealTiming } from './devices/conceal-timing.ts'
import { createInsertFresh, type InsertFresh } from './insert-new-users.ts'
import { createFindSubjects, type FindSubjects } from './limit-subjects.ts'
import { createReader, type Reader } from './read.ts'

export type UsersContext = {
  db: Db
  newId: NewId
  now: () => Date
  change: Change
  insertFresh: InsertFresh
  reader: Reader
  findSubjects: FindSubjects
  concealTiming: ConcealTiming
}

export function createUsersContext(parts: { db: Db; clock: Clock; merger: Merger; newId: NewId }): UsersContext {
  const reader = createReader(parts)
  return {
    db: parts.db,
    newId: parts.newId,
    now: parts.clock.now,
    change: createChange(parts),
    insertFresh: createInsertFresh(parts),
    reader,
    findSubjects: createFindSubjects(reader, parts.clock),
    concealTiming: createConcealTiming(parts.clock),
  }
}
