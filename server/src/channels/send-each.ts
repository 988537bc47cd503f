// Sending one by one, a bounded number at once: what all channels with a request for each item share.

import type { Channel, ChannelOutcome } from './channel.ts'
import { createLaneSemaphore, createSemaphore } from './gate.ts'

export type SendEachOptions<Item> = {
  /** Items under way at once, over all calls of `send`; unbounded here unless given. */
  atOnce?: number
  /** Items with the same lane go to the same place, which gets no more than these at once. */
  lanes?: { of(item: Item): string; atOnce: number }
  sendOne(item: Item): Promise<ChannelOutcome>
  /** Lets the connections go, when nothing is under way any more. */
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
    // A provider that asks for a pause, or refuses the app itself, is not asked for each of the others.
    let stop: ChannelOutcome | undefined
    return Promise.all(
      items.map((item) =>
        inTurn(item, async () => {
          if (stop) return stop
          // Nothing in here throws; if it did, nobody could say how far it had come.
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
