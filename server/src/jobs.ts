// Every background job of the server.

import type { Clock } from './lib/clock.ts'
import { forgetIdleCounters } from './limits/forget.ts'
import type { Handlers } from './queue/job.ts'
import type { Schedule } from './queue/schedule.ts'
import { indexTags } from './segments/index-tags.ts'
import type { Db } from './storage/db.ts'

export const allHandlers: Handlers = {}

export const allSchedules = ({ db, clock }: { db: Db; clock: Clock }): Schedule[] => [
  { name: 'limits.forget', everyMs: 60_000, run: () => forgetIdleCounters(db, clock.leaseMs()) },
  // A large table takes its time; ten indexes of an hour each are the most there can be.
  { name: 'segments.index-tags', everyMs: 600_000, timeLimitMs: 36_000_000, run: () => indexTags(db) },
]
