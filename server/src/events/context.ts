// The dependencies of the operations on events, built once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { UserReader } from '../users/read.ts'
import { createInsertEvents, type InsertEvents } from './insert-merged.ts'
import { createEventMonths, type EventMonths } from './months.ts'

export type EventsContext = {
  db: Db
  newId: NewId
  now: () => Date
  /** Reads users. */
  reader: UserReader
  months: EventMonths
  insert: InsertEvents
}

export type EventsParts = {
  db: Db
  clock: Clock
  merger: Merger
  newId: NewId
  reader: UserReader
  retentionDays: number
}

export function createEventsContext(parts: EventsParts): EventsContext {
  const { db, clock, newId, reader } = parts
  const months = createEventMonths(parts)
  return { db, newId, now: clock.now, reader, months, insert: createInsertEvents({ ...parts, months }) }
}
