// Clients that send through the servers of a rig, and what must be true of all they were told when it is over.

import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { newId } from '../../src/lib/ids.ts'
import { sql } from '../../src/storage/sql.ts'
import { isFull } from './ledger.ts'
import { type Dice, expectCounted, type Rig, takenOf, untilDone, untilSettled } from './rig.ts'

const CLIENTS = isFull ? 12 : 6
/** What the box takes in a second: about what the clients bring, so that something is always under way. */
export const PER_SECOND = 25 * CLIENTS
/** A minute is promised: leases of the dead run for 30 s, and what waited behind them is then sent. Tests share their machine. */
const SETTLED_MS = 900_000
/** What the dead hold is not sent for half a minute: with more than this waiting, clients bring nothing for a while. */
const MOST_WAITING = isFull ? 10_000 : 3_000
const PROVIDERS = ['apns', 'fcm', 'web-push', 'sms']

type Order = { body: object; to: string[] }
export type Senders = { acknowledged: Map<string, string[]>; statuses: Set<number>; stop(): Promise<void> }

/** Clients that bring a message, again and again with its key, until they are told that it was taken. */
export function startSenders(rig: Rig, dice: Dice): Senders {
  const everybody = rig.recipients.map(({ id }) => id)
  const acknowledged = new Map<string, string[]>()
  const statuses = new Set<number>()
  let isSending = true
  let isCrowded = false

  const numbers = rig.numbers.map(({ id }) => id)
  const some = (list: readonly string[]) => [
    ...new Set(Array.from({ length: dice.between(1, 5) }, () => dice.pick(list))),
  ]

  const toSome = (): Order => {
    const isText = numbers.length > 0 && dice.next() < 0.25
    const to = some(isText ? numbers : everybody)
    return { body: { include_subscription_ids: to, ...(isText && { target_channel: 'sms' }) }, to }
  }
  const toAll = (): Order => ({ body: { included_segments: ['Subscribed Users'] }, to: everybody })

  async function bring({ body, to }: Order) {
    const message = { ...body, contents: { en: 'Hello' }, idempotency_key: newId() }
    for (;;) {
      const answer = await rig.create(dice.pick(rig.nodes).url, message)
      statuses.add(answer.status)
      if (answer.status === 200) return acknowledged.set(answer.body.id, to)
      await pause(20)
    }
  }
  async function watch() {
    while (isSending) {
      isCrowded = (await countWaiting(rig)) > MOST_WAITING
      await pause(500)
    }
  }
  async function client() {
    while (isSending) {
      if (!isCrowded) await bring(dice.next() < 0.01 ? toAll() : toSome())
      await pause(dice.between(50, 150))
    }
  }
  const working = [watch(), ...Array.from({ length: CLIENTS }, client)]
  return {
    acknowledged,
    statuses,
    async stop() {
      isSending = false
      await bring(toAll())
      await Promise.all(working)
    },
  }
}

/** Nobody knows while the database is away. */
async function countWaiting({ database, keys }: Rig): Promise<number> {
  try {
    const [found] = await database.db.query<{ waiting: number }>(sql`
      select coalesce(sum(count), 0)::integer as waiting from message_counts
      where app_id = ${keys.appId} and state = 'pending'`)
    return found?.waiting ?? 0
  } catch {
    return 0
  }
}

/** All that was acknowledged arrived once, or is known to be unknown. Answers how much is unknown, by provider. */
export async function expectDelivered(rig: Rig, acknowledged: Senders['acknowledged']): Promise<Map<string, number>> {
  const taken = await takenOf(rig)
  const stored = await rig.deliveries()
  const states = new Map(stored.map((it) => [`${it.messageId} ${it.subscriptionId}`, it]))
  const owed = [...acknowledged].flatMap(([id, to]) => to.map((recipient) => `${id} ${recipient}`))
  const twice = [...taken].filter(([, count]) => count > 1)
  const lost = owed.filter((name) => !taken.has(name) && states.get(name)?.state !== 'unknown')
  const untrue = stored.filter(
    ({ messageId, subscriptionId, state }) =>
      state !== 'unknown' && !(state === 'sent' && taken.has(`${messageId} ${subscriptionId}`)),
  )
  const unasked = [...taken.keys()].filter((name) => !states.has(name))
  expect({ twice, lost, untrue, unasked }).toEqual({ twice: [], lost: [], untrue: [], unasked: [] })
  // Every message of a client was acknowledged in the end, so that there is nothing else.
  expect(stored.length).toBe(owed.length)
  await expectCounted(rig)
  const unknown = new Map(PROVIDERS.map((name) => [name, 0]))
  for (const { state, provider } of stored)
    if (state === 'unknown') unknown.set(provider, (unknown.get(provider) ?? 0) + 1)
  return unknown
}

/** Answers how long it took. */
export async function settle(rig: Rig, senders: Senders): Promise<string> {
  const began = performance.now()
  await rig.setRate(0)
  await senders.stop()
  await untilSettled(rig, SETTLED_MS)
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  if (isFull) await untilDone(rig)
  return seconds
}
