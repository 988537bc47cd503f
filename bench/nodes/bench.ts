// Two API nodes on one PostgreSQL against one, on the same cores and with the same load: users created, and what PostgreSQL
// takes for each. With limits, and with LIMITS=off, which shows what the second process itself costs.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createLog } from '../../server/src/lib/log.ts'
import { startEmbedded } from '../../server/src/storage/embedded.ts'
import { cpuSeconds, postgresCpuSeconds } from '../kit/cpu.ts'
import { headersOf, type Server, startLoadTool, startServer } from '../kit/processes.ts'
import { median, type Row, readOptions, report, round } from '../kit/report.ts'
import { settle } from '../kit/seed.ts'

const options = readOptions({ rounds: 3, seconds: 8, warm: 4, connections: 64 })

type Measured = { perSecond: number; p99Ms: number; postgresMicroseconds: number; nodeMicroseconds: number }
type Keys = { appId: string; appKey: string }

const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'))
const postgres = await startEmbedded({ dataDir, log: createLog('warn') })
const { host, user, database } = postgres.connection
const url = `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host as string)}`
const tools = [startLoadTool(), startLoadTool()]
let made = 0
try {
  const keys = await firstKeys()
  const rows: Row[] = []
  for (const limits of ['default', 'off']) rows.push(...(await compare(keys, limits)))
  await report(rows, options.json)
} finally {
  for (const tool of tools) tool.stop()
  await postgres.stop()
  await rm(dataDir, { recursive: true })
}

function startNode(limits: string): Promise<Server> {
  return startServer({ DATA_DIR: dataDir, DATABASE_URL: url, ROLE: 'api', LIMITS: limits })
}

async function firstKeys(): Promise<Keys> {
  const node = await startNode('off')
  await node.stop()
  const { app_id: appId, app_key: appKey } = JSON.parse(await readFile(join(dataDir, 'first-keys.json'), 'utf8'))
  await query(`update apps set limits = '{"users.write": 1000000}' where id = $1`, [appId])
  return { appId, appKey }
}

async function query(text: string, values: unknown[] = []) {
  const client = new pg.Client(postgres.connection)
  await client.connect()
  await client.query(text, values).finally(() => client.end())
}

async function compare(keys: Keys, limits: string): Promise<Row[]> {
  const one: Measured[] = []
  const two: Measured[] = []
  for (let round = 0; round < options.rounds; round++) {
    // A node that starts a minute after the last has left finds itself alone.
    await query('delete from server_nodes')
    const nodes = [await startNode(limits)]
    await settle(postgres.connection)
    one.push(await measure(nodes, keys))
    nodes.push(await startNode(limits))
    await settle(postgres.connection)
    two.push(await measure(nodes, keys))
    await Promise.all(nodes.map((node) => node.stop()))
    console.log(JSON.stringify({ limits, one: one.at(-1), two: two.at(-1) }))
  }
  const of = (list: Measured[], name: keyof Measured) => median(list.map((it) => it[name]))
  const ratio = (name: keyof Measured) => round(median(two.map((it, i) => it[name] / (one[i] as Measured)[name])))
  const name = limits === 'off' ? 'LIMITS=off' : 'with limits'
  const hasGoal = limits !== 'off'
  return [
    {
      name: `create user, ${name}: two nodes against one`,
      ratio: ratio('perSecond'),
      goal: hasGoal ? 0.9 : null,
      perSecond: Math.round(of(two, 'perSecond')),
      onePerSecond: Math.round(of(one, 'perSecond')),
      p99Ms: of(two, 'p99Ms'),
      oneP99Ms: of(one, 'p99Ms'),
    },
    {
      name: `PostgreSQL for a user, ${name}: 1.2 times that of one against it`,
      ratio: round(1.2 / ratio('postgresMicroseconds')),
      goal: hasGoal ? 1 : null,
      microseconds: Math.round(of(two, 'postgresMicroseconds')),
      oneMicroseconds: Math.round(of(one, 'postgresMicroseconds')),
      nodeMicroseconds: Math.round(of(two, 'nodeMicroseconds')),
      oneNodeMicroseconds: Math.round(of(one, 'nodeMicroseconds')),
    },
  ]
}

/** Both load tools work in either case: on the same node, or each on its own. */
async function measure(nodes: Server[], keys: Keys): Promise<Measured> {
  await load(nodes, keys, options.warm)
  const before = taken(nodes)
  const results = await load(nodes, keys, options.seconds)
  const after = taken(nodes)
  const users = results.reduce((sum, { perSecond }) => sum + perSecond * options.seconds, 0)
  return {
    perSecond: results.reduce((sum, { perSecond }) => sum + perSecond, 0),
    p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
    postgresMicroseconds: ((after.postgres - before.postgres) / users) * 1e6,
    nodeMicroseconds: ((after.nodes - before.nodes) / users) * 1e6,
  }
}

function taken(nodes: Server[]) {
  return {
    postgres: postgresCpuSeconds(dataDir),
    nodes: nodes.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
  }
}

/** From here on nobody else has taken any. */
function newNumbers(): number {
  made += 1_000_000
  return made
}

async function load(nodes: Server[], keys: Keys, seconds: number) {
  const results = await Promise.all(
    tools.map((tool, i) =>
      tool.run({
        url: (nodes[i % nodes.length] as Server).url,
        connections: options.connections / tools.length,
        seconds,
        method: 'POST',
        path: `/apps/${keys.appId}/users`,
        headers: headersOf(keys),
        from: newNumbers(),
        body: JSON.stringify({
          identity: { external_id: 'made-{n}' },
          properties: { tags: { plan: 'free' }, language: 'en' },
          subscriptions: [{ type: 'Email', token: 'made-{n}@example.com' }],
        }),
      }),
    ),
  )
  const failed = results.reduce((sum, result) => sum + result.failed, 0)
  if (failed > 0) throw new Error(`${failed} requests failed`)
  return results
}
