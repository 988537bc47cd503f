// What a finished attempt means for its job. Everything here counts only while the job is still this worker's.

import type { Clock } from '../lib/clock.ts'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type Db, sqlState } from '../storage/db.ts'
import type { ClaimedJob, JobHandler } from './job.ts'
import { MAX_ATTEMPTS, retryDelayMs } from './retry.ts'
import { errorText, Stopping } from './run.ts'
import { deleteFinished, parkFailed, rearmFinished, retryFailed, returnJob } from './store.ts'

export type SettleContext = { db: Db; clock: Clock; log: Log; random: () => number }

/** `again`: it was asked for once more while it ran. `lost`: another worker has it, nothing was changed. */
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
 * An outcome is kept while the database is away; forgotten, it would be counted as a crash. A transaction that the database gave
 * up for another's sake (a deadlock) changed nothing, and is made once more.
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
