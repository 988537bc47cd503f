// A webhook that wants to hear of all that is sent, and what must be true of what it heard.

import { expect } from 'vitest'
import { SEND_EVENT_WEBHOOKS } from '../../src/feedback/send-event-webhooks.ts'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import type { Node, Rig } from './rig.ts'

/** A request that was not answered is sent again after a lease, and then after pauses that double. Tests share their machine. */
const TOLD_MS = 180_000

type Event = { id: string; kind: string; message_id: string; subscription_id: string }
type Request = { id: string; body: string; events: Event[] }

/** Requests whose answer is lost: the receiver has them, and gets them again. */
const LOST = 2

export async function listenToEvents({ keys, nodes, box }: Rig): Promise<void> {
  const response = await fetch(`${(nodes[0] as Node).url}/apps/${keys.appId}/event_webhooks`, {
    method: 'POST',
    headers: { authorization: `Key ${keys.organizationKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: 'https://shop.example/events', kinds: ['sent'] }),
  })
  expect(response.ok, await response.text()).toBe(true)
  const lost = { channel: 'webhook', fault: 'reset_after_accept', count: LOST }
  await fetch(`${box.control}/faults`, { method: 'POST', body: JSON.stringify(lost) })
}

async function requestsOf({ taken }: Rig): Promise<Request[]> {
  const requests = (await taken()).filter(({ channel }) => channel === 'webhook')
  return requests.map(({ message_id, text }) => ({
    id: message_id ?? '',
    body: text ?? '',
    events: JSON.parse(text ?? '').data.events,
  }))
}

/** Of each delivery that was sent, and of no other, it heard of one event: whenever it comes again, in the same request. */
export async function expectTold(rig: Rig): Promise<string> {
  const sent = (await rig.deliveries()).filter(({ state }) => state === 'sent')
  const names = new Set(sent.map(({ messageId, subscriptionId }) => `${messageId} ${subscriptionId}`))
  const nameOf = (it: Event) => `${it.message_id} ${it.subscription_id}`
  const untold = async () => {
    const told = new Set((await requestsOf(rig)).flatMap(({ events }) => events.map(nameOf)))
    return [...names].filter((name) => !told.has(name))
  }
  await until(async () => (await untold()).length === 0, TOLD_MS).catch(async (error) => {
    const jobs = await rig.database.db.query(sql`
      select key, state, run_at, lease_until, attempts, crashes from jobs
      where app_id = ${rig.keys.appId} and name = ${SEND_EVENT_WEBHOOKS}`)
    throw new Error(
      `${error.message}; not told of ${(await untold()).length} of ${names.size}; jobs: ${JSON.stringify(jobs)}`,
    )
  })
  const requests = await requestsOf(rig)
  const requestOf = new Map<string, string>()
  const bodyOf = new Map<string, string>()
  const eventOf = new Map<string, string>()
  const wrong: string[] = []
  for (const { id, body, events } of requests) {
    if ((bodyOf.get(id) ?? body) !== body) wrong.push(`${id} came with another body`)
    bodyOf.set(id, body)
    for (const event of events) {
      const name = nameOf(event)
      if (event.kind !== 'sent' || !names.has(name)) wrong.push(`${event.kind} ${name} is not so`)
      if ((requestOf.get(event.id) ?? id) !== id) wrong.push(`${name} came in another request`)
      if ((eventOf.get(name) ?? event.id) !== event.id) wrong.push(`${name} is two events`)
      requestOf.set(event.id, id)
      eventOf.set(name, event.id)
    }
  }
  expect(wrong).toEqual([])
  expect(requests.length - bodyOf.size).toBeGreaterThanOrEqual(LOST)
  return `${names.size} events in ${bodyOf.size} requests, ${requests.length - bodyOf.size} came again`
}
