import type { AppId, UserId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'

/**
 * Other domains hold rows of users as well. This job runs once for each deleted user and deletes those: see
 * composition/jobs.ts.
 */
export const USER_DELETED_JOB = 'users.forget'

/** Leaves time for statements that found the user before its deletion to end; each takes seconds at most. */
const DELAY_MS = 60_000

export const userDeletedJobs = (appId: AppId, ids: readonly UserId[], now: Date): NewJob[] =>
  ids.map((id) => ({ appId, name: USER_DELETED_JOB, key: id, runAt: new Date(now.getTime() + DELAY_MS) }))
