// A message to many, from its request until a sink has all of it and the server says so too.

import { setTimeout as sleep } from 'node:timers/promises'
import { moment } from './moment.ts'
import { type Carillon, headersOf, residentMb } from './processes.ts'

/** Nobody waits longer for what does not come. */
export const PATIENCE_MS = 60_000

export const TO_ALL = { included_segments: ['Subscribed Users'] }

export async function sendMessage(carillon: Carillon, body: object): Promise<{ id: string }> {
  const response = await fetch(`${carillon.url}/notifications`, {
    method: 'POST',
    headers: headersOf(carillon),
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as { id?: string }
  if (!response.ok || !answer.id) throw new Error(`no message: ${response.status} ${JSON.stringify(answer)}`)
  return { ...answer, id: answer.id }
}

/** What a sink says of what it has. */
export type Arrived = { count: number; lastMs: number }

/** When the last one came, and what memory the server had meanwhile. */
export async function untilArrived(carillon: Carillon, look: () => Promise<Arrived>, recipients: number) {
  const memory: number[] = []
  let [count, movedMs] = [0, moment()]
  for (;;) {
    const seen = await look()
    memory.push(residentMb(carillon.pid))
    if (seen.count >= recipients) return { lastMs: seen.lastMs, peakMb: Math.max(...memory) }
    if (seen.count > count) movedMs = moment()
    count = seen.count
    if (moment() - movedMs > PATIENCE_MS) throw new Error(`only ${count} of ${recipients} arrived`)
    await sleep(100)
  }
}

/** The server's own account of it. */
export async function checkCounts(carillon: Carillon, id: string, recipients: number) {
  const path = `/notifications/${id}?app_id=${carillon.appId}`
  for (const until = moment() + PATIENCE_MS; ; await sleep(100)) {
    const response = await fetch(carillon.url + path, { headers: headersOf(carillon) })
    const { successful, completed_at } = (await response.json()) as { successful: number; completed_at: number | null }
    if (completed_at !== null && successful === recipients) return
    if (moment() > until) throw new Error(`${successful} of ${recipients} are told to be sent`)
  }
}
