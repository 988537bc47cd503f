// Admits a number of requests per second, one after the other.

export type ResponsePace = {
  /** 0 admits everything at once, including requests that are waiting. */
  set(perSecond: number): void
  /** Resolves to false for a request that was abandoned while it waited; it takes up no turn. */
  turn(isGone: () => boolean): Promise<boolean>
}

/** Timers fire late; a delay of up to this much is made up for. */
const CATCH_UP_MS = 50

export function createPace(): ResponsePace {
  const waiting: { isGone(): boolean; go(mayGo: boolean): void }[] = []
  let perSecond = 0
  let nextAt = 0
  let timer: NodeJS.Timeout | undefined

  function serve() {
    clearTimeout(timer)
    const now = performance.now()
    for (let next = waiting[0]; next; next = waiting[0]) {
      const isGone = next.isGone()
      if (!isGone && perSecond > 0) {
        if (nextAt > now) break
        nextAt = Math.max(nextAt, now - CATCH_UP_MS) + 1000 / perSecond
      }
      waiting.shift()
      next.go(!isGone)
    }
    if (waiting.length > 0) timer = setTimeout(serve, Math.max(1, nextAt - now))
  }

  return {
    set(given) {
      perSecond = given
      nextAt = performance.now()
      serve()
    },
    turn(isGone) {
      if (perSecond === 0) return Promise.resolve(true)
      return new Promise((go) => {
        waiting.push({ isGone, go })
        serve()
      })
    },
  }
}
