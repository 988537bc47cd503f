// Things under way at once are bounded: all of them, and those that would get in each other's way.

export type Semaphore = { run<Result>(run: () => Promise<Result>): Promise<Result>; isIdle(): boolean }

export function createSemaphore(places: number): Semaphore {
  let taken = 0
  const waiting: (() => void)[] = []
  return {
    async run(run) {
      // A place is handed on, not put back: nobody who comes later can slip in between.
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

/** With at most so many of each lane. */
export function createLaneSemaphore(gate: Semaphore, perLane: number) {
  const lanes = new Map<string, Semaphore>()
  /** The lane first: what waits for a slow place must not hold a slot that others could use. */
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
