// People on every channel of a rig, and messages for each of them.

import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { newId } from '../../src/lib/ids.ts'
import type { SinkChannelName as SinkChannel } from '../../src/sink/service.ts'
import { sql } from '../../src/storage/sql.ts'
import { SMPP } from '../sms.ts'
import type { Node, Recipient, Rig } from './rig.ts'

/** `sms`: through a service that speaks as Twilio does; `smpp`: through a message centre, for which there is an app of its own. */
export const channelNames = ['apns', 'fcm', 'web_push', 'smpp', 'sms', 'email'] as const
export type ChannelName = (typeof channelNames)[number]

export type Channel = {
  name: ChannelName
  /** As the box calls it. */
  inBox: SinkChannel
  appId: string
  /** So many new people. */
  subscribe(count: number, where?: readonly string[]): Promise<Recipient[]>
  /** Tells its id, and when it was asked for. Its text is its name: it is all that a text over SMPP is known by. */
  send(to: readonly Recipient[]): Promise<{ id: string; text: string; at: number }>
}

export type Address = { type: string; token: string; web_auth?: string; web_p256?: string }

export async function openChannels(rig: Rig): Promise<Map<ChannelName, Channel>> {
  const { keys, box } = rig
  const url = (rig.nodes[0] as Node).url
  const organization = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Key ${keys.organizationKey}`, 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
    const answer = (await response.json()) as { id: string; formatted_token: string }
    expect(response.status, JSON.stringify(answer)).toBe(200)
    return answer
  }
  const { id: appOfSmpp } = await organization('POST', '/apps', { name: 'Over SMPP' })
  const { formatted_token: keyOfSmpp } = await organization('POST', `/apps/${appOfSmpp}/auth/tokens`, { name: 'chaos' })
  await organization('PUT', `/apps/${appOfSmpp}/delivery_settings`, { limit_factor: 10_000 })
  await organization('PUT', `/apps/${appOfSmpp}/sms_settings`, SMPP)
  await organization('PUT', `/apps/${keys.appId}/sms_settings`, box.smsSettings)

  const channelOf = (name: ChannelName): Channel => {
    const [appId, key] = name === 'smpp' ? [appOfSmpp, keyOfSmpp] : [keys.appId, keys.appKey]
    let sent = 0
    return {
      name,
      inBox: name === 'smpp' ? 'sms' : name,
      appId,
      subscribe: async (count, where) => insertPeople(rig, appId, await newAddresses(rig, name, count, where)),
      async send(to) {
        const at = Date.now()
        const text = newId()
        const node = rig.nodes[++sent % rig.nodes.length] as Node
        const response = await fetch(`${node.url}/notifications`, {
          method: 'POST',
          headers: { authorization: `Key ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            app_id: appId,
            include_subscription_ids: to.map(({ id }) => id),
            ...(name === 'email'
              ? { email_from_address: 'bells@news.example', email_subject: 'They ring', email_body: `<p>${text}</p>` }
              : { contents: { en: text }, target_channel: name === 'smpp' || name === 'sms' ? 'sms' : 'push' }),
          }),
        })
        const body = (await response.json()) as { id: string }
        expect(response.status, JSON.stringify(body)).toBe(200)
        return { id: body.id, text, at }
      },
    }
  }
  return new Map(channelNames.map((name) => [name, channelOf(name)]))
}

/** Of all rigs in this process, so that nobody is subscribed in two apps by chance. */
let people = 0
const number = () => `+1500${String(5_550_000 + ++people)}`
const addresses: Record<ChannelName, (where: readonly string[]) => Address> = {
  apns: () => ({ type: 'iOSPush', token: randomBytes(32).toString('hex') }),
  fcm: () => ({ type: 'AndroidPush', token: randomBytes(32).toString('base64url') }),
  web_push: () => ({ type: 'ChromePush', token: '' }),
  smpp: () => ({ type: 'SMS', token: number() }),
  sms: () => ({ type: 'SMS', token: number() }),
  email: (where) => ({ type: 'Email', token: `person-${++people}@${where[people % where.length]}` }),
}

export async function newAddresses(
  { box }: Rig,
  name: ChannelName,
  count: number,
  where: readonly string[] = ['icloud.com'],
): Promise<Address[]> {
  const made = Array.from({ length: count }, () => addresses[name](where))
  if (name !== 'web_push') return made
  const response = await fetch(`${box.control}/subscriptions`, { method: 'POST', body: JSON.stringify({ count }) })
  return ((await response.json()) as Omit<Address, 'type'>[]).map((it, n) => ({ ...(made[n] as Address), ...it }))
}

/** Straight into the tables: by requests they would take longer than all that is tested with them. */
export async function insertPeople(
  { database: { db } }: Rig,
  appId: string,
  list: readonly Address[],
): Promise<Recipient[]> {
  const rows = JSON.stringify(list.map((it) => ({ ...it, id: newId(), user_id: newId() })))
  await db.query(sql`
    insert into users (app_id, id, subscription_count, first_active, created_at, updated_at)
    select ${appId}::uuid, p.user_id, 1, now(), now(), now() from jsonb_to_recordset(${rows}::jsonb) as p(user_id uuid)`)
  await db.query(sql`
    insert into player_counts as c (app_id, slot, players, subscribed) values (${appId}, 0, ${list.length}, ${list.length})
    on conflict (app_id, slot) do update set players = c.players + excluded.players, subscribed = c.subscribed + excluded.subscribed`)
  return db.query<Recipient>(sql`
    insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, web_auth, web_p256, created_at, updated_at)
    select ${appId}::uuid, p.id, p.user_id, p.type, p.type, p.token, sha256(convert_to(p.token, 'UTF8')), p.web_auth, p.web_p256, now(), now()
    from jsonb_to_recordset(${rows}::jsonb)
      as p(id uuid, user_id uuid, type text, token text, web_auth text, web_p256 text)
    returning id, token`)
}
