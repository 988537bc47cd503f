// From an audience to its deliveries, by the engine's own code on a pool of its own, against one `insert … select` of the same
// rows into a table with the same columns, key and indexes, interleaved.

import pg from 'pg'
import { createMessageChannels } from '../../server/src/composition/message-channels.ts'
import { createReferences } from '../../server/src/email/reference.ts'
import { systemClock } from '../../server/src/lib/clock.ts'
import { createLog } from '../../server/src/lib/log.ts'
import type { EmailPort } from '../../server/src/messages/email/port.ts'
import { createEngine } from '../../server/src/messages/engine/engine.ts'
import type { DeliverySender } from '../../server/src/messages/engine/types.ts'
import { expandMessages } from '../../server/src/messages/expand/expand.ts'
import type { JobRun } from '../../server/src/queue/job.ts'
import { createScanAudience } from '../../server/src/segments/scan.ts'
import { createPool } from '../../server/src/storage/db.ts'
import { createSharedPool } from '../../server/src/storage/shared-pool.ts'
import { createRenderer } from '../../server/src/templates/render/renderer.ts'
import { sendMessage, TO_ALL } from '../kit/broadcast.ts'
import type { Carillon } from '../kit/processes.ts'
import { median, type Row, round } from '../kit/report.ts'
import { pushTo } from './send.ts'

/** Nothing is sent here. */
const sender: DeliverySender = {
  ready: async () => new Set(['apns']),
  send: async () => {
    throw new Error('nothing is sent while expansion is measured')
  },
}

const workOn = (appId: string, key: string): JobRun => ({
  job: { appId, id: key, name: 'messages.expand', key, payload: null, runAt: new Date(), attempts: 1, crashes: 0 },
  fence: 1,
  signal: new AbortController().signal,
  isStopping: () => false,
  isStillHeld: async () => true,
  recordProgress: async () => {},
})

const PLAIN = `
  insert into plain_deliveries (app_id, expand_at, message_id, subscription_id, user_id, platform, line, state, due_at, expires_at)
  select app_id, now(), $2, id, user_id, type, 'bulk/apns/' || get_byte(uuid_send(id), 15) % 4, 'pending', now(),
    now() + interval '3 days'
  from subscriptions
  where app_id = $1 and enabled and token is not null and coalesce(notification_types, 1) > 0`

/** What is expanded here is no mail. */
const email: EmailPort = {
  references: createReferences('of a benchmark'),
  findSendingDomain: async () => undefined,
  defaultFrom: async () => undefined,
  findDevelopmentMailbox: async () => undefined,
  referenceHeaders: async () => [],
  findInboxProviders: async () => [],
  lookUpMailHosts: async () => {},
  fetchAttachments: async () => [],
}

/** `carillon` runs no jobs: the message waits for us. */
export async function measureExpansion(
  carillon: Carillon,
  connection: pg.ClientConfig,
  { recipients, rounds }: { recipients: number; rounds: number },
): Promise<Row> {
  const { appId } = carillon
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  const clock = systemClock()
  const db = createPool({ connection, clock, size: 2, statementTimeoutMs: 600_000 })
  const renderer = createRenderer()
  const engine = createEngine({
    ...{ db, clock, log: createLog('warn'), sender, renderer, maxInFlight: 400 },
    channels: createMessageChannels(email),
    directDb: db,
    scanAudience: createScanAudience(createSharedPool({ pool: db, connections: 2 })),
  })
  const expand = expandMessages(engine)

  const isExpanded = async (id: string) =>
    (await client.query('select state from messages where app_id = $1 and id = $2', [appId, id])).rows[0].state ===
    'sending'
  async function ours(): Promise<number> {
    const { id } = await sendMessage(carillon, pushTo(appId, TO_ALL))
    return secondsOf(async () => {
      while (!(await isExpanded(id))) await expand(workOn(appId, id))
    })
  }
  const plain = async () => {
    const id = (await client.query('select gen_random_uuid() as id')).rows[0].id
    return secondsOf(() => client.query(PLAIN, [appId, id]))
  }
  /** Both begin with empty tables and nothing left to write. */
  async function clear() {
    for (const table of ['plain_deliveries', 'deliveries']) {
      const { rows } = await client.query(`select count(*)::integer as count from ${table}`)
      if (![0, recipients].includes(rows[0].count)) throw new Error(`${rows[0].count} ${table} for ${recipients}`)
    }
    await client.query('truncate plain_deliveries, deliveries, messages, message_counts, jobs')
    await client.query('checkpoint')
  }

  try {
    await client.query('create table plain_deliveries (like deliveries including all)')
    await client.query('truncate deliveries, messages, message_counts, jobs')
    const own: number[] = []
    const reference: number[] = []
    for (let n = 0; n < rounds; n++) {
      await clear()
      reference.push(await plain())
      await clear()
      own.push(await ours())
    }
    await clear()
    const rate = (seconds: number[]) => Math.round(recipients / median(seconds))
    return {
      name: `expansion to ${recipients} deliveries, against insert … select`,
      ratio: round(median(own.map((it, i) => (reference[i] as number) / it))),
      goal: 0.5,
      perSecond: rate(own),
      referencePerSecond: rate(reference),
    }
  } finally {
    await renderer.close()
    await db.close()
    await client.end()
  }
}

async function secondsOf(run: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await run()
  return (performance.now() - began) / 1_000
}
