// The dependencies of the operations on users, built once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { type ChangeUsers, createChangeUsers } from './change.ts'
import { type ConcealTiming, createConcealTiming } from './devices/conceal-timing.ts'
import { createInsertNewUser, type InsertNewUser } from './insert-new-users.ts'
import { createFindLimitSubjects, type FindLimitSubjects } from './limit-subjects.ts'
import { createUserReader, type UserReader } from './read.ts'

export type UsersContext = {
  db: Db
  newId: NewId
  now: () => Date
  change: ChangeUsers
  insertNewUser: InsertNewUser
  reader: UserReader
  findSubjects: FindLimitSubjects
  concealTiming: ConcealTiming
}

export function createUsersContext(parts: { db: Db; clock: Clock; merger: Merger; newId: NewId }): UsersContext {
  const reader = createUserReader(parts)
  return {
    db: parts.db,
    newId: parts.newId,
    now: parts.clock.now,
    change: createChangeUsers(parts),
    insertNewUser: createInsertNewUser(parts),
    reader,
    findSubjects: createFindLimitSubjects(reader, parts.clock),
    concealTiming: createConcealTiming(parts.clock),
  }
}
