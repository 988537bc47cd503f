// What the operations on events are made of, put together once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { Reader } from '../users/read.ts'
import { createInsert, type Insert } from './insert-merged.ts'
import { createMonths, type Months } from './months.ts'

export type EventsContext = {
  db: Db
  newId: NewId
  now: () => Date
  /** Of users. */
  reader: Reader
  months: Months
  insert: Insert
}

export type EventsParts = {
  db: Db
  clock: Clock
  merger: Merger
  newId: NewId
  reader: Reader
  retentionDays: number
}

export function createEventsContext(parts: EventsParts): EventsContext {
  const { db, clock, newId, reader } = parts
  const months = createMonths(parts)
  return { db, newId, now: clock.now, reader, months, insert: createInsert({ ...parts, months }) }
}
