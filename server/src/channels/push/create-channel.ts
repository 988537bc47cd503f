import { setImmediate } from 'node:timers/promises'
import type { Channel, Outcome } from '../channel.ts'

/** Encrypting so many messages for web push takes some milliseconds; others want to be served in between. */
const AT_A_STRETCH = 16

/** A channel of a function that sends one item. */
export function createChannel<Item>(
  sendOne: (item: Item) => Promise<Outcome>,
  closeConnections: () => Promise<unknown>,
): Channel<Item> {
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
      if (outcomes.length % AT_A_STRETCH === 0) await setImmediate()
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
