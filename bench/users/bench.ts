// Users: create, update, view identity, alias update, each against a bare Fastify route with the same body and answer,
// in the same run, by the same load tool, interleaved, median of the rounds; at 10 thousand users and again at 1 million.

import type pg from 'pg'
import { createLog } from '../../server/src/lib/log.ts'
import { connectEmbedded } from '../../server/src/storage/embedded/attach.ts'
import type { Load, LoadResult } from '../kit/load.ts'
import {
  type Carillon,
  headersOf,
  residentMb,
  type Server,
  startBare,
  startCarillon,
  startLoadTool,
} from '../kit/processes.ts'
import { median, type Row, readOptions, report, round } from '../kit/report.ts'
import { seedUsers, settle } from '../kit/seed.ts'

const options = readOptions({ rounds: 5, seconds: 3, small: 10_000, large: 1_000_000 })

type Operation = Pick<Load, 'method' | 'path' | 'body'> & { name: string; goal: number | null; isNew: boolean }

const operationsOf = ({ appId }: Carillon): Operation[] => {
  const seeded = `/apps/${appId}/users/by/external_id/seed-{n}`
  return [
    {
      name: 'create user',
      goal: 0.5,
      method: 'POST',
      path: `/apps/${appId}/users`,
      isNew: true,
      body: JSON.stringify({
        identity: { external_id: 'made-{n}' },
        properties: { tags: { plan: 'free' }, language: 'en' },
        subscriptions: [{ type: 'Email', token: 'made-{n}@example.com' }],
      }),
    },
    {
      name: 'update user',
      goal: null,
      method: 'PATCH',
      path: seeded,
      isNew: false,
      body: JSON.stringify({ properties: { tags: { level: '{n}' } } }),
    },
    { name: 'view identity', goal: 0.6, method: 'GET', path: `${seeded}/identity`, isNew: false },
    {
      name: 'alias update',
      goal: null,
      method: 'PATCH',
      path: `${seeded}/identity`,
      isNew: false,
      body: JSON.stringify({ identity: { crm: 'crm-{n}' } }),
    },
  ]
}

/** One answer of each operation, for the bare routes to give. */
async function sampleAnswers(carillon: Carillon, operations: Operation[]) {
  const answers = []
  for (const { method, path, body } of operations) {
    const response = await fetch(`${carillon.url}${path.replace('{n}', '1')}`, {
      method,
      headers: headersOf(carillon),
      ...(body !== undefined && { body: body.replaceAll('{n}', '1') }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    answers.push(await response.json())
  }
  const [create, update, identity, alias] = answers
  return { create, update, identity, alias }
}

const carillon = await startCarillon()
const tool = startLoadTool()
let bare: Server | undefined
let made = 1_000
try {
  const database = await connectEmbedded({ dataDir: carillon.dataDir, log: createLog('warn') })
  const operations = operationsOf(carillon)
  await seedUsers(database.connection, carillon.appId, 0, options.small)
  bare = await startBare(await sampleAnswers(carillon, operations))
  const small = await measure(database.connection, operations, [64, 512], options.small)
  console.log(`\nseeding ${options.large} users …`)
  await seedUsers(database.connection, carillon.appId, options.small, options.large)
  const large = await measure(database.connection, operations, [64], options.large)
  await database.close()

  const flat = large.map((row): Row => {
    const before = small.find(({ name, connections }) => name === row.name && connections === row.connections) as Row
    return {
      name: `${row.name}: ${options.large} users against ${options.small}`,
      ratio: round((row.ratio as number) / (before.ratio as number)),
      goal: 0.8,
      connections: row.connections as number,
    }
  })
  const memory = residentMb(carillon.pid)
  const rss: Row = {
    name: 'memory of the Node process: 250 MB against it',
    ratio: round(250 / memory),
    goal: 1,
    rssMb: memory,
  }
  await report(
    [...small, ...large.map((row) => ({ ...row, name: `${row.name}, ${options.large} users` })), ...flat, rss],
    options.json,
  )
} finally {
  tool.stop()
  await bare?.stop()
  await carillon.stop()
}

async function runOurs(operation: Operation, connections: number, users: number): Promise<LoadResult> {
  const result = await tool.run(loadOf(operation, carillon, connections, users))
  if (result.failed > 0) throw new Error(`${operation.name}: ${result.failed} requests failed`)
  if (operation.isNew) made = result.sent
  return result
}

async function measure(
  connection: pg.ClientConfig,
  operations: Operation[],
  connections: number[],
  users: number,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const operation of operations)
    for (const count of connections) {
      // What an operation leaves behind (dead rows, dirty pages) must not be cleaned up at the cost of the next one.
      await settle(connection)
      await tool.run(loadOf(operation, bare as Server, count, users))
      await runOurs(operation, count, users)
      const ours: LoadResult[] = []
      const theirs: LoadResult[] = []
      for (let round = 0; round < options.rounds; round++) {
        theirs.push(await tool.run(loadOf(operation, bare as Server, count, users)))
        ours.push(await runOurs(operation, count, users))
      }
      const rate = median(ours.map((it) => it.perSecond))
      rows.push({
        name: operation.name,
        ratio: round(median(ours.map((it, i) => it.perSecond / (theirs[i] as LoadResult).perSecond))),
        goal: count === 64 ? operation.goal : null,
        connections: count,
        perSecond: Math.round(rate),
        barePerSecond: Math.round(median(theirs.map((it) => it.perSecond))),
        p50Ms: median(ours.map((it) => it.p50Ms)),
        p99Ms: median(ours.map((it) => it.p99Ms)),
        bareP99Ms: median(theirs.map((it) => it.p99Ms)),
      })
      console.log(JSON.stringify(rows.at(-1)))
    }
  return rows
}

function loadOf({ method, path, body, isNew }: Operation, server: Server, connections: number, users: number): Load {
  return {
    url: server.url,
    connections,
    seconds: options.seconds,
    method,
    path,
    headers: headersOf(carillon),
    ...(body !== undefined && { body }),
    ...(isNew ? { from: made } : { below: users }),
  }
}
