import { Agent, request as httpRequest } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { urlOf } from '../command-line.ts'
import { emptyDatabase, type TestDatabase } from '../database.ts'
import { launch, printedKeys, type Server } from './launch.ts'

const databases: TestDatabase[] = []
afterEach(async () => {
  await Promise.all(databases.splice(0).map((database) => database.close()))
})

async function external() {
  const database = await emptyDatabase()
  databases.push(database)
  return urlOf(database.connection)
}

async function freePort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => holder.once('listening', resolve))
  const { port } = holder.address() as AddressInfo
  await new Promise((resolve) => holder.close(resolve))
  return port
}

/** A load balancer: keeps connections open, and hands requests to those that say that they are ready. */
function balance(ports: number[]) {
  const agents = new Map(ports.map((port) => [port, new Agent({ keepAlive: true })]))
  let ready: number[] = []
  let isOver = false
  let turn = 0

  async function ask(port: number, path: string, body?: object, headers?: Record<string, string>) {
    return new Promise<number>((resolve, reject) => {
      const sent = httpRequest(
        {
          host: '127.0.0.1',
          ...{ port, path, method: body ? 'POST' : 'GET', headers: { 'content-type': 'application/json', ...headers } },
          // Checks do not share the connections of requests.
          ...(body && { agent: agents.get(port) as Agent }),
        },
        (response) => {
          response.resume()
          response.on('end', () => resolve(response.statusCode as number))
          response.on('error', reject)
        },
      )
      sent.on('error', reject)
      sent.end(body && JSON.stringify(body))
    })
  }

  const isReady = (port: number) =>
    ask(port, '/ready').then(
      (status) => status === 200,
      () => false,
    )

  const look = async () => {
    const states = await Promise.all(ports.map(isReady))
    ready = ports.filter((_, i) => states[i])
  }

  async function watch() {
    while (!isOver) {
      await look()
      await pause(50)
    }
  }

  return {
    look,
    start: () => void watch(),
    isServed: (port: number) => ready.includes(port),
    send: (path: string, body: object, headers: Record<string, string>) =>
      ask(ready[turn++ % ready.length] as number, path, body, headers),
    stop() {
      isOver = true
      for (const agent of agents.values()) agent.destroy()
    },
  }
}

test('a rolling restart of three servers under load loses no request', async () => {
  const url = await external()
  const ports = [await freePort(), await freePort(), await freePort()]
  const begin = (port: number) =>
    launch({
      env: { UNSAFE_DURABILITY: 'true', DATABASE_URL: url, PORT: `${port}`, DRAIN_SECONDS: '2', LIMITS: 'off' },
    })
  const servers: Server[] = []
  for (const port of ports) {
    const server = await begin(port)
    await server.ready()
    servers.push(server)
  }
  const keys = printedKeys((servers[0] as Server).out())
  const balancer = balance(ports)
  await balancer.look()
  balancer.start()

  let isOver = false
  const answers = new Map<string, number>()
  const note = (what: string) => answers.set(what, (answers.get(what) ?? 0) + 1)
  async function client(n: number) {
    for (let i = 0; !isOver; i++) {
      const body = { identity: { external_id: `user ${n} ${i}` } }
      const headers = { authorization: `Key ${keys.appKey}` }
      const status = balancer.send(`/apps/${keys.appId}/users`, body, headers)
      await status.then(
        (status) => note(`${status}`),
        (error) => note(error.code ?? error.message),
      )
    }
  }
  const clients = Array.from({ length: 20 }, (_, n) => client(n))
  for (const [i, port] of ports.entries()) {
    const server = servers[i] as Server
    await server.stop()
    await expect.poll(() => balancer.isServed(port)).toBe(false)
    servers[i] = await begin(port)
    await servers[i]?.ready()
    await expect.poll(() => balancer.isServed(port)).toBe(true)
  }
  isOver = true
  await Promise.all(clients)
  balancer.stop()
  expect([...answers.keys()]).toEqual(['201'])
  expect(answers.get('201')).toBeGreaterThan(100)
})

test('a server that was started before listens once, when it can answer', async () => {
  const url = await external()
  const port = await freePort()
  const preload = fileURLToPath(new URL('./note-listen.mjs', import.meta.url))
  const env = { UNSAFE_DURABILITY: 'true', DATABASE_URL: url, PORT: `${port}`, NODE_OPTIONS: `--import=${preload}` }
  const first = await launch({ env })
  await first.ready()
  await first.stop()
  const second = await launch({ env })
  await second.ready()
  expect(second.out().match(/^listening: \d+$/gm)).toEqual([`listening: ${port}`])
  await second.stop()
})
