import type { AppId, Id } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'

export type JobId = Id<'job'>

/** What goes by `direct` never waits for a slot behind what goes by `bulk`. */
export const lanes = ['direct', 'bulk'] as const
export type JobLane = (typeof lanes)[number]

/** Work to be done. Name and key say which work; asking for it twice is one job, with the newer payload. */
export type NewJob = { appId: AppId; name: string; key: string; payload?: unknown; runAt?: Date; lane?: JobLane }

export type Job = {
  appId: AppId
  id: JobId
  name: string
  key: string
  payload: unknown
  runAt: Date
  attempts: number
  crashes: number
}

export type ClaimedJob = Job & { fence: number; lane: JobLane }

export type ParkedJob = Job & { lastError: string | null; parkedAt: Date }

export type JobRun = {
  job: Job
  fence: number
  /** Aborted when the time limit or the lease has run out, or the server is stopping and can wait no longer. */
  signal: AbortSignal
  /** Nothing new is to be begun: the server is about to stop, and waits for what is under way. */
  isStopping(): boolean
  /** Inside a transaction a yes holds until its end: nobody can take the job over before. */
  isStillHeld(db: Db): Promise<boolean>
  /** It got something done, so that it is not what ended its workers before: those crashes are forgotten. */
  recordProgress(db: Db): Promise<void>
}

export type JobHandler = {
  /** May run again after an error or a crash: what it does must be harmless to repeat. */
  run(work: JobRun): Promise<void>
  maxAttempts?: number
  timeLimitMs?: number
  /** What becomes of a job that failed for the last time: kept for the operator, or given up. */
  whenExhausted?: 'park' | 'drop'
  /** Of one that waits for somebody outside: the beginning of its key that says for whom. It takes no slot of those who do not. */
  waitsFor?(key: string): string
  /** How many jobs of all apps may wait for the same as this one; not many unless it says so. */
  maxWaiting?(key: string): number
}

export type JobHandlers = Readonly<Record<string, JobHandler>>
