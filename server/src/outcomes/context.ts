// What the operations on outcomes depend on, assembled once.

import type { Clock } from '../lib/clock.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { createRecordMeasure, type RecordMeasure } from './record-measure.ts'

export type OutcomesContext = { db: Db; now: () => Date; recordMeasure: RecordMeasure }

export const createOutcomesContext = (parts: { db: Db; clock: Clock; merger: Merger }): OutcomesContext => ({
  db: parts.db,
  now: parts.clock.now,
  recordMeasure: createRecordMeasure(parts),
})
