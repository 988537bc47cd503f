// A newsletter to many, from its request to the sink, through the whole server: how fast against who only writes the same bytes to the
// same sink, for how much CPU time, with how much memory.

import { fork } from 'node:child_process'
import { createLog } from '../../server/src/lib/log.ts'
import { connectEmbedded } from '../../server/src/storage/embedded/attach.ts'
import { checkCounts, sendMessage, TO_ALL, untilArrived } from '../kit/broadcast.ts'
import { cpuSeconds, postgresCpuSeconds } from '../kit/cpu.ts'
import { moment } from '../kit/moment.ts'
import { ask, type Carillon, reply, startCarillon } from '../kit/processes.ts'
import { type Row, round } from '../kit/report.ts'
import { seedUsers, settle } from '../kit/seed.ts'
import type { Order, Written } from './bare-writer.ts'
import { newsletter } from './content.ts'
import type { SinkSeen, SinkStarted } from './sink.ts'

const GOAL = 0.4
const MEMORY_GOAL_MB = 300
const DOMAIN = 'news.example.com'
/** As many as the server has unless told. */
const CONNECTIONS = 5
/** Of providers that are known by these names: nobody is asked for DNS. */
const MAILBOX = "(array['gmail.com', 'yahoo.com', 'outlook.com', 'icloud.com', 'gmx.de'])[1 + n % 5]"

export type WholeSend = { name: string; mails: number; isSigned: boolean }

const start = (file: string) => fork(new URL(file, import.meta.url), { stdio: 'inherit' })

export async function measureWholeSend({ name, mails, isSigned }: WholeSend): Promise<Row[]> {
  const sink = start('./sink.ts')
  const writer = start('./bare-writer.ts')
  try {
    const { port } = await reply<SinkStarted>(sink)
    const look = () => ask<SinkSeen>(sink, {})
    const { cold, measured } = await withServer(port, mails, async (carillon) => {
      await prepareApp(carillon, isSigned)
      // The first one finds an empty database and a server that has compiled nothing yet.
      const cold = await broadcast(carillon, mails, look)
      return { cold, measured: await broadcast(carillon, mails, look) }
    })
    const { mail } = await look()
    if (mail.includes('DKIM-Signature') !== isSigned) throw new Error('not signed as it should be')
    const bare = await ask<Written>(writer, { port, mails, connections: CONNECTIONS, mail } satisfies Order)
    const { taken } = await look()
    if (taken !== 3 * mails) throw new Error(`${taken} of ${3 * mails} mails arrived`)
    const { perSecond, cpu } = measured
    const peakMb = Math.max(cold.peakMb, measured.peakMb)
    return [
      {
        name: `${name}, whole send of ${mails}`,
        ratio: round(perSecond / bare.perSecond),
        goal: GOAL,
        perSecond: round(perSecond, 0),
        coldPerSecond: round(cold.perSecond, 0),
        referencePerSecond: round(bare.perSecond, 0),
        perCoreAndSecond: round(mails / (cpu.server + cpu.postgres), 0),
        cpuMicroseconds: round((cpu.server * 1e6) / mails, 0),
        postgresCpuMicroseconds: round((cpu.postgres * 1e6) / mails, 0),
        mailBytes: mail.length,
      },
      {
        name: `${name}, memory of the server during it: ${MEMORY_GOAL_MB} MB against its peak`,
        ratio: round(MEMORY_GOAL_MB / peakMb),
        goal: 1,
        peakMb,
      },
    ]
  } finally {
    writer.kill()
    sink.kill()
  }
}

/** The sink counts as one that passes nothing on: any domain may send. */
async function withServer<Result>(port: number, mails: number, run: (carillon: Carillon) => Promise<Result>) {
  const carillon = await startCarillon({ SMTP_URL: `smtp://127.0.0.1:${port}?tls=none&catcher=true` })
  try {
    const database = await connectEmbedded({ dataDir: carillon.dataDir, log: createLog('warn') })
    await seedUsers(database.connection, carillon.appId, 0, mails, { token: `'seed-' || n || '@' || ${MAILBOX}` })
    await settle(database.connection)
    await database.close()
    return await run(carillon)
  } finally {
    await carillon.stop()
  }
}

/** A limit that the benchmark does not reach, and for signed mail a domain with a key. */
async function prepareApp({ url, appId, organizationKey }: Carillon, isSigned: boolean) {
  const ask = async (method: string, path: string, body: object) => {
    const response = await fetch(`${url}/apps/${appId}${path}`, {
      method,
      headers: { authorization: `Key ${organizationKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  }
  await ask('PUT', '/delivery_settings', { limit_factor: 100_000 })
  if (isSigned) await ask('POST', '/email/domains', { domain: DOMAIN, dkim: { algorithms: ['rsa'] } })
}

async function broadcast(carillon: Carillon, mails: number, look: () => Promise<SinkSeen>) {
  const spent = () => ({ server: cpuSeconds(carillon.pid), postgres: postgresCpuSeconds(carillon.dataDir) })
  const { taken: takenBefore } = await look()
  const arrived = async () => {
    const { taken, lastMs } = await look()
    return { count: taken - takenBefore, lastMs }
  }
  const [before, beganMs] = [spent(), moment()]
  const { id } = await sendMessage(carillon, {
    app_id: carillon.appId,
    target_channel: 'email',
    email_from_address: `bells@${DOMAIN}`,
    ...newsletter,
    ...TO_ALL,
  })
  const { lastMs, peakMb } = await untilArrived(carillon, arrived, mails)
  await checkCounts(carillon, id, mails)
  const after = spent()
  return {
    perSecond: (mails * 1_000) / (lastMs - beganMs),
    cpu: { server: after.server - before.server, postgres: after.postgres - before.postgres },
    peakMb,
  }
}
