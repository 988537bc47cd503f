// A few slots that many owners share. The owner that holds the fewest goes first, and among equals the one that has
// waited longest. No owner holds every slot, so that one whose work is slow leaves room for the others.

export type FairSlots = {
  /**
   * Runs when it is the owner's turn. Rejects with `QueueFull` when too much of the owner's work is already waiting,
   * and with the signal's reason when the signal is aborted before the turn.
   */
  run<Result>(owner: string, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result>
  stats(): { running: number; waiting: number }
}

export type FairSlotsOptions = {
  slots: number
  /** How much work of one owner may wait. Defaults to any amount. */
  maxWaitingPerOwner?: number
}

export class QueueFull extends Error {}

type WaitingWork = { start(): void }

export function createFairSlots({ slots, maxWaitingPerOwner = Number.POSITIVE_INFINITY }: FairSlotsOptions): FairSlots {
  const slotsPerOwner = Math.max(1, slots - 1)
  const running = new Map<string, number>()
  /** In the order in which owners take turns: an owner that was served goes to the end. */
  const queues = new Map<string, Set<WaitingWork>>()
  let busy = 0

  const heldBy = (owner: string) => running.get(owner) ?? 0

  function nextOwner(): string | undefined {
    let next: string | undefined
    for (const owner of queues.keys())
      if (heldBy(owner) < slotsPerOwner && (next === undefined || heldBy(owner) < heldBy(next))) next = owner
    return next
  }

  function startWaiting() {
    while (busy < slots) {
      const owner = nextOwner()
      if (owner === undefined) return
      const queue = queues.get(owner) as Set<WaitingWork>
      const [first] = queue as Iterable<WaitingWork> as [WaitingWork]
      queues.delete(owner)
      queue.delete(first)
      if (queue.size > 0) queues.set(owner, queue)
      busy++
      running.set(owner, heldBy(owner) + 1)
      first.start()
    }
  }

  function release(owner: string) {
    busy--
    const left = heldBy(owner) - 1
    if (left > 0) running.set(owner, left)
    else running.delete(owner)
    startWaiting()
  }

  function waitForTurn(owner: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const queue = queues.get(owner) ?? new Set()
      const leave = (reason: unknown) => {
        signal?.removeEventListener('abort', onAbort)
        queue.delete(waiting)
        if (queue.size === 0 && queues.get(owner) === queue) queues.delete(owner)
        reject(reason)
      }
      const onAbort = () => leave(signal?.reason)
      const waiting: WaitingWork = {
        start() {
          signal?.removeEventListener('abort', onAbort)
          resolve()
        },
      }
      queues.set(owner, queue.add(waiting))
      signal?.addEventListener('abort', onAbort)
      startWaiting()
      // Only now is it known whether the work has to wait at all.
      if (queue.has(waiting) && queue.size > maxWaitingPerOwner)
        leave(new QueueFull(`${maxWaitingPerOwner} are waiting already`))
    })
  }

  return {
    async run(owner, work, signal) {
      signal?.throwIfAborted()
      await waitForTurn(owner, signal)
      try {
        return await work()
      } finally {
        release(owner)
      }
    },
    stats: () => ({ running: busy, waiting: [...queues.values()].reduce((sum, { size }) => sum + size, 0) }),
  }
}
