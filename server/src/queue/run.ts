// One attempt at a job: runs the handler under its time limit and its abort signal.

import type { JobHandler, JobRun } from './job.ts'

const TIME_LIMIT_MS = 5 * 60_000

export class TimeLimit extends Error {}
export class LeaseLost extends Error {}
export class Stopping extends Error {}

export type JobAttempt = { handler: JobHandler | undefined; work: JobRun; abort: AbortController; unwindMs: number }

/** Returns the error, or undefined. A handler that ignores its signal is waited for no longer than `unwindMs`. */
export async function runAttempt({ handler, work, abort, unwindMs }: JobAttempt): Promise<Error | undefined> {
  // A newer node may know this name, so the job is retried before it is parked.
  if (!handler) return new Error(`no handler for ${work.job.name}`)
  const { timeLimitMs = TIME_LIMIT_MS } = handler
  const limit = setTimeout(() => abort.abort(new TimeLimit(`not done within ${timeLimitMs} ms`)), timeLimitMs)
  let unwinding: NodeJS.Timeout | undefined
  const aborted = new Promise<never>((_, reject) => {
    abort.signal.addEventListener('abort', () => {
      unwinding = setTimeout(reject, unwindMs, abort.signal.reason)
    })
  })
  try {
    await Promise.race([handler.run(work), aborted])
    return undefined
  } catch (error) {
    if (abort.signal.aborted) return abort.signal.reason
    return error instanceof Error ? error : new Error(String(error))
  } finally {
    clearTimeout(limit)
    clearTimeout(unwinding)
  }
}

/** The part of an error that is kept with the job, in text that PostgreSQL can store. */
export const errorText = (error: Error) =>
  `${error.name}: ${error.message}`.replaceAll('\0', '').slice(0, 2_000).toWellFormed()
