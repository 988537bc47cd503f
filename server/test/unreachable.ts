import { createServer } from 'node:net'
import { startApp } from '../src/app.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLog } from '../src/lib/log.ts'
import { readConfig } from '../src/settings/config.ts'

/** A server whose database is not there. */
export const startUnreachable = async () =>
  startApp({
    config: { ...readConfig({ LIMITS: 'off', ROLE: 'api' }).config, host: '127.0.0.1', port: 0 },
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
