// The process: settings in, a running server out, one clear line when that cannot be.

import { startApp } from './app.ts'
import { ensureFirstOrganization } from './apps/create.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { explain } from './explain-failure.ts'
import { keepFirstKeys, printFirstKeys } from './first-keys.ts'
import { systemClock } from './lib/clock.ts'
import { createLog } from './lib/log.ts'
import { openDatabase, refuseUnsafe } from './open-database.ts'
import { ensureSecretKey } from './secret-key.ts'
import { createPool } from './storage/db.ts'
import { migrate } from './storage/migrate.ts'

const startedMs = performance.now()

async function start(config: Config) {
  const clock = systemClock()
  const log = createLog(config.logLevel)
  const database = await openDatabase(config, log)
  try {
    await ensureSecretKey(config)
    await migrate(database.connection, clock.now())
    const db = createPool({ connection: database.connection, clock, size: 1 })
    try {
      await refuseUnsafe(db, config)
      const first = await ensureFirstOrganization({ db, clock }, config)
      if (first) {
        await keepFirstKeys(config.dataDir, first)
        printFirstKeys(config, first)
      }
    } finally {
      await db.close()
    }
    const app = await startApp({ config, connection: database.connection, clock, log, nodeId: database.nodeId })
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
    console.log(app.address ? `Carillon listens on ${readable(app.address)} (ready in ${seconds} s)` : 'Carillon works')
    return async () => {
      await app.close()
      await database.close()
    }
  } catch (error) {
    await database.close()
    throw error
  }
}

const readable = (address: string) => address.replace('//0.0.0.0:', '//localhost:').replace('//[::]:', '//localhost:')

/** The first signal stops cleanly; a second one is somebody who will not wait. */
function stopOnSignal(stop: () => Promise<void>) {
  let isStopping = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (isStopping) process.exit(1)
    isStopping = true
    console.log(`${signal === 'SIGINT' ? '\n' : ''}Stopping: finishing what is under way …`)
    stop().then(
      () => process.exit(0),
      (error) => fail(error),
    )
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  process.on('SIGHUP', onSignal)
}

function fail(error: unknown): never {
  console.error(`Carillon cannot start: ${explain(error)}`)
  process.exit(1)
}

try {
  const { config, rest } = readConfig(process.env, process.argv.slice(2))
  if (rest.length > 0) throw new ConfigError(`"${rest[0]}" is not a setting; see docs/settings.md`)
  stopOnSignal(await start(config))
} catch (error) {
  fail(error)
}
