// Time is an argument. There are two times:
//   now()     business time, in every rule; virtual in tests and dry runs
//   leaseMs() time for leases, limits and heartbeats; never virtual, anchored to PostgreSQL's clock

export type Clock = {
  now(): Date
  /** Milliseconds since the epoch, the same on every node to within the last measured offset. */
  leaseMs(): number
}

export type SystemClock = Clock & {
  /** Adopts PostgreSQL's time, read in a round trip that began and ended at these local monotonic times. */
  anchor(databaseMs: number, beganMs: number, endedMs: number): void
  /** How far the machine's wall clock is from PostgreSQL's, for `carillon doctor`. */
  driftMs(): number
}

/** Monotonic between anchors: a step of the machine's wall clock changes nothing. */
export function systemClock(): SystemClock {
  let offsetMs = Date.now() - performance.now()
  let drift = 0
  const leaseMs = () => performance.now() + offsetMs
  return {
    now: () => new Date(Math.floor(leaseMs())),
    leaseMs,
    anchor(databaseMs, beganMs, endedMs) {
      const middle = (beganMs + endedMs) / 2
      offsetMs = databaseMs - middle
      drift = Date.now() - leaseMs()
    },
    driftMs: () => drift,
  }
}

type ClockStep = { ms?: number; seconds?: number; minutes?: number; hours?: number; days?: number }
const inMs = ({ ms = 0, seconds = 0, minutes = 0, hours = 0, days = 0 }: ClockStep) =>
  ms + 1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days)))

export type VirtualClock = Clock & { advance(step: ClockStep): void; advanceLease(step: ClockStep): void }

/** Business time and lease time advance separately, so that a test of one cannot depend on the other. */
export function virtualClock(start: string | Date = '2030-01-01T09:00:00Z'): VirtualClock {
  let business = new Date(start).getTime()
  let lease = business
  return {
    now: () => new Date(business),
    leaseMs: () => lease,
    advance: (step) => {
      business += inMs(step)
    },
    advanceLease: (step) => {
      lease += inMs(step)
    },
  }
}
