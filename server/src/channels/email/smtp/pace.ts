/** No more than so many mails in a second. */
export type SendRate = {
  /** Until the next one may go; zero when that is now. */
  waitMs(): number
  use(): void
}

/** Timers come late; what was due in that time before is made good. */
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
