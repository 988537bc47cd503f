import type { AppId, Id } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'

export type JobId = Id<'job'>

/** Direct jobs never wait for a slot behind bulk jobs. */
export const lanes = ['direct', 'bulk'] as const
export type JobLane = (typeof lanes)[number]

/** Work to be done, identified by name and key. Enqueuing it twice makes one job, with the newer payload. */
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
  /** Aborted when the time limit is reached, when the lease is lost, or when the stopping server can wait no longer. */
  signal: AbortSignal
  /**
   * True when the server is about to stop: the handler must not begin anything new, and finishes what is in progress.
   */
  isStopping(): boolean
  /**
   * Inside a transaction, the answer true stays valid until the transaction ends: no other worker can take over the
   * job.
   */
  isStillHeld(db: Db): Promise<boolean>
  /** Resets the job's crash count: a job that makes progress is not what crashed its workers. */
  recordProgress(db: Db): Promise<void>
}

export type JobHandler = {
  /** May run again after an error or a crash, so everything it does must be safe to repeat. */
  run(work: JobRun): Promise<void>
  maxAttempts?: number
  timeLimitMs?: number
  /** What happens to a job after its last failed attempt: it is parked for an operator, or dropped. */
  whenExhausted?: 'park' | 'drop'
  /**
   * For jobs that wait for an external party: the beginning of the key that names the party. These jobs take none of
   * the slots of other jobs.
   */
  waitsFor?(key: string): string
  /** How many jobs, over all apps, may wait for the same party as this one. Without it, a low default applies. */
  maxWaiting?(key: string): number
}

export type JobHandlers = Readonly<Record<string, JobHandler>>
