// The thread of one dry run: a connection and a snapshot of its own, gone with the thread.

import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { AppError, TookTooLong } from '../../lib/errors.ts'
import { createPool, type PoolOptions } from '../../storage/db.ts'
import type { Order } from './options.ts'
import type { Report } from './report.ts'
import { rehearse } from './run-simulation.ts'
import { allowThinking, takeTurn } from './store.ts'

export type Task = { connection: PoolOptions['connection']; order: Order }
export type Outcome = { kind: 'done'; report: Report } | { kind: 'busy' | 'too long' | 'unavailable' }

const STATEMENT_MS = 60_000
/** Of 19: the server's own work goes first. */
const NICENESS = 10

// Only on Linux a thread has a priority of its own; elsewhere this would slow down the whole server.
if (process.platform === 'linux') setPriority(NICENESS)

async function run({ connection, order }: Task): Promise<Outcome> {
  const pool = createPool({ connection, size: 1, statementTimeoutMs: STATEMENT_MS })
  try {
    return await pool.snapshot(async (db): Promise<Outcome> => {
      if (!(await takeTurn(db, order.appId))) return { kind: 'busy' }
      await allowThinking(db)
      return { kind: 'done', report: await rehearse(db, order) }
    })
  } catch (error) {
    if (error instanceof TookTooLong) return { kind: 'too long' }
    if (error instanceof AppError && error.kind === 'unavailable') return { kind: 'unavailable' }
    throw error
  } finally {
    await pool.close()
  }
}

parentPort?.postMessage(await run(workerData as Task))
