// Create message against a bare Fastify route with the same body and answer, interleaved, median of the rounds.

import type pg from 'pg'
import { sendMessage } from '../kit/broadcast.ts'
import type { Load, LoadResult } from '../kit/load.ts'
import { type Carillon, headersOf, type Server, startBare, startLoadTool } from '../kit/processes.ts'
import { median, type Row, round } from '../kit/report.ts'
import { settle } from '../kit/seed.ts'
import { pushTo } from './send.ts'

/** How many a server takes in a second shows when enough ask; with a few, how long each of them waits. */
const MANY = 256
const FEW = 64

type Operation = { name: string; goal: number | null; connections: number; body: string; among: string[] }

/** Each names one recipient at random; `{n}` is where. */
export function operationsOf({ appId }: Carillon, subscriptions: string[], users: string[]): Operation[] {
  const alias = { include_aliases: { external_id: ['{n}'] }, target_channel: 'push' }
  const later = new Date(Date.now() + 20 * 86_400_000).toISOString()
  const bySubscription = { include_subscription_ids: ['{n}'] }
  const body = (more: object) => JSON.stringify(pushTo(appId, more))
  const toSubscription = { name: 'create message, a subscription', body: body(bySubscription), among: subscriptions }
  const toAlias = { name: 'create message, an alias', body: body(alias), among: users }
  return [
    { ...toSubscription, goal: 0.5, connections: MANY },
    { ...toAlias, goal: 0.5, connections: MANY },
    { ...toSubscription, goal: null, connections: FEW },
    { ...toAlias, goal: null, connections: FEW },
    {
      name: 'create message, a subscription, in 20 days',
      goal: null,
      connections: MANY,
      body: body({ ...bySubscription, send_after: later }),
      among: subscriptions,
    },
  ]
}

export async function measureCreate(
  carillon: Carillon,
  connection: pg.ClientConfig,
  operations: Operation[],
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<Row[]> {
  const [first] = operations as [Operation]
  const sample = JSON.parse(first.body.replace('{n}', first.among[0] as string))
  const bare = await startBare({ message: await sendMessage(carillon, sample) })
  const tool = startLoadTool()
  const run = async (server: Server, { name, connections, body, among }: Operation): Promise<LoadResult> => {
    const load: Load = {
      url: server.url,
      connections,
      seconds,
      method: 'POST',
      path: '/notifications',
      headers: headersOf(carillon),
      body,
      among,
    }
    const result = await tool.run(load)
    if (result.failed > 0) throw new Error(`${name}: ${result.failed} requests failed`)
    return result
  }
  try {
    const rows: Row[] = []
    for (const operation of operations) {
      await settle(connection)
      await run(bare, operation)
      await run(carillon, operation)
      const ours: LoadResult[] = []
      const theirs: LoadResult[] = []
      for (let n = 0; n < rounds; n++) {
        theirs.push(await run(bare, operation))
        ours.push(await run(carillon, operation))
      }
      rows.push({
        name: operation.name,
        ratio: round(median(ours.map((it, i) => it.perSecond / (theirs[i] as LoadResult).perSecond))),
        goal: operation.goal,
        connections: operation.connections,
        perSecond: Math.round(median(ours.map((it) => it.perSecond))),
        referencePerSecond: Math.round(median(theirs.map((it) => it.perSecond))),
        p50Ms: median(ours.map((it) => it.p50Ms)),
        p99Ms: median(ours.map((it) => it.p99Ms)),
      })
      console.log(JSON.stringify(rows.at(-1)))
    }
    return rows
  } finally {
    tool.stop()
    await bare.stop()
  }
}
