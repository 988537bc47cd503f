/** Limits the number of emails per second. */
export type SendRate = {
  /** The time until the next email may be sent; 0 if it may be sent now. */
  waitMs(): number
  use(): void
}

/** Timers fire late; a delay of up to this much is made up for. */
const LATE_MS = 50

export function createSendRate(perSecond: number): SendRate {
  let nextMs = 0
  return {
    waitMs: () => Math.max(0, nextMs - performance.now()),
    use() {
      nextMs = Math.max(nextMs, performance.now() - LATE_MS) + 1000 / perSecond
    },
  }
}
