// The thread of one dry run: a connection and a snapshot of its own, gone with the thread.

import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { AppError, TookTooLong } from '../../lib/errors.ts'
import { createPool, type PoolOptions } from '../../storage/db.ts'
import type { SimulationOptions } from './options.ts'
import type { SimulationReport } from './report.ts'
import { runSimulation } from './run-simulation.ts'
import { allowLongIdle, tryLockSimulation } from './store.ts'

export type SimulationTask = { connection: PoolOptions['connection']; order: SimulationOptions }
export type SimulationOutcome =
  | { kind: 'done'; report: SimulationReport }
  | { kind: 'busy' | 'too long' | 'unavailable' }

const STATEMENT_MS = 60_000
/** Of 19: the server's own work goes first. */
const NICENESS = 10

// Only on Linux a thread has a priority of its own; elsewhere this would slow down the whole server.
if (process.platform === 'linux') setPriority(NICENESS)

async function run({ connection, order }: SimulationTask): Promise<SimulationOutcome> {
  const pool = createPool({ connection, size: 1, statementTimeoutMs: STATEMENT_MS })
  try {
    return await pool.snapshot(async (db): Promise<SimulationOutcome> => {
      if (!(await tryLockSimulation(db, order.appId))) return { kind: 'busy' }
      await allowLongIdle(db)
      return { kind: 'done', report: await runSimulation(db, order) }
    })
  } catch (error) {
    if (error instanceof TookTooLong) return { kind: 'too long' }
    if (error instanceof AppError && error.kind === 'unavailable') return { kind: 'unavailable' }
    throw error
  } finally {
    await pool.close()
  }
}

parentPort?.postMessage(await run(workerData as SimulationTask))
