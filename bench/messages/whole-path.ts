// A broadcast from its request to the sink, through the whole server: how fast, with how much memory, and how long a direct
// message takes meanwhile.

import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { newAppSettings } from '../../server/src/sink/app-settings.ts'
import { checkCounts, PATIENCE_MS, sendMessage, TO_ALL, untilArrived } from '../kit/broadcast.ts'
import { moment } from '../kit/moment.ts'
import { ask, type Carillon, reply, residentMb } from '../kit/processes.ts'
import { median, p99, type Row, round } from '../kit/report.ts'
import { pushTo } from './send.ts'
import type { SinkNamed, SinkNames, SinkQuestion, SinkSeen, SinkStarted } from './sink.ts'

const DIRECT_EVERY_MS = 200
const MEMORY_GOAL_MB = 400

export type Sink = SinkStarted & { look(): Promise<SinkSeen>; named(): Promise<SinkNamed>; stop(): void }

/** `names`: by what it remembers when something arrived. */
export async function startSink(names: SinkNames = 'collapse id'): Promise<Sink> {
  const child: ChildProcess = fork(new URL('./sink.ts', import.meta.url), [names], { stdio: 'inherit' })
  const { settings } = await reply<SinkStarted>(child)
  const look = () => ask<SinkSeen>(child, { wants: 'counts' } satisfies SinkQuestion)
  const named = () => ask<SinkNamed>(child, { wants: 'named' } satisfies SinkQuestion)
  return { settings, look, named, stop: () => void child.kill() }
}

async function put({ url, organizationKey }: Carillon, path: string, body: object) {
  const response = await fetch(url + path, {
    method: 'PUT',
    headers: { authorization: `Key ${organizationKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`)
}

/** One that the benchmark does not reach. */
export const raiseLimit = (carillon: Carillon) =>
  put(carillon, `/apps/${carillon.appId}/delivery_settings`, { limit_factor: 100_000 })

/** Push credentials, and a limit that the benchmark does not reach. */
export async function prepareApp(carillon: Carillon) {
  await put(carillon, `/apps/${carillon.appId}`, newAppSettings())
  await raiseLimit(carillon)
}

/** One direct message every 200 ms until it is stopped; answers how long each took to arrive. */
function sendDirects(carillon: Carillon, sink: Sink, subscriptions: string[], name: string) {
  const sentMs: number[] = []
  const requests: Promise<unknown>[] = []
  const sendNext = () => {
    const id = subscriptions[Math.floor(Math.random() * subscriptions.length)]
    const collapse_id = `${name}-${sentMs.length}`
    sentMs.push(moment())
    requests.push(sendMessage(carillon, pushTo(carillon.appId, { include_subscription_ids: [id], collapse_id })))
  }
  const timer = setInterval(sendNext, DIRECT_EVERY_MS)
  return {
    async stop(): Promise<number[]> {
      clearInterval(timer)
      await Promise.all(requests)
      const until = moment() + PATIENCE_MS
      for (;;) {
        const named = await sink.named()
        const arrived = sentMs.map((_, n) => named[`${name}-${n}`])
        const missing = arrived.filter((it) => it === undefined).length
        if (missing === 0) return arrived.map((it, n) => (it as number) - (sentMs[n] as number))
        if (moment() > until) throw new Error(`${missing} of ${sentMs.length} direct messages did not arrive`)
        await sleep(50)
      }
    },
  }
}

export async function measureWholePath(
  carillon: Carillon,
  sink: Sink,
  subscriptions: string[],
  { recipients, idleSeconds }: { recipients: number; idleSeconds: number },
): Promise<Row[]> {
  const direct = (name: string) => sendDirects(carillon, sink, subscriptions, name)
  // Connections are opened and functions compiled.
  const warmUp = direct('warm-up')
  await sleep(2_000)
  await warmUp.stop()
  const idling = direct('idle')
  await sleep(idleSeconds * 1_000)
  const idle = await idling.stop()

  const meanwhile = direct('meanwhile')
  const [before, beganMs] = [residentMb(carillon.pid), moment()]
  const { id } = await sendMessage(carillon, pushTo(carillon.appId, TO_ALL))
  const { lastMs, peakMb: peak } = await untilArrived(carillon, sink.look, recipients)
  const busy = await meanwhile.stop()
  await checkCounts(carillon, id, recipients)

  const [idleP99, busyP99] = [p99(idle), p99(busy)]
  return [
    {
      name: `broadcast to ${recipients}, from request to sink`,
      ratio: null,
      goal: null,
      perSecond: Math.round((recipients * 1_000) / (lastMs - beganMs)),
    },
    {
      name: `memory of the server during it: ${MEMORY_GOAL_MB} MB against its peak`,
      ratio: round(MEMORY_GOAL_MB / peak),
      goal: 1,
      peakMb: peak,
      beforeMb: before,
    },
    {
      name: 'direct message during it: 10 times its idle p99 against its p99',
      ratio: round((10 * idleP99) / busyP99),
      goal: 1,
      p50Ms: round(median(busy), 1),
      p99Ms: round(busyP99, 1),
      idleP50Ms: round(median(idle), 1),
      idleP99Ms: round(idleP99, 1),
      count: busy.length,
    },
  ]
}
