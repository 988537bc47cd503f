// Two servers in processes of their own on one database, a box of stand-ins as every provider, and people to write to. Whatever a
// test claims, it reads from what clients were told, what the box wrote down, and the database.

import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { createLog } from '../../src/lib/log.ts'
import { findMiscounts } from '../../src/messages/counts/store.ts'
import { openSinkBox, type SinkBox } from '../../src/sink/box.ts'
import type { SinkDelivery as Taken } from '../../src/sink/deliveries.ts'
import { createPool } from '../../src/storage/db.ts'
import { connectEmbedded } from '../../src/storage/embedded/attach.ts'
import { sql } from '../../src/storage/sql.ts'
import { urlOf } from '../command-line.ts'
import { type TestDatabase, testDatabase } from '../database.ts'
import { type FirstKeys, freshFolder, HANG_MS, launch, printedKeys, type Server, until } from '../process/launch.ts'

// biome-ignore lint/suspicious/noExplicitAny: an answer is read as the JSON it is; the assertions are its type
export type Answer = { status: number; body: any }
/** Somebody's subscription: what a message names, and what the box knows it by. */
export type Recipient = { id: string; token: string }
export type Delivery = {
  messageId: string
  subscriptionId: string
  state: string
  reason: string | null
  provider: string
}

export type Rig = {
  database: TestDatabase
  box: SinkBox
  keys: FirstKeys
  /** Where a server may be; one that is being started again is not among them. */
  urls: string[]
  nodes: Node[]
  recipients: Recipient[]
  /** Those who get texts; only who asks for them has any. */
  numbers: Recipient[]
  /** Status 0 where there was no answer. */
  ask(url: string, method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer>
  create(url: string, body: object, signal?: AbortSignal): Promise<Answer>
  cancel(url: string, id: string): Promise<Answer>
  setRate(perSecond: number): Promise<void>
  taken(): Promise<Taken[]>
  deliveries(): Promise<Delivery[]>
}

/** A server and, after a kill, the ones that take its place. */
export type Node = { server: Server; url: string; start(): Promise<void> }

export type RigOptions = {
  /** What depends on where the box is, when that is known. */
  env?: Record<string, string> | ((box: SinkBox) => Promise<Record<string, string>>)
  recipients?: number
  numbers?: number
  /** One server, with the PostgreSQL that it starts for itself. */
  hasOwnDatabase?: boolean
}

/** Messages that one process has under way with one provider. Few, so that what a kill leaves unknown is seen to be bounded. */
export const IN_FLIGHT = 20

const SECRET_KEY = 'a secret for all servers of a test'
let opened: { close(): Promise<unknown> }[] = []
/** Closed after the test, before what was opened before it. */
export const closeLater = (part: { close(): Promise<unknown> }) => opened.push(part)

afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close()
})

export async function openRig({
  env = {},
  recipients = 60,
  numbers = 0,
  hasOwnDatabase,
}: RigOptions = {}): Promise<Rig> {
  const shared = hasOwnDatabase ? undefined : await testDatabase()
  const logFile = join(await freshFolder(), 'taken.jsonl')
  const box = await openSinkBox({ clock: systemClock(), logFile })
  opened = [...(shared ? [shared] : []), box]
  const settings = {
    ...box.settings,
    ...(shared && { DATABASE_URL: urlOf(shared.connection), UNSAFE_DURABILITY: 'true' }),
    LIMITS: 'off',
    LOG_LEVEL: 'silent',
    SECRET_KEY,
    MAX_IN_FLIGHT: String(IN_FLIGHT),
    ...(typeof env === 'function' ? await env(box) : env),
  }
  const nodes: Node[] = []
  for (let i = 0; i < (shared ? 2 : 1); i++) {
    const server = await launch({ env: settings })
    const node: Node = {
      server,
      url: await server.ready(),
      async start() {
        node.server = await launch({ dataDir: node.server.dataDir, env: settings })
        node.url = await node.server.ready()
      },
    }
    nodes.push(node)
  }
  const database = shared ?? (await ownDatabase((nodes[0] as Node).server.dataDir))
  if (!shared) opened.push(database)
  const keys = printedKeys(nodes.map(({ server }) => server.out()).join('\n'))

  const rig: Rig = {
    database,
    box,
    keys,
    nodes,
    urls: nodes.map(({ url }) => url),
    recipients: [],
    numbers: [],
    ask: (url, method, path, body, signal) => askAs(keys.appKey, url, method, path, body, signal),
    create: (url, body, signal) => rig.ask(url, 'POST', '/notifications', { app_id: keys.appId, ...body }, signal),
    cancel: (url, id) => rig.ask(url, 'DELETE', `/notifications/${id}?app_id=${keys.appId}`),
    async setRate(perSecond) {
      await fetch(`${box.control}/rate`, { method: 'POST', body: JSON.stringify({ per_second: perSecond }) })
    },
    taken: async () =>
      (await readFile(logFile, 'utf8'))
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    deliveries: () =>
      database.db.query<Delivery>(sql`
        select message_id, subscription_id, state, reason, split_part(line, '/', 2) as provider
        from deliveries where app_id = ${keys.appId}`),
  }
  await configure(rig)
  rig.recipients = await subscribe(rig, await newDevices(rig, recipients))
  rig.numbers = await subscribe(rig, newNumbers(numbers))
  return rig
}

/** Tests fill whole tables by one statement, also on a busy machine. */
const PREPARE_MS = 300_000

async function ownDatabase(dataDir: string): Promise<TestDatabase> {
  const { connection } = await connectEmbedded({ dataDir, log: createLog('silent') })
  const db = createPool({ connection, size: 2, statementTimeoutMs: PREPARE_MS })
  return { connection, db, close: () => db.close() }
}

/** With a key. Status 0 where there was no answer. */
export async function askAs(
  key: string,
  url: string,
  method: string,
  path: string,
  body?: unknown,
  signal = AbortSignal.timeout(HANG_MS),
): Promise<Answer> {
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      signal,
      headers: { authorization: `Key ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  } catch {
    return { status: 0, body: undefined }
  }
}

/** Sends to the box, and so much that the application limit has no say. */
export async function configure({ keys, nodes, box }: Rig) {
  const url = (nodes[0] as Node).url
  const put = (path: string, body: object) =>
    askAs(keys.organizationKey, url, 'PUT', `/apps/${keys.appId}${path}`, body)
  expect(await put('', box.newAppSettings())).toMatchObject({ status: 200 })
  expect(await put('/delivery_settings', { limit_factor: 10_000 })).toMatchObject({ status: 200 })
  expect(await put('/sms_settings', box.smsSettings)).toMatchObject({ status: 200 })
}

/** Of each kind of push as many. */
async function newDevices({ box }: Rig, count: number): Promise<object[]> {
  if (count === 0) return []
  const made = await fetch(`${box.control}/subscriptions`, { method: 'POST', body: JSON.stringify({ count }) })
  const browsers = (await made.json()) as object[]
  const kinds = [
    () => ({ type: 'iOSPush', token: randomBytes(32).toString('hex') }),
    () => ({ type: 'AndroidPush', token: randomBytes(32).toString('base64url') }),
    (i: number) => ({ type: 'ChromePush', ...browsers[i] }),
  ]
  return browsers.map((_, i) => (kinds[i % kinds.length] as (i: number) => object)(i))
}

const newNumbers = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ type: 'SMS', token: `+1500555${1_000 + i}` }))

async function subscribe({ keys, nodes, ask }: Rig, subscriptions: readonly object[]): Promise<Recipient[]> {
  const subscribed = async (subscription: object, i: number): Promise<Recipient> => {
    const answer = await ask((nodes[i % nodes.length] as Node).url, 'POST', `/apps/${keys.appId}/users`, {
      identity: { external_id: `person-${newId()}` },
      subscriptions: [subscription],
    })
    expect(answer.status).toBe(201)
    const { id, token } = answer.body.subscriptions[0]
    return { id, token }
  }
  const list: Recipient[] = []
  for (let i = 0; i < subscriptions.length; i += 20)
    list.push(...(await Promise.all(subscriptions.slice(i, i + 20).map(subscribed))))
  return list
}

/** Every message that was taken has its deliveries, of which none waits and none is under way. */
export async function untilSettled({ database, keys }: Rig, deadlineMs = HANG_MS): Promise<void> {
  const open = () =>
    database.db.query<{ id: string }>(sql`
      select m.id from messages m
      where m.app_id = ${keys.appId} and (m.state in ('scheduled', 'expanding') or exists (
        select from deliveries d
        where d.app_id = ${keys.appId} and d.message_id = m.id and d.state = 'pending'))
      limit 1`)
  await until(async () => (await open()).length === 0, deadlineMs).catch(async (error) => {
    const jobs = await database.db.query(sql`
      select name, key, state, run_at, lease_until, attempts, crashes from jobs where app_id = ${keys.appId}`)
    throw new Error(`${error.message}; open: ${JSON.stringify(await open())}; jobs: ${JSON.stringify(jobs)}`)
  })
}

/** The messages know it too: whoever settled the last delivery says so or, if it died just then, a schedule does every minute. */
export async function untilDone({ database, keys }: Rig, deadlineMs = HANG_MS): Promise<void> {
  const open = () =>
    database.db.query(sql`
      select 1 from messages m where m.app_id = ${keys.appId} and m.state not in ('done', 'canceled') limit 1`)
  await until(async () => (await open()).length === 0, deadlineMs)
}

/** How often each message was taken for each subscription, as `message subscription`. */
export async function takenOf({
  taken,
  recipients,
  numbers,
}: Pick<Rig, 'taken' | 'recipients' | 'numbers'>): Promise<Map<string, number>> {
  const byToken = new Map([...recipients, ...numbers].map(({ id, token }) => [token, id]))
  const counts = new Map<string, number>()
  for (const { channel, to, message_id } of await taken()) {
    if (channel === 'webhook') continue
    const name = `${message_id} ${byToken.get(to) ?? to}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

/** The counts of every message are what its deliveries are. */
export async function expectCounted({ database: { db }, keys }: Rig): Promise<void> {
  const messages = await db.query<{ id: string; expandAt: Date }>(sql`
    select id, expand_at from messages where app_id = ${keys.appId} and expand_at is not null`)
  for (const { id, expandAt } of messages)
    expect(await findMiscounts(db, keys.appId, id, expandAt), `counts of ${id}`).toEqual([])
}

export type Dice = {
  next(): number
  between(least: number, most: number): number
  pick<Item>(list: readonly Item[]): Item
}

/** Chances that can be had again: CHAOS_SEED. Each run says which it had. */
export function throwDice(name: string): Dice {
  const seed = Number(process.env.CHAOS_SEED ?? randomBytes(4).readUInt32LE())
  console.log(`${name}: CHAOS_SEED=${seed}`)
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return { next, between, pick: (list) => list[between(0, list.length - 1)] as (typeof list)[number] }
}
