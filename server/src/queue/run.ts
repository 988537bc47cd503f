// One attempt at one job: the handler against its time limit and its signal.

import type { JobHandler, JobRun } from './job.ts'

const TIME_LIMIT_MS = 5 * 60_000

export class TimeLimit extends Error {}
export class LeaseLost extends Error {}
export class Stopping extends Error {}

export type JobAttempt = { handler: JobHandler | undefined; work: JobRun; abort: AbortController; unwindMs: number }

/** What went wrong, or undefined. A handler that does not listen to its signal is waited for `unwindMs`, no longer. */
export async function runAttempt({ handler, work, abort, unwindMs }: JobAttempt): Promise<Error | undefined> {
  // Perhaps a newer node knows this name, so it is tried again before it is parked.
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

/** As much of an error as is kept with the job, in text that PostgreSQL stores. */
export const errorText = (error: Error) =>
  `${error.name}: ${error.message}`.replaceAll('\0', '').slice(0, 2_000).toWellFormed()
