// What all attackers have in common: each does one thing that hurts, without pause, with the rights of an ordinary app.

import { setTimeout as pause } from 'node:timers/promises'
import type { FaultName, FaultOccurrence } from '../../../src/sink/faults.ts'
import type { SinkChannelName as SinkChannel } from '../../../src/sink/service.ts'
import { until } from '../../process/launch.ts'
import { type ChannelName, insertPeople, newAddresses } from '../channels.ts'
import { isFull } from '../ledger.ts'
import type { Node, Recipient, Rig } from '../rig.ts'

/** The rig of an attacker is that of the hostile app: its keys, on servers that it shares with everybody. */
export type Attacker = {
  name: string
  /** The channels of the provider stand-ins that fail for its recipients. Faults there are lifted after the attack. */
  channels: readonly SinkChannel[]
  prepare(rig: Rig): Promise<void>
  /** Resolves once the attack has taken hold. */
  start(rig: Rig): Promise<Attack>
}

export type Attack = { stop(): Promise<void> }

/** Users of the hostile app. */
export const AUDIENCE = isFull ? 20_000 : 2_000
/** Recipients on each channel whose provider never answers. */
export const HANGING = 300
const PAUSE_MS = 100

export const urlOf = ({ nodes }: Rig) => (nodes[0] as Node).url

/** So many clients that do one thing again and again, until it is over; what they then wait for is abandoned. */
export function repeat(clients: number, act: (signal: AbortSignal, client: number) => Promise<unknown>): Attack {
  const isOver = new AbortController()
  const client = async (number: number) => {
    while (!isOver.signal.aborted) {
      await act(isOver.signal, number)
      await pause(PAUSE_MS)
    }
  }
  const working = Array.from({ length: clients }, (_, number) => client(number))
  return {
    async stop() {
      isOver.abort()
      await Promise.all(working)
    },
  }
}

export const together = (...attacks: Attack[]): Attack => ({
  stop: async () => void (await Promise.all(attacks.map((attack) => attack.stop()))),
})

/** Breaks what the provider does with messages to these recipients, or to all of the channel; null repairs it. */
export async function setFault(
  { box }: Rig,
  channel: SinkChannel,
  fault: FaultName | null,
  to?: readonly Recipient[],
): Promise<void> {
  // The box takes bodies of 1 MB.
  for (let at = 0; at < (to?.length ?? 1); at += 1_000) {
    const addresses = to?.slice(at, at + 1_000).map(({ token }) => token)
    const body = JSON.stringify({ channel, fault, ...(addresses && { to: addresses }) })
    const response = await fetch(`${box.control}/faults`, { method: 'POST', body })
    if (response.status !== 200) throw new Error(`the box refused a fault: ${await response.text()}`)
  }
}

/** Until the provider has failed so many times since then. */
export async function untilFailing(
  { box }: Rig,
  channels: readonly SinkChannel[],
  times: number,
  sinceMs: number,
): Promise<void> {
  const failed = async () => (await (await fetch(`${box.control}/faults?since=${sinceMs}`)).json()) as FaultOccurrence[]
  await until(async () => {
    const mishaps = await failed()
    return channels.every((name) => mishaps.filter(({ channel }) => channel === name).length >= times)
  })
}

export const subscribe = async (rig: Rig, name: ChannelName, count: number, where?: readonly string[]) =>
  insertPeople(rig, rig.keys.appId, await newAddresses(rig, name, count, where))

/** One message to all of them, in the bulk lane where there are more than a hundred. */
export const sendPush = (rig: Rig, to: readonly Recipient[], text = 'Hello') =>
  rig.create(urlOf(rig), { include_subscription_ids: to.map(({ id }) => id), contents: { en: text } })

export const sendMail = (rig: Rig, to: readonly Recipient[]) =>
  rig.create(urlOf(rig), {
    include_subscription_ids: to.map(({ id }) => id),
    email_from_address: 'bells@hostile.example',
    email_subject: 'Hello',
    email_body: '<p>Hello</p>',
  })

/** A direct message to each of them, ten requests at once. */
export async function sendOneByOne(
  to: readonly Recipient[],
  send: (to: readonly Recipient[]) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < to.length; at += 10)
    await Promise.all(to.slice(at, at + 10).map((recipient) => send([recipient])))
}
