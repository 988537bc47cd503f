import type { AppId, UserId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'

/** Other domains hold rows of users as well. This job, one for each user that is gone, is how they hear of it: see jobs.ts. */
export const USER_DELETED_JOB = 'users.forget'

/** Time for statements to end that had found the user before it went; each takes seconds at most. */
const DELAY_MS = 60_000

export const userDeletedJobs = (appId: AppId, ids: readonly UserId[], now: Date): NewJob[] =>
  ids.map((id) => ({ appId, name: USER_DELETED_JOB, key: id, runAt: new Date(now.getTime() + DELAY_MS) }))
