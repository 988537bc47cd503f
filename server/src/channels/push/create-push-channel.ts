import { setImmediate } from 'node:timers/promises'
import type { Channel, ChannelOutcome } from '../channel.ts'

type PushChannelOptions<Item> = {
  sendOne(item: Item): Promise<ChannelOutcome>
  closeConnections(): Promise<unknown>
  /** After this many items, the event loop gets a turn. This should be a few milliseconds of work. */
  itemsPerTurn: number
}

/** Creates a channel from a function that sends one item. */
export function createPushChannel<Item>({
  sendOne,
  closeConnections,
  itemsPerTurn: atAStretch,
}: PushChannelOptions<Item>): Channel<Item> {
  const underWay = new Set<Promise<unknown>>()

  /**
   * A bug in our code must not hide the outcomes of the other items. It may have occurred after the message was sent.
   */
  const sendSafely = async (item: Item): Promise<ChannelOutcome> => {
    try {
      return await sendOne(item)
    } catch {
      return { kind: 'unknown', reason: 'fault in the server' }
    }
  }

  async function sendAll(items: readonly Item[]): Promise<ChannelOutcome[]> {
    const outcomes: Promise<ChannelOutcome>[] = []
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
