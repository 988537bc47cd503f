import { setImmediate } from 'node:timers/promises'
import type { Channel, Outcome } from '../channel.ts'

type Parts<Item> = {
  sendOne(item: Item): Promise<Outcome>
  closeConnections(): Promise<unknown>
  /** After so many items others are served: some milliseconds of work. */
  atAStretch: number
}

/** A channel of a function that sends one item. */
export function createChannel<Item>({ sendOne, closeConnections, atAStretch }: Parts<Item>): Channel<Item> {
  const underWay = new Set<Promise<unknown>>()

  /** A mistake of ours must not hide what became of the others. It may have been made after the message went out. */
  const sendSafely = async (item: Item): Promise<Outcome> => {
    try {
      return await sendOne(item)
    } catch {
      return { kind: 'unknown', reason: 'fault in the server' }
    }
  }

  async function sendAll(items: readonly Item[]): Promise<Outcome[]> {
    const outcomes: Promise<Outcome>[] = []
    for (const item of items) {
      outcomes.push(sendSafely(item))
      if (outcomes.length % atAStretch === 0) await setImmediate()
    }
    return Promise.all(outcomes)
  }

  return {
    send(items) {
      const outcomes = sendAll(items)
      underWay.add(outcomes)
      outcomes.then(() => underWay.delete(outcomes))
      return outcomes
    },
    async close() {
      await Promise.all(underWay)
      await closeConnections()
    },
  }
}
