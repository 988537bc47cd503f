// Messages: how fast they are accepted, become deliveries, and reach a provider.

import pg from 'pg'
import { type Row, readOptions, report } from '../kit/report.ts'
import { IOS } from '../kit/seed.ts'
import { withServer } from '../kit/with-server.ts'
import { measureCreate, operationsOf } from './create.ts'
import { measureExpansion } from './expand.ts'
import { measureWholePath, prepareApp, startSink } from './whole-path.ts'

const options = readOptions({ rounds: 5, seconds: 3, recipients: 1_000_000, idle: 30 })
const devices = { users: options.recipients, seed: IOS }

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
const apart = await withServer(
  { settings: { ROLE: 'api' }, ...devices },
  async (carillon, connection): Promise<Row[]> => {
    const { subscriptions, users } = await sampleRecipients(connection, carillon.appId)
    const created = await measureCreate(carillon, connection, operationsOf(carillon, subscriptions, users), options)
    return [...created, await measureExpansion(carillon, connection, options)]
  },
)

const sink = await startSink()
try {
  const whole = await withServer({ settings: sink.settings, ...devices }, async (carillon, connection) => {
    await prepareApp(carillon)
    const { subscriptions } = await sampleRecipients(connection, carillon.appId)
    return measureWholePath(carillon, sink, subscriptions, { ...options, idleSeconds: options.idle })
  })
  await report([...apart, ...whole], options.json)
} finally {
  sink.stop()
}
