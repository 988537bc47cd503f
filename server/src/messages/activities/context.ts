// The dependencies of live activities, created once at startup.

import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../storage/db.ts'
import type { Merger } from '../../storage/merge.ts'
import type { UserReader } from '../../users/read.ts'
import type { MessagesContext } from '../context.ts'
import type { RecordReport } from '../feedback/record-reports.ts'
import { createRegisterToken, type RegisterToken } from './tokens.ts'

export type ActivitiesContext = {
  db: Db
  reader: UserReader
  register: RegisterToken
  messages: MessagesContext
  recordFeedback: RecordReport
}

export const createActivitiesContext = (parts: {
  db: Db
  clock: Clock
  merger: Merger
  reader: UserReader
  messages: MessagesContext
  recordFeedback: RecordReport
}): ActivitiesContext => ({
  db: parts.db,
  reader: parts.reader,
  register: createRegisterToken(parts),
  messages: parts.messages,
  recordFeedback: parts.recordFeedback,
})
