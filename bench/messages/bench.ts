// Messages: how fast they are accepted, become deliveries, and reach a provider.

import pg from 'pg'
import { createLog } from '../../server/src/lib/log.ts'
import { connectEmbedded } from '../../server/src/storage/embedded/attach.ts'
import { type Carillon, startCarillon } from '../kit/processes.ts'
import { type Row, readOptions, report } from '../kit/report.ts'
import { IOS, seedUsers, settle } from '../kit/seed.ts'
import { measureCreate, operationsOf } from './create.ts'
import { measureExpansion } from './expand.ts'
import { measureWholePath, prepareApp, startSink } from './whole-path.ts'

const options = readOptions({ rounds: 5, seconds: 3, recipients: 1_000_000, idle: 30 })

/** A server with an audience of devices, and a way to its database. */
async function withServer<Result>(
  settings: Record<string, string>,
  run: (carillon: Carillon, connection: pg.ClientConfig) => Promise<Result>,
): Promise<Result> {
  const carillon = await startCarillon(settings)
  try {
    const database = await connectEmbedded({ dataDir: carillon.dataDir, log: createLog('warn') })
    console.log(`\nseeding ${options.recipients} users …`)
    await seedUsers(database.connection, carillon.appId, 0, options.recipients, IOS)
    await settle(database.connection)
    const result = await run(carillon, database.connection)
    await database.close()
    return result
  } finally {
    await carillon.stop()
  }
}

/** Some that can be named. */
async function sampleRecipients(connection: pg.ClientConfig, appId: string) {
  const client = new pg.Client(connection)
  await client.connect()
  const { rows } = await client.query(
    `select s.id, a.value from subscriptions s
     join aliases a on a.app_id = s.app_id and a.user_id = s.user_id and a.label = 'external_id'
     where s.app_id = $1 limit 10000`,
    [appId],
  )
  await client.end()
  return { subscriptions: rows.map(({ id }) => id as string), users: rows.map(({ value }) => value as string) }
}

// Messages pile up here: what becomes of them would take the cores from who accepts them.
const apart = await withServer({ ROLE: 'api' }, async (carillon, connection): Promise<Row[]> => {
  const { subscriptions, users } = await sampleRecipients(connection, carillon.appId)
  const created = await measureCreate(carillon, connection, operationsOf(carillon, subscriptions, users), options)
  return [...created, await measureExpansion(carillon, connection, options)]
})

const sink = await startSink()
try {
  const whole = await withServer(sink.settings, async (carillon, connection) => {
    await prepareApp(carillon)
    const { subscriptions } = await sampleRecipients(connection, carillon.appId)
    return measureWholePath(carillon, sink, subscriptions, { ...options, idleSeconds: options.idle })
  })
  await report([...apart, ...whole], options.json)
} finally {
  sink.stop()
}
