// Journeys: how fast users enter them and move on, how soon an event brings a message, and what it takes to wait.

import pg from 'pg'
import { type Row, readOptions, report } from '../kit/report.ts'
import { IOS } from '../kit/seed.ts'
import { withServer } from '../kit/with-server.ts'
import { prepareApp, raiseLimit, startSink } from '../messages/whole-path.ts'
import { discard, measureActivation } from './activate.ts'
import { measureSends, measureWaits, WAITS } from './advance.ts'
import { IDLE_PER_SECOND, measureEvents, WARM_UP_SECONDS } from './events.ts'
import { measureIdle } from './idle.ts'
import { measureSimulation } from './simulate.ts'

const options = readOptions({
  runs: 1_000_000,
  rounds: 3,
  eventsPerSecond: 1_000,
  seconds: 20,
  idle: 30,
  users: 100_000,
})
const { runs, rounds, eventsPerSecond, seconds, idle } = options
const rows: Row[] = []
const add = (...more: Row[]) => {
  rows.push(...more)
  for (const row of more) console.log(JSON.stringify(row))
}

async function withClient<Result>(connection: pg.ClientConfig, run: (client: pg.Client) => Promise<Result>) {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}

const measureRuns = () =>
  withServer({ settings: {}, users: runs, seed: IOS }, (carillon, connection) =>
    withClient(connection, async (client) => {
      await raiseLimit(carillon)
      const bench = { carillon, connection, client, runs }
      const { row, journey } = await measureActivation(carillon, client, WAITS, options)
      add(row)
      add(await measureIdle(carillon, connection, { runs, seconds: idle }))
      add(...(await measureWaits(bench, journey, rounds)))
      await discard(carillon, client, journey)
      add(...(await measureSends(bench)))
    }),
  )

async function measureArrivals() {
  const sink = await startSink('device')
  try {
    const events = IDLE_PER_SECOND * idle + eventsPerSecond * (WARM_UP_SECONDS + seconds)
    await withServer({ settings: sink.settings, users: events, seed: IOS }, (carillon, connection) =>
      withClient(connection, async (client) => {
        await prepareApp(carillon)
        const load = { perSecond: eventsPerSecond, seconds, idleSeconds: idle }
        add(await measureEvents(carillon, connection, client, sink, load))
      }),
    )
  } finally {
    sink.stop()
  }
}

const measureDryRuns = () =>
  withServer({ settings: {}, users: options.users }, async (carillon, connection) => {
    add(...(await measureSimulation(carillon, connection, { users: options.users, rounds, seconds: 5 })))
  })

// Of which there are none is left out.
if (runs > 0) await measureRuns()
if (eventsPerSecond > 0) await measureArrivals()
if (options.users > 0) await measureDryRuns()

await report(rows, options.json)
