// The server: the infrastructure, the API and the worker, started in this order and closed in reverse. Read this first.

import { type AppOptions, openInfrastructure } from './composition/infrastructure.ts'
import { startApi } from './composition/start-api.ts'
import { startWorker } from './composition/start-worker.ts'

export type RunningApp = {
  /** Where it listens; undefined for a worker. */
  address: string | undefined
  /** Where it takes in email; undefined where it does not. */
  mailPort: number | undefined
  /** Stop accepting, finish what is under way, give back what is leased. */
  close(): Promise<void>
}

export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { role } = options.config
  const resources = new AsyncDisposableStack()
  try {
    const infrastructure = openInfrastructure(options, resources)
    const api = role === 'worker' ? undefined : await startApi(infrastructure, resources)
    if (role !== 'api') startWorker(infrastructure, resources)
    return {
      address: api?.address,
      mailPort: api?.mailPort,
      async close() {
        // First of all, so that nobody is sent here any more while background work ends.
        api?.startDraining()
        await resources.disposeAsync()
      },
    }
  } catch (error) {
    await resources.disposeAsync()
    throw error
  }
}
