// From an event to the message that it brings: the event starts a run, whose only node sends. Measured from the request to the
// arrival at the sink, when nearly nothing happens and when much does.

import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { PATIENCE_MS } from '../kit/broadcast.ts'
import { cpuSeconds, postgresCpuSeconds } from '../kit/cpu.ts'
import { make } from '../kit/make.ts'
import { moment } from '../kit/moment.ts'
import { type Carillon, headersOf } from '../kit/processes.ts'
import { median, p99, type Row, round } from '../kit/report.ts'
import { settle } from '../kit/seed.ts'
import type { Sink } from '../messages/whole-path.ts'

const EVENT = 'bell rung'
export const IDLE_PER_SECOND = 5
/**
 * Under load, before anything is counted: connections are opened, the message of the day is open, tables are no longer empty, and what
 * is called often is compiled for it. That takes a new server on a new database a dozen seconds.
 */
export const WARM_UP_SECONDS = 15
const TICK_MS = 5

type Person = { externalId: string; token: string }

/** Each gets one event, so that the device tells which. */
async function findPeople(client: pg.Client, appId: string): Promise<Person[]> {
  const { rows } = await client.query(
    `select a.value, s.token from aliases a join subscriptions s on s.app_id = a.app_id and s.user_id = a.user_id
     where a.app_id = $1 and a.label = 'external_id'`,
    [appId],
  )
  return rows.map(({ value, token }) => ({ externalId: value, token }))
}

function poster({ url, appId, appKey }: Carillon) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const headers = headersOf({ appKey })
  const post = (externalId: string) =>
    new Promise<void>((resolve, reject) => {
      const body = JSON.stringify({ events: [{ name: EVENT, external_id: externalId, properties: { bell: 'tenor' } }] })
      const sent = request(`${url}/apps/${appId}/custom_events`, {
        method: 'POST',
        agent,
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      })
      sent.on('error', reject)
      sent.on('response', (answer) => {
        answer.resume()
        answer.on('end', () => (answer.statusCode === 202 ? resolve() : reject(new Error(`${answer.statusCode}`))))
      })
      sent.end(body)
    })
  return { post, close: () => agent.destroy() }
}

const cpuOf = ({ pid, dataDir }: Carillon) => ({ server: cpuSeconds(pid), postgres: postgresCpuSeconds(dataDir) })

export async function measureEvents(
  carillon: Carillon,
  connection: pg.ClientConfig,
  client: pg.Client,
  sink: Sink,
  { perSecond, seconds, idleSeconds }: { perSecond: number; seconds: number; idleSeconds: number },
): Promise<Row> {
  const { appId } = carillon
  const template = await make(carillon, '/templates', { app_id: appId, name: 'A push', contents: { en: 'It rings' } })
  const journey = await make(carillon, `/apps/${appId}/journeys`, {
    name: 'Bells',
    audience: { kind: 'event_trigger', name: EVENT },
    nodes: [{ kind: 'send_push', template_id: template.id }],
  })
  await make(carillon, `/apps/${appId}/journeys/${journey.id}`, { state: 'active' }, 'PATCH')
  const isActive = async () =>
    (await client.query('select state from journeys where app_id = $1 and id = $2', [appId, journey.id])).rows[0]
      .state === 'active'
  while (!(await isActive())) await sleep(20)
  const people = await findPeople(client, appId)
  await settle(connection)
  const { post, close } = poster(carillon)

  /** At a rate that does not wait for answers; answers how long each took to arrive. */
  async function run(rate: number, forSeconds: number): Promise<number[]> {
    const those = people.splice(0, Math.round(rate * forSeconds))
    const sentMs: number[] = []
    const answers: Promise<void>[] = []
    for (const beganMs = moment(); sentMs.length < those.length; await sleep(TICK_MS)) {
      const due = Math.min(those.length, Math.ceil(((moment() - beganMs) / 1_000) * rate))
      while (sentMs.length < due) {
        const { externalId } = those[sentMs.length] as Person
        sentMs.push(moment())
        answers.push(post(externalId))
      }
    }
    await Promise.all(answers)
    expected += those.length
    await untilThere()
    const named = await sink.named()
    return those.map(({ token }, n) => (named[token] as number) - (sentMs[n] as number))
  }

  /** Each device gets one message, so that to count them is enough. */
  async function untilThere() {
    for (let [count, movedMs] = [-1, 0]; count < expected; await sleep(200)) {
      const { namedCount } = await sink.look()
      if (namedCount > count) movedMs = moment()
      count = namedCount
      if (moment() - movedMs > PATIENCE_MS) throw new Error(`only ${count} of ${expected} arrived`)
    }
  }
  let expected = 0

  try {
    const cold = await run(perSecond, WARM_UP_SECONDS)
    const idle = await run(IDLE_PER_SECOND, idleSeconds)
    const before = cpuOf(carillon)
    const busy = await run(perSecond, seconds)
    const after = cpuOf(carillon)
    const each = (name: keyof typeof after) => Math.round(((after[name] - before[name]) * 1e6) / busy.length)
    return {
      name: `event to message, ${perSecond} events a second: 10 times its idle p99 against its p99`,
      ratio: round((10 * p99(idle)) / p99(busy)),
      goal: 1,
      p50Ms: round(median(busy), 1),
      p99Ms: round(p99(busy), 1),
      idleP50Ms: round(median(idle), 1),
      idleP99Ms: round(p99(idle), 1),
      coldP99Ms: round(p99(cold), 1),
      count: busy.length,
      serverMicroseconds: each('server'),
      postgresMicroseconds: each('postgres'),
    }
  } finally {
    close()
  }
}
