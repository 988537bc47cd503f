// A dry run, as it is asked for: in a thread of its own, for a limited time, and no longer than somebody waits for it.

import { Worker } from 'node:worker_threads'
import { AppError, unavailable } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db, PoolOptions } from '../../storage/db.ts'
import type { JourneyId } from '../journey.ts'
import { getJourney } from '../view.ts'
import { readSimulationOptions, type SimulationRequest } from './options.ts'
import type { SimulationReport } from './report.ts'
import type { SimulationOutcome, SimulationTask } from './thread.ts'

export type DryRunContext = {
  db: Db
  connection: PoolOptions['connection']
  threads: Set<Worker>
  patienceMs: number
}

/** No answer of the server takes longer. */
const PATIENCE_MS = 100_000
/** Of one server, whichever apps they are for. */
const MOST_THREADS = 2
const MEMORY_MB = 512

export const createDryRunContext = (parts: {
  db: Db
  connection: PoolOptions['connection']
  patienceMs?: number
}): DryRunContext => {
  const { db, connection, patienceMs = PATIENCE_MS } = parts
  return { db, connection, patienceMs, threads: new Set() }
}

/** When the server stops, nobody waits for an answer any more. */
export const endDryRuns = async ({ threads }: DryRunContext) => {
  await Promise.all([...threads].map((thread) => thread.terminate()))
}

export async function simulate(
  ctx: DryRunContext,
  appId: AppId,
  id: JourneyId,
  asked: SimulationRequest,
  { now, signal }: { now: Date; signal: AbortSignal },
): Promise<SimulationReport> {
  const order = readSimulationOptions(appId, await getJourney(ctx, appId, id), asked, now)
  if (ctx.threads.size >= MOST_THREADS)
    throw running('The server is busy with other dry runs. Try again when they are done.')
  const outcome = await runInThread(ctx, { connection: ctx.connection, order }, signal)
  switch (outcome.kind) {
    case 'done':
      return outcome.report
    case 'busy':
      throw running('A dry run of this app is under way. Try again when it is done.')
    case 'unavailable':
      throw unavailable()
    case 'too long':
      throw new AppError('invalid', {
        code: 'journey-simulation-too-long',
        title: 'The dry run took too long. Ask for a smaller sample or fewer days.',
      })
  }
}

const running = (title: string) => new AppError('conflict', { code: 'journey-simulation-running', title })

function runInThread(
  { threads, patienceMs }: DryRunContext,
  task: SimulationTask,
  signal: AbortSignal,
): Promise<SimulationOutcome> {
  const thread = new Worker(new URL('./thread.ts', import.meta.url), {
    workerData: task,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  })
  threads.add(thread)
  const { promise, resolve, reject } = Promise.withResolvers<SimulationOutcome>()
  const deadline = setTimeout(() => resolve({ kind: 'too long' }), patienceMs)
  const leave = () => resolve({ kind: 'too long' })
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  thread.once('message', resolve)
  thread.once('error', (error: NodeJS.ErrnoException) =>
    error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? resolve({ kind: 'too long' }) : reject(error),
  )
  // The server stops, or nothing was said.
  thread.once('exit', () => resolve({ kind: 'unavailable' }))
  return promise.finally(async () => {
    clearTimeout(deadline)
    signal.removeEventListener('abort', leave)
    await thread.terminate()
    threads.delete(thread)
  })
}
