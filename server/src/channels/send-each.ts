// Sends items one by one with bounded concurrency. Shared by all channels that make one request per item.

import type { Channel, ChannelOutcome } from './channel.ts'
import { createLaneSemaphore, createSemaphore } from './gate.ts'

export type SendEachOptions<Item> = {
  /** How many items may be in flight over all calls of `send`. Defaults to no limit. */
  atOnce?: number
  /** Items with the same lane go to the same destination, which gets at most `atOnce` of them at once. */
  lanes?: { of(item: Item): string; atOnce: number }
  sendOne(item: Item): Promise<ChannelOutcome>
  /** Closes the connections, once nothing is in flight any more. */
  release?(): Promise<void>
}

export function sendEach<Item>({
  atOnce = Number.POSITIVE_INFINITY,
  lanes,
  sendOne,
  release,
}: SendEachOptions<Item>): Channel<Item> {
  let isClosing = false
  const underWay = new Set<Promise<unknown>>()
  const gate = createSemaphore(atOnce)
  const laneGate = lanes && createLaneSemaphore(gate, lanes.atOnce)
  const inTurn = <Result>(item: Item, run: () => Promise<Result>) =>
    lanes && laneGate ? laneGate(lanes.of(item), run) : gate.run(run)

  async function sendAll(items: readonly Item[]): Promise<ChannelOutcome[]> {
    // If the provider asks for a pause or refuses the app, the remaining items are not sent.
    let stop: ChannelOutcome | undefined
    return Promise.all(
      items.map((item) =>
        inTurn(item, async () => {
          if (stop) return stop
          // `sendOne` should not throw. If it does, nobody can tell how far it got.
          const outcome = await sendOne(item).catch(
            (): ChannelOutcome => ({ kind: 'unknown', reason: 'internal error' }),
          )
          if (outcome.kind === 'misconfigured' || (outcome.kind === 'retry' && outcome.pausesProvider)) stop = outcome
          return outcome
        }),
      ),
    )
  }

  return {
    async send(items) {
      if (isClosing) return items.map(() => ({ kind: 'retry', reason: 'closing' }))
      const sending = sendAll(items)
      underWay.add(sending)
      try {
        return await sending
      } finally {
        underWay.delete(sending)
      }
    },
    async close() {
      isClosing = true
      await Promise.all(underWay)
      await release?.()
    },
  }
}
