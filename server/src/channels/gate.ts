// Limits concurrency: in total, and for each lane of work that would otherwise slow down the others.

export type Semaphore = { run<Result>(run: () => Promise<Result>): Promise<Result>; isIdle(): boolean }

export function createSemaphore(places: number): Semaphore {
  let taken = 0
  const waiting: (() => void)[] = []
  return {
    async run(run) {
      // A finished task passes its slot directly to the next one that waits, so that a later caller cannot take it
      // first.
      if (taken < places) taken++
      else await new Promise<void>((go) => waiting.push(go))
      try {
        return await run()
      } finally {
        const next = waiting.shift()
        if (next) next()
        else taken--
      }
    },
    isIdle: () => taken === 0,
  }
}

/** Also limits how many tasks of each lane run at once. */
export function createLaneSemaphore(gate: Semaphore, perLane: number) {
  const lanes = new Map<string, Semaphore>()
  /** Acquires the lane's slot first: a task that waits for a slow lane must not hold a slot that others could use. */
  return async <Result>(lane: string, run: () => Promise<Result>): Promise<Result> => {
    const own = lanes.get(lane) ?? createSemaphore(perLane)
    lanes.set(lane, own)
    try {
      return await own.run(() => gate.run(run))
    } finally {
      if (own.isIdle()) lanes.delete(lane)
    }
  }
}
