// Work of several owners, a few pieces at once. Of each owner one piece runs at a time, and owners take turns: however much one of them
// asks for, another waits for at most one piece of it.

import { RateLimited } from '../lib/errors.ts'

export type TurnsSettings = {
  /** Pieces at once, each of another owner. */
  atOnce: number
  /** Of one owner, the one that runs included; who asks for more is told to come back. */
  mostOfOwner: number
  retryAfterSeconds: number
}

/** Runs it when its turn has come. Throws `RateLimited` where the owner has too many already. */
export type TakeTurn = <Result>(owner: string, run: () => Promise<Result>) => Promise<Result>

export function createTurns({ atOnce, mostOfOwner, retryAfterSeconds }: TurnsSettings): TakeTurn {
  /** Whose turn was longest ago comes first. */
  const waiting = new Map<string, (() => void)[]>()
  const running = new Set<string>()

  function serve() {
    for (const [owner, [next, ...rest]] of waiting) {
      if (running.size >= atOnce) return
      if (running.has(owner)) continue
      waiting.set(owner, rest)
      if (rest.length === 0) waiting.delete(owner)
      running.add(owner)
      next?.()
    }
  }

  function putLast(owner: string) {
    const rest = waiting.get(owner)
    waiting.delete(owner)
    if (rest) waiting.set(owner, rest)
  }

  return async (owner, run) => {
    const ahead = waiting.get(owner) ?? []
    if (ahead.length + (running.has(owner) ? 1 : 0) >= mostOfOwner) throw new RateLimited(retryAfterSeconds)
    await new Promise<void>((go) => {
      waiting.set(owner, [...ahead, go])
      serve()
    })
    try {
      return await run()
    } finally {
      running.delete(owner)
      putLast(owner)
      serve()
    }
  }
}
