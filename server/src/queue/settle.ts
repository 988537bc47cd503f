// What a finished attempt means for its job. Every change here applies only while this worker still holds the job.

import type { Clock } from '../lib/clock.ts'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type Db, sqlState } from '../storage/db.ts'
import type { ClaimedJob, JobHandler } from './job.ts'
import { MAX_ATTEMPTS, retryDelayMs } from './retry.ts'
import { errorText, Stopping } from './run.ts'
import { deleteFinished, parkFailed, rearmFinished, retryFailed, returnJob } from './store.ts'

export type SettleContext = { db: Db; clock: Clock; log: Log; random: () => number }

/** `again`: the job was enqueued once more while it ran. `lost`: another worker holds it, and nothing was changed. */
export type Settled = 'settled' | 'again' | 'lost'

export async function settle(
  { db, clock, log, random }: SettleContext,
  job: ClaimedJob,
  handler: JobHandler | undefined,
  failure: Error | undefined,
): Promise<Settled> {
  if (!failure) return finish(db, job)
  if (failure instanceof Stopping) return settledIf(await returnJob(db, job))
  const { maxAttempts = MAX_ATTEMPTS, whenExhausted = 'park' } = handler ?? {}
  const attempt = job.attempts + 1
  const about = { job: job.name, appId: job.appId, id: job.id, attempt, reason: failure.message }
  if (attempt < maxAttempts) {
    log.warn(about, 'job failed')
    const runAt = new Date(clock.now().getTime() + retryDelayMs(attempt, random))
    return settledIf(await retryFailed(db, job, runAt, errorText(failure)))
  }
  log.error({ ...about, stack: failure.stack, alarm: true }, `Job failed its last attempt; action: ${whenExhausted}`)
  if (whenExhausted === 'drop') return finish(db, job)
  return settledIf(await parkFailed(db, job, clock.now(), errorText(failure)))
}

const settledIf = (isOurs: boolean): Settled => (isOurs ? 'settled' : 'lost')

async function finish(db: Db, job: ClaimedJob): Promise<Settled> {
  if (await deleteFinished(db, job)) return 'settled'
  return (await rearmFinished(db, job)) ? 'again' : 'lost'
}

const AGAIN_MS = 500

/**
 * Retries while the database is unreachable: an outcome that is not recorded would be counted as a crash. A transaction
 * that the database rolled back to resolve a conflict (such as a deadlock) changed nothing, and is retried as well.
 */
export async function whenDatabaseIsBack<Result>(run: () => Promise<Result>, isOver: () => boolean): Promise<Result> {
  for (;;) {
    try {
      return await run()
    } catch (error) {
      const isAway = error instanceof AppError && error.kind === 'unavailable'
      const gaveWay = sqlState(error)?.startsWith('40') ?? false
      if (!(isAway || gaveWay) || isOver()) throw error
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }
}
