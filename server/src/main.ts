// The server process: reads the settings, starts the server, and prints one clear line when it cannot.

import { once } from 'node:events'
import { createServer } from 'node:net'
import { startApp } from './app.ts'
import { configureNewWith } from './apps/configure.ts'
import { type CreateAppContext, ensureFirstOrganization } from './apps/create.ts'
import { fillWithStandIns, findStandIns } from './apps/stand-ins.ts'
import { hasOrganization } from './apps/store.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { createLog, type Log } from './lib/log.ts'
import { reachableAddress } from './lib/own-address.ts'
import { defaultLogFormat, prettyDestination } from './lib/pretty-log.ts'
import { type SecretBox, secretBox } from './lib/secrets.ts'
import { VERSION } from './lib/version.ts'
import { explain } from './process/explain-failure.ts'
import { keepFirstKeys, printFirstKeys } from './process/first-keys.ts'
import { checkConnections, openDatabase, refuseUnsafe } from './process/open-database.ts'
import { refuseUnreadableSecrets } from './process/refuse-unreadable-secrets.ts'
import { ensureSecretKey } from './process/secret-key.ts'
import { guardRestore } from './sending/restore-guard.ts'
import { type Config, ConfigError, readConfig } from './settings/config.ts'
import { settingsHelp } from './settings/help.ts'
import type { SinkBox } from './sink/box.ts'
import { createPool, type Db } from './storage/db.ts'
import { migrate } from './storage/migrate.ts'

const startedMs = performance.now()

/** How many domains can be added in a row without waiting for a key to be generated. */
const SPARE_RSA_KEYS = 4

/** A signal during the start ends it between two steps, and closes what was opened. */
async function start(config: Config, stopping: AbortSignal, box?: SinkBox): Promise<() => Promise<void>> {
  const clock = systemClock()
  const log = openLog(config)
  const database = await openDatabase(config, log)
  try {
    stopping.throwIfAborted()
    const db = createPool({ connection: database.connection, clock, size: 1 })
    const { secretKey, configureNew, first } = await prepare(db).finally(() => db.close())
    stopping.throwIfAborted()
    const { connection, nodeId, mayWrite } = database
    const app = await startApp({
      ...{ config, connection, secretKey, clock, log, nodeId, configureNew, mayWrite },
      spareRsaKeys: SPARE_RSA_KEYS,
    })
    const address = app.address && reachableAddress(app.address)
    if (address && config.publicUrl === undefined && !box) log.warn(unreachableFor(address))
    if (first) printFirstKeys(config, address, first)
    if (box) console.log(`Nothing leaves this machine: what is sent can be read at ${box.control}/deliveries`)
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
    console.log(`Carillon ${address ? `listens on ${address}` : 'works in the background'} (ready in ${seconds} s)`)
    return () => app.close().finally(() => database.close())
  } catch (error) {
    await database.close()
    throw error
  }

  async function prepare(db: Db) {
    await refuseUnsafe(db, config)
    await checkConnections(db, config, log)
    await migrate(database.connection, clock.now())
    await refuseUnreadableSecrets(db, config, clock.now(), log)
    await guardRestore(db, database.epoch, clock.now(), log)
    const secretKey = await ensureSecretKey(config)
    const configureNew = box && (await configureNewWith(secretBox(secretKey), box.newAppSettings(), box.smsSettings))
    stopping.throwIfAborted()
    if (!(await hasOrganization(db))) await refuseBusyPort(config)
    const first = await makeFirstKeys({ db, clock, configureNew, defaultPlan: config.defaultPlan }, config)
    await settleStandIns({ db, clock, secrets: secretBox(secretKey) }, log, box)
    return { secretKey, configureNew, first }
  }
}

/**
 * With stand-ins, every app without credentials gets those of the stand-ins. Without them, a warning names the apps
 * that still use them.
 */
async function settleStandIns(ctx: { db: Db; clock: Clock; secrets: SecretBox }, log: Log, box: SinkBox | undefined) {
  const { marks } = await import('./sink/app-settings.ts')
  if (box) {
    const filled = await fillWithStandIns(ctx, { push: box.newAppSettings(), sms: box.smsSettings, marks })
    if (filled > 0) log.info({ apps: filled }, 'Gave stand-in credentials to apps that had none')
    return
  }
  const left = await findStandIns(ctx, marks)
  if (left.length === 0) return
  const shown = left.slice(0, 5).map(({ name, providers }) => `${name} (${providers.join(', ')})`)
  log.warn(
    { apps: left.length },
    `Apps still use --sink credentials, so their messages reach nobody: ${shown.join('; ')}${left.length > shown.length ? '; …' : ''}`,
  )
}

function openLog({ logLevel, logFormat }: Config): Log {
  if ((logFormat ?? defaultLogFormat(process.stdout, process.stderr)) === 'json') return createLog(logLevel)
  const hasColour = process.stderr.isTTY === true && !process.env.NO_COLOR
  return createLog(
    logLevel,
    prettyDestination((text) => process.stderr.write(text), hasColour),
  )
}

/** Providers are stand-ins in this process: their settings replace those from the environment. */
async function startWithSink(stopping: AbortSignal): Promise<() => Promise<void>> {
  const { openSinkBox } = await import('./sink/box.ts')
  const box = await openSinkBox({ clock: systemClock() })
  try {
    const { config } = readConfig({ ...process.env, ...box.settings }, process.argv.slice(2))
    const stop = await start(config, stopping, box)
    return () => stop().finally(() => box.close())
  } catch (error) {
    await box.close()
    throw error
  }
}

/**
 * The keys are saved before the transaction commits: a crash in between leaves a file that the next start replaces,
 * never keys that nobody has seen.
 */
const makeFirstKeys = (ctx: CreateAppContext, config: Config) =>
  ctx.db.transaction(async (db) => {
    const first = await ensureFirstOrganization({ ...ctx, db }, config)
    if (first) await keepFirstKeys(config.dataDir, first)
    return first
  })

/**
 * Checked before the first keys are created: a start that fails because its port is in use must not be the only one
 * that showed the keys. Not checked otherwise, because callers of a server that restarts must not connect to a probe
 * that closes at once.
 */
async function refuseBusyPort({ role, port, host }: Config) {
  if (role === 'worker') return
  const probe = createServer().listen(port, host)
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

const unreachableFor = (address: string) =>
  `PUBLIC_URL is not set: links in messages and export URLs use ${address}, which others may not reach`

/** Ctrl-C under npm arrives twice at once, from the terminal and from npm; that counts as one signal. */
const SAME_SIGNAL_MS = 1_000

/** The first signal stops cleanly; a second one exits at once. */
function stopOnSignal(): AbortSignal {
  const stopping = new AbortController()
  let firstMs: number | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (firstMs === undefined) {
      firstMs = performance.now()
      console.log(`${signal === 'SIGINT' ? '\n' : ''}Stopping: finishing work in progress …`)
      stopping.abort()
    } else if (performance.now() - firstMs > SAME_SIGNAL_MS) process.exit(1)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
  return stopping.signal
}

/**
 * While an external database is unreachable, nothing else may keep the event loop alive, and Node would end the
 * process.
 */
async function untilAborted(stopping: AbortSignal) {
  const awake = setInterval(() => {}, 60_000)
  if (!stopping.aborted) await once(stopping, 'abort')
  clearInterval(awake)
}

// A closed terminal cannot be written to, and the server still has to stop cleanly.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
const asked = process.argv.slice(2)
if (asked.includes('--help') || asked.includes('-h')) {
  console.log(settingsHelp())
  process.exit(0)
}
if (asked.includes('--version')) {
  console.log(VERSION)
  process.exit(0)
}
const stopping = stopOnSignal()
let failed = 'cannot start'
try {
  const { config, rest } = readConfig(process.env, process.argv.slice(2))
  if (rest.length > 0) throw new ConfigError(`"${rest[0]}" is not a setting; see "npm start -- --help"`)
  const stop = config.sink ? await startWithSink(stopping) : await start(config, stopping)
  await untilAborted(stopping)
  failed = 'did not stop cleanly'
  await stop()
} catch (error) {
  if (error !== stopping.reason) {
    console.error(`Carillon ${failed}: ${explain(error)}`)
    process.exit(1)
  }
}
process.exit(0)
