// Starts the server: the infrastructure, the API and the worker, in this order, and closes them in reverse. Read this
// first.

import { type AppOptions, openInfrastructure } from './composition/infrastructure.ts'
import { startApi } from './composition/start-api.ts'
import { startWorker } from './composition/start-worker.ts'

export type RunningApp = {
  /** The address that the server listens on; undefined for a worker. */
  address: string | undefined
  /** The port that receives email; undefined if there is none. */
  mailPort: number | undefined
  /** Stops accepting requests, finishes work in progress, and returns what is leased. */
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
        // Comes first, so that load balancers send no more requests here while background work ends.
        api?.startDraining()
        await resources.disposeAsync()
      },
    }
  } catch (error) {
    await resources.disposeAsync()
    throw error
  }
}
