// People on two journeys that have every kind of node: one is entered by an event, the other by coming into a segment. Clients do
// for them what people do, again and again until a server has taken it.

import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { newId } from '../../src/lib/ids.ts'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import type { Dice, Node, Rig } from './rig.ts'

export type Traveller = {
  id: string
  name: string
  /** Subscriptions by the kind of the node that sends to them. */
  subscriptions: Record<'send_push' | 'send_email' | 'send_sms', { id: string; token: string }>
  /** When a server said that it knows of the purchase. */
  boughtBy?: number
}

// biome-ignore lint/suspicious/noExplicitAny: a journey as it was answered; the assertions are its type
export type Journey = any

export const WAIT_SECONDS = 1
export const EXPIRES_SECONDS = 5
export const GRANT_SECONDS = 86_400
export const MAIL_SHARE = 70
/** Servers that are being killed answer late or not at all. */
const PATIENCE_MS = 10_000

/** By whichever server answers. */
export async function bring(rig: Rig, dice: Dice, method: string, path: string, body: object): Promise<void> {
  for (;;) {
    const url = dice.pick(rig.nodes).url
    const { status } = await rig.ask(url, method, path, body, AbortSignal.timeout(PATIENCE_MS))
    if (status >= 200 && status < 300) return
    expect([0, 503]).toContain(status)
    await pause(20)
  }
}

export async function ready(rig: Rig, method: string, path: string, body?: object): Promise<Journey> {
  const { status, body: answer } = await rig.ask((rig.nodes[0] as Node).url, method, path, body)
  if (status < 200 || status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`)
  return answer
}

export async function admit(rig: Rig, count: number): Promise<Traveller[]> {
  const { keys, box, nodes } = rig
  await fetch(`${(nodes[0] as Node).url}/apps/${keys.appId}/sms_settings`, {
    method: 'PUT',
    headers: { authorization: `Key ${keys.organizationKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(box.smsSettings),
  }).then(({ status }) => expect(status).toBe(200))
  const admitOne = async (i: number): Promise<Traveller> => {
    const name = `traveller-${i}`
    const { identity, subscriptions } = await ready(rig, 'POST', `/apps/${keys.appId}/users`, {
      identity: { external_id: name },
      subscriptions: [
        { type: i % 2 === 0 ? 'AndroidPush' : 'iOSPush', token: newId().replaceAll('-', '').repeat(2) },
        { type: 'Email', token: `${name}@gmail.com` },
        { type: 'SMS', token: `+1555${String(1_000_000 + i)}` },
      ],
    })
    const [send_push, send_email, send_sms] = subscriptions
    return { id: identity.onesignal_id, name, subscriptions: { send_push, send_email, send_sms } }
  }
  const list: Traveller[] = []
  for (let i = 0; i < count; i += 20)
    list.push(...(await Promise.all(Array.from({ length: Math.min(20, count - i) }, (_, n) => admitOne(i + n)))))
  return list
}

const tagIs = (key: string, value: string) => ({ field: 'tag', key, relation: '=', value })

export const aSegment = async (rig: Rig, key: string, value: string): Promise<string> =>
  (
    await ready(rig, 'POST', `/apps/${rig.keys.appId}/segments`, {
      name: `${key}=${value}`,
      filters: [tagIs(key, value)],
    })
  ).id

/** Adds to what the tag says: somebody who was tagged twice by one node is seen. */
const oneMore = (tag: string) => ({ kind: 'tag', assignments: { [tag]: `{{ ${tag} | plus: 1 }}` } })
const aWait = { kind: 'wait', duration_seconds: WAIT_SECONDS }

const onEvent = (name: string, nodes: object[]) => ({ condition: { kind: 'event_trigger', name }, nodes })

/** Every kind of node. Texts say the name of the journey, since nothing else of it is seen by who takes them. */
async function allKinds(rig: Rig, name: string, waitUntil: object): Promise<object[]> {
  const { keys } = rig
  const made = async (path: string, body: object) => (await ready(rig, 'POST', path, body)).id as string
  const template = (body: object) =>
    made('/templates', { app_id: keys.appId, name, contents: { en: '{{ journey.name }}' }, ...body })
  const mail = {
    isEmail: true,
    email_subject: 'On your way',
    email_body: '<p>Have a good time.</p>',
    email_from_address: 'bells@news.example',
  }
  const yes = await aSegment(rig, `${name}_way`, 'mail')
  const iam = { name, contents: { en: { title: 'Hello' } }, state: 'live', audience: 'granted' }
  return [
    oneMore(`${name}_came`),
    aWait,
    { kind: 'send_push', template_id: await template({}) },
    {
      kind: 'split_range',
      randomize_on_entry: name === 'event',
      branches: [
        {
          weight: MAIL_SHARE,
          nodes: [
            { kind: 'send_email', template_id: await template(mail) },
            { kind: 'tag', assignments: { [`${name}_way`]: 'mail' } },
          ],
        },
        {
          weight: 100 - MAIL_SHARE,
          nodes: [
            { kind: 'send_sms', template_id: await template({ isSMS: true }) },
            { kind: 'tag', assignments: { [`${name}_way`]: 'text' } },
          ],
        },
      ],
    },
    aWait,
    {
      kind: 'yes_no',
      branches: [
        {
          condition: { kind: 'segment_membership', included_segment_ids: [yes] },
          nodes: [
            {
              kind: 'send_iam',
              iam_id: await made(`/apps/${keys.appId}/in_app_messages`, iam),
              user_ttl_seconds: GRANT_SECONDS,
            },
          ],
        },
        { nodes: [oneMore(`${name}_texts`)] },
      ],
    },
    {
      kind: 'time_window',
      relative_to: 'schedule_in_timezone',
      // Always open.
      windows: [
        { start: { hour: 0, minute: 0 }, end: { hour: 13, minute: 0 } },
        { start: { hour: 12, minute: 0 }, end: { hour: 0, minute: 0 } },
      ],
    },
    {
      kind: 'send_webhook',
      webhook_id: await made(`/apps/${keys.appId}/journey_webhooks`, { name, url: `https://hooks.example/${name}` }),
    },
    waitUntil,
    oneMore(`${name}_done`),
  ]
}

export async function activate(rig: Rig, fields: object): Promise<Journey> {
  const path = `/apps/${rig.keys.appId}/journeys`
  const journey = await ready(rig, 'POST', path, fields)
  await ready(rig, 'PATCH', `${path}/${journey.id}`, { state: 'active' })
  return journey
}

/** Who waits too long leaves early. */
export const byEvent = async (rig: Rig): Promise<Journey> =>
  activate(rig, {
    name: 'event',
    audience: { kind: 'event_trigger', name: 'came' },
    nodes: await allKinds(rig, 'event', {
      kind: 'wait_until',
      branches: [onEvent('bought', [oneMore('event_bought')])],
      expiration: { duration_seconds: EXPIRES_SECONDS, exits: true },
    }),
  })

/** Waits for ever: whoever is not woken by what they do is stuck. */
export const bySegment = async (rig: Rig): Promise<Journey> =>
  activate(rig, {
    name: 'segment',
    audience: { kind: 'segment', included_segment_ids: [await aSegment(rig, 'plan', 'gold')] },
    nodes: await allKinds(rig, 'segment', {
      kind: 'wait_until',
      branches: [onEvent('bought', [oneMore('segment_bought')]), onEvent('closed', [oneMore('segment_closed')])],
      expiration: null,
    }),
  })

export async function untilActive({ database: { db }, keys }: Rig, journeys: Journey[], deadlineMs: number) {
  const ids = journeys.map(({ id }) => id)
  const open = () =>
    db.query(sql`
    select from journeys where app_id = ${keys.appId} and id = any(${ids}::uuid[]) and state <> 'active'`)
  await until(async () => (await open()).length === 0, deadlineMs)
}

/** Once, however often it had to be said. */
export const happens = ({ keys }: Rig, { name: external_id }: Traveller, name: string) =>
  ['POST', `/apps/${keys.appId}/custom_events`, { events: [{ name, external_id, idempotency_key: newId() }] }] as const

export const goesGold = ({ keys }: Rig, { name }: Traveller) =>
  ['PATCH', `/apps/${keys.appId}/users/by/external_id/${name}`, { properties: { tags: { plan: 'gold' } } }] as const
