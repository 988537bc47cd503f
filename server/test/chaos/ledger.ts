// Clients that write without pause and remember what they were told. Afterwards the database is held against their
// memory: what was acknowledged is there, and what was not is there as a whole or not at all.

import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import type { FirstKeys } from '../process/launch.ts'

/** All of it with CHAOS_FULL=1; enough to see each failure once without. */
export const isFull = process.env.CHAOS_FULL === '1'

export type Ledger = {
  /** Where the server is now; it changes with each restart. */
  url: string
  acknowledged: string[]
  /** Sent, and refused or never answered: nobody knows. */
  unknown: string[]
  /** How often each status was answered; 0 stands for no answer. */
  statuses: Map<number, number>
  /** The slowest answer that was a 503. */
  slowestRefusalMs: number
  /** Answers that broke off in the middle. */
  incomplete: number
  /** What a 503 said. */
  refusals: Set<string>
  sessions: Map<string, { acknowledged: number; unknown: number }>
  isWriting: boolean
}

export type Writers = { ledger: Ledger; stop(): Promise<void> }

export const statusesOf = ({ statuses }: Ledger) => [...statuses.keys()].sort((a, b) => a - b)

/** Their users' names begin with `who`, so that two parties of writers have no user in common. */
export function startWriters(url: string, keys: FirstKeys, count: number, who = 'c'): Writers {
  const ledger: Ledger = {
    url,
    acknowledged: [],
    unknown: [],
    statuses: new Map(),
    slowestRefusalMs: 0,
    incomplete: 0,
    refusals: new Set(),
    sessions: new Map(),
    isWriting: true,
  }
  const clients = Array.from({ length: count }, (_, i) => write(ledger, keys, `${who}${i}`))
  return {
    ledger,
    async stop() {
      ledger.isWriting = false
      await Promise.all(clients)
    },
  }
}

async function write(ledger: Ledger, keys: FirstKeys, client: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const counter = { acknowledged: 0, unknown: 0 }
  let counted: string | undefined
  for (let n = 0; ledger.isWriting; n++) {
    const name = `${client}-${n}`
    const created = await ask(ledger, keys, agent, 'POST', '/users', userNamed(name))
    if (created === 201) {
      ledger.acknowledged.push(name)
      if (counted === undefined) {
        counted = name
        ledger.sessions.set(name, counter)
      }
    } else ledger.unknown.push(name)
    if (counted !== undefined) {
      const path = `/users/by/external_id/${counted}`
      const added = await ask(ledger, keys, agent, 'PATCH', path, { deltas: { session_count: 1 } })
      if (added === 202) counter.acknowledged++
      else counter.unknown++
    }
    // Not to spin while nobody answers.
    if (created === 0) await pause(50)
    if (created === 503) await pause(5)
  }
  agent.destroy()
}

const userNamed = (name: string) => ({
  identity: { external_id: name, crm_id: `crm-${name}` },
  subscriptions: [
    { type: 'Email', token: `${name}@example.com` },
    { type: 'AndroidPush', token: `token-${name}` },
  ],
})

/** The status, or 0 when there was none. */
async function ask(ledger: Ledger, keys: FirstKeys, agent: Agent, method: string, path: string, body: unknown) {
  const began = performance.now()
  const { status, text } = await send(ledger, agent, keys, method, path, body)
  ledger.statuses.set(status, (ledger.statuses.get(status) ?? 0) + 1)
  if (status === 503) {
    ledger.slowestRefusalMs = Math.max(ledger.slowestRefusalMs, performance.now() - began)
    ledger.refusals.add(text)
  }
  return status
}

function send(
  ledger: Pick<Ledger, 'url' | 'incomplete'>,
  agent: Agent,
  { appId, appKey }: FirstKeys,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const request = httpRequest(`${ledger.url}/apps/${appId}${path}`, {
      method,
      agent,
      headers: {
        authorization: `Key ${appKey}`,
        ...(payload !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(payload),
        }),
      },
    })
    const unanswered = () => resolve({ status: 0, text: '' })
    request.on('error', unanswered)
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk))
      response.on('error', () => {})
      response.on('close', () => {
        if (response.complete) return resolve({ status: response.statusCode ?? 0, text })
        ledger.incomplete++
        unanswered()
      })
    })
    request.end(payload)
  })
}

/** Reads every user of the ledger, and counts what the ledger cannot name. */
export async function expectKept(ledger: Ledger, keys: FirstKeys, dataDir: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  const lost: string[] = []
  const torn: string[] = []
  const appeared: string[] = []
  const names = [
    ...ledger.acknowledged.map((name) => [name, true] as const),
    ...ledger.unknown.map((name) => [name, false] as const),
  ]
  const values = names.values()
  const look = async () => {
    for (const [name, wasAcknowledged] of values) {
      const { status, text } = await send(ledger, agent, keys, 'GET', `/users/by/external_id/${name}`)
      if (status === 404) {
        if (wasAcknowledged) lost.push(name)
        continue
      }
      if (status !== 200 || !isWhole(name, JSON.parse(text))) torn.push(`${name}: ${status} ${text}`)
      if (!wasAcknowledged) appeared.push(name)
      const counter = ledger.sessions.get(name)
      if (counter) {
        const { session_count } = JSON.parse(text).properties
        expect(session_count).toBeGreaterThanOrEqual(counter.acknowledged)
        expect(session_count).toBeLessThanOrEqual(counter.acknowledged + counter.unknown)
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, look))
  agent.destroy()
  expect({ lost, torn }).toEqual({ lost: [], torn: [] })
  expect(await countTorn(dataDir)).toBe(0)
  return { appeared }
}

type User = { identity: Record<string, string>; subscriptions: { token: string }[] }

function isWhole(name: string, { identity, subscriptions }: User): boolean {
  const { identity: aliases, subscriptions: given } = userNamed(name)
  const tokens = new Set(subscriptions.map(({ token }) => token))
  return (
    identity.external_id === aliases.external_id &&
    identity.crm_id === aliases.crm_id &&
    given.every(({ token }) => tokens.has(token))
  )
}

/** Users without all that came with them; rows without their user are impossible by foreign key. */
async function countTorn(dataDir: string): Promise<number> {
  const client = new pg.Client({ host: join(dataDir, 'socket'), user: 'carillon', database: 'carillon' })
  await client.connect()
  try {
    const { rows } = await client.query(`
      select count(*)::integer as torn
      from users u
      where (select count(*) from aliases a where a.app_id = u.app_id and a.user_id = u.id) <> 2
        or (select count(*) from subscriptions s where s.app_id = u.app_id and s.user_id = u.id) <> 2`)
    return rows[0].torn
  } finally {
    await client.end()
  }
}
