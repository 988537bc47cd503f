// Things under way at once are bounded: all of them, and those that would get in each other's way.

export type Gate = { pass<Result>(run: () => Promise<Result>): Promise<Result>; isIdle(): boolean }

export function createGate(places: number): Gate {
  let taken = 0
  const waiting: (() => void)[] = []
  return {
    async pass(run) {
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
export function createLaneGate(gate: Gate, perLane: number) {
  const lanes = new Map<string, Gate>()
  /** The lane first: what waits for a slow place must not hold a slot that others could use. */
  return async <Result>(lane: string, run: () => Promise<Result>): Promise<Result> => {
    const own = lanes.get(lane) ?? createGate(perLane)
    lanes.set(lane, own)
    try {
      return await own.pass(() => gate.pass(run))
    } finally {
      if (own.isIdle()) lanes.delete(lane)
    }
  }
}
