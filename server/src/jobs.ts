// Every background job of the server.

import { forgetEventsOf, forgetOldKeys } from './events/forget.ts'
import { keepMonths } from './events/keep-months.ts'
import type { Clock } from './lib/clock.ts'
import { forgetIdleCounters } from './limits/forget.ts'
import type { Handlers } from './queue/job.ts'
import type { Schedule } from './queue/schedule.ts'
import { indexTags } from './segments/index-tags.ts'
import type { Db } from './storage/db.ts'
import { FORGET_USER } from './users/forget.ts'

export type JobsContext = { db: Db; clock: Clock; eventRetentionDays: number }

export const allHandlers = ({ db }: JobsContext): Handlers => ({
  [FORGET_USER]: { run: ({ job }) => forgetEventsOf(db, job.appId, job.key) },
})

export const allSchedules = ({ db, clock, eventRetentionDays }: JobsContext): Schedule[] => [
  { name: 'limits.forget', everyMs: 60_000, run: () => forgetIdleCounters(db, clock.leaseMs()) },
  { name: 'events.months', everyMs: 3_600_000, run: () => keepMonths(db, clock.now(), eventRetentionDays) },
  { name: 'events.keys', everyMs: 300_000, run: () => forgetOldKeys(db, clock.now()) },
  // A large table takes its time; ten indexes of an hour each are the most there can be.
  { name: 'segments.index-tags', everyMs: 600_000, timeLimitMs: 36_000_000, run: () => indexTags(db) },
]
