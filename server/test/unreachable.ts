import { createServer } from 'node:net'
import { startApp } from '../src/app.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLog } from '../src/lib/log.ts'
import { readConfig } from '../src/settings/config.ts'

/** A server whose database is not there. */
export const startUnreachable = async () =>
  startApp({
    config: {
      port: 0,
      host: '127.0.0.1',
      limits: 'off',
      role: 'api',
      trustProxy: false,
      metricsToken: undefined,
      requestBodyMb: 32,
      publicUrl: undefined,
      eventRetentionDays: 400,
      providers: readConfig({}).config.providers,
      deliveryRetentionDays: 400,
      maxInFlight: 200,
      renderProcesses: undefined,
      databaseUrl: undefined,
      drainSeconds: 0,
      databaseConnections: undefined,
      countingConnections: 3,
      audienceConnections: 3,
      journeyMinWaitSeconds: 60,
      inboxProviders: undefined,
      mailListen: undefined,
      emailAttachmentsMb: 0,
      defaultPlan: 'paid',
    },
    connection: { host: '127.0.0.1', port: await closedPort(), user: 'nobody', database: 'none' },
    secretKey: 'the secret key of the tests',
    clock: systemClock(),
    log: createLog('silent'),
  })

/** A port of loopback at which nobody listens. */
function closedPort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
