// A well-behaved app beside others: what it sends and asks for, and how long that takes.

import { setTimeout as pause } from 'node:timers/promises'
import { newId } from '../../src/lib/ids.ts'
import type { SinkDelivery as Taken } from '../../src/sink/deliveries.ts'
import { sql } from '../../src/storage/sql.ts'
import { aP12 } from '../credentials.ts'
import { until } from '../process/launch.ts'
import { type ChannelName, insertPeople, newAddresses } from './channels.ts'
import { isFull } from './ledger.ts'
import { type Answer, askAs, type Node, type Recipient, type Rig, untilSettled } from './rig.ts'

const PUSH: readonly ChannelName[] = ['apns', 'fcm', 'web_push']
/** Direct messages on each channel, in one measurement. */
const DIRECT = isFull ? 60 : 12
const EVERY_MS = 100
/** Those who get the bulk message, on each channel of push. */
const BULK_EACH = isFull ? 300 : 60
const PREVIEWS = isFull ? 20 : 5
const UPLOADS = isFull ? 4 : 2
/** What has not arrived by then counts as having taken so long, and is told as late. */
export const DEADLINE_MS = isFull ? 120_000 : 60_000
/** From the arrival of the last message to the rows that say so. */
const SETTLED_MS = 60_000

export const subjects = ['direct push', 'direct mail', 'bulk', 'segment preview', 'template preview', 'p12'] as const
export type Subject = (typeof subjects)[number]
/** Milliseconds: from the request to the arrival for messages, otherwise to the answer. */
export type Measured = {
  tookMs: Map<Subject, number[]>
  /** By subject and status: all that was not answered with 2xx. */
  refusals: Map<string, number>
  late: number
  /** Deliveries that are neither sent nor on their way, by state. */
  lost: Map<string, number>
}

export type Victim = { measure(): Promise<Measured> }

export async function openVictim(rig: Rig): Promise<Victim> {
  const { keys } = rig
  const { url } = rig.nodes[0] as Node
  const subscribe = async (name: ChannelName, count: number) =>
    insertPeople(rig, keys.appId, await newAddresses(rig, name, count))
  const devices = new Map<ChannelName, Recipient[]>()
  for (const name of PUSH) devices.set(name, await subscribe(name, BULK_EACH))
  const mailboxes = await subscribe('email', DIRECT)
  await rig.ask(url, 'POST', `/apps/${keys.appId}/users`, { identity: { external_id: 'reader' } })
  const file = { apns_p12: aP12('secret'), apns_p12_password: 'secret' }
  // Certificates go to another app of the same organization: this one sends with its own credentials.
  const { body: other } = await askAs(keys.organizationKey, url, 'POST', '/apps', { name: 'With a certificate' })

  async function measure(): Promise<Measured> {
    const beganMs = Date.now()
    const measured: Measured = { tookMs: new Map(), refusals: new Map(), late: 0, lost: new Map() }
    const sent = new Map<string, { subject: Subject; askedMs: number; recipients: number }>()
    const note = (subject: Subject, tookMs: number) =>
      measured.tookMs.set(subject, [...(measured.tookMs.get(subject) ?? []), tookMs])
    const isTaken = (subject: Subject, { status }: Answer) => {
      if (status >= 200 && status < 300) return true
      const name = `${subject} ${status}`
      measured.refusals.set(name, (measured.refusals.get(name) ?? 0) + 1)
      return false
    }
    const send = async (subject: Subject, body: object, recipients = 1) => {
      const askedMs = Date.now()
      const answer = await rig.create(url, { ...body, idempotency_key: newId() })
      if (isTaken(subject, answer)) sent.set(answer.body.id, { subject, askedMs, recipients })
    }
    const ask = async (subject: Subject, request: () => Promise<Answer>) => {
      const askedMs = performance.now()
      isTaken(subject, await request())
      note(subject, performance.now() - askedMs)
    }
    /** At their times, whether or not those before have been answered: who waits must not slow down who measures. */
    const at = async (count: number, everyMs: number, act: (n: number) => Promise<void>) => {
      const acts: Promise<void>[] = []
      for (let n = 0; n < count; n++) {
        acts.push(act(n))
        await pause(everyMs)
      }
      await Promise.all(acts)
    }
    const direct = [
      ...PUSH.map((name) => () => {
        const to = devices.get(name) as Recipient[]
        return at(DIRECT, EVERY_MS, (n) =>
          send('direct push', { include_subscription_ids: [to[n]?.id], contents: { en: 'Hello, {{ name }}' } }),
        )
      }),
      () =>
        at(DIRECT, EVERY_MS, (n) =>
          send('direct mail', {
            include_subscription_ids: [mailboxes[n]?.id],
            email_from_address: 'bells@news.example',
            email_subject: 'Hello',
            email_body: '<p>Hello, {{ name }}</p>',
          }),
        ),
    ]
    const bulk = () =>
      send(
        'bulk',
        { included_segments: ['Subscribed Users'], target_channel: 'push', contents: { en: 'Hello, all' } },
        PUSH.length * BULK_EACH,
      )
    const filters = [{ field: 'tag', key: 'colour', relation: '=', value: 'red' }]
    const requests = [
      () =>
        at(PREVIEWS, 2 * EVERY_MS, () =>
          ask('segment preview', () => rig.ask(url, 'POST', `/apps/${keys.appId}/segments/preview`, { filters })),
        ),
      () =>
        at(PREVIEWS, 2 * EVERY_MS, () =>
          ask('template preview', () =>
            rig.ask(url, 'POST', '/templates/preview', {
              app_id: keys.appId,
              contents: { en: 'Hello, {{ name }}' },
              alias_label: 'external_id',
              alias_id: 'reader',
            }),
          ),
        ),
      () =>
        at(UPLOADS, 4 * EVERY_MS, () =>
          ask('p12', () => askAs(keys.organizationKey, url, 'PUT', `/apps/${other.id}`, file)),
        ),
    ]
    await Promise.all([bulk(), ...direct.map((act) => act()), ...requests.map((act) => act())])

    const arrivals = async () => {
      const response = await fetch(`${rig.box.control}/deliveries?since=${beganMs}`)
      const taken = ((await response.json()) as Taken[]).filter(({ message_id }) => sent.has(message_id ?? ''))
      return Map.groupBy(taken, ({ message_id }) => message_id as string)
    }
    const haveAllArrived = async () => {
      const arrived = await arrivals()
      return [...sent].every(([id, { recipients }]) => (arrived.get(id)?.length ?? 0) >= recipients)
    }
    const leftMs = Math.max(0, beganMs + DEADLINE_MS - Date.now())
    await until(haveAllArrived, leftMs).catch(() => {})
    const arrived = await arrivals()
    for (const [id, { subject, askedMs, recipients }] of sent) {
      const list = arrived.get(id) ?? []
      if (list.length < recipients) measured.late += recipients - list.length
      const lastMs = list.length < recipients ? Date.now() : Math.max(...list.map((it) => it.at))
      note(subject, lastMs - askedMs)
    }
    await untilSettled(rig, SETTLED_MS).catch(() => {})
    const states = await rig.database.db.query<{ state: string; reason: string | null; count: number }>(sql`
      select state, reason, count(*)::integer as count from deliveries
      where app_id = ${keys.appId} and message_id = any(${[...sent.keys()]}::uuid[]) and state <> 'sent'
      group by state, reason`)
    for (const { state, reason, count } of states) measured.lost.set(`${state} ${reason ?? ''}`.trim(), count)
    return measured
  }
  return { measure }
}

export const percentile = (list: readonly number[], share: number) =>
  list.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(list.length * share) - 1)] ?? 0
