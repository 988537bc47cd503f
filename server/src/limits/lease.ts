// What a node may let in of one counter that several nodes share. Three things count against the limit:
//   - the log of what was let in, by anybody;
//   - the holds of other nodes: so many each may still let in, until a time;
//   - what this node holds itself.
// All three are one row in PostgreSQL. A node reads the row, decides what it would take, and writes that down on condition
// that the row is still the one that it has read; otherwise it gets the row as it is now and decides again. So a decision
// is one statement, nobody waits for a lock that another node holds, and a node that dies takes nothing with it: what it
// held stays counted until it would have left the window.

import { LONGEST_WINDOW_MS } from './rules.ts'
import type { Demand } from './take.ts'
import {
  emptyWindow,
  livingLog,
  mergeLogs,
  record,
  SHARED_GRAIN,
  unrecord,
  type Window,
  waitMs,
  windowOf,
} from './window.ts'

export type CounterHold = { untilMs: number; count: number; holder: number }

/** A row as it was last seen, and what this node has of it. */
export type CounterLease = {
  /** Of the row; 0 when nothing is known of one. */
  stamp: number
  log: Window
  /** Those of other nodes. */
  holds: CounterHold[]
  /** What this node may still let in, until then. */
  left: number
  untilMs: number
  /** Let in out of what it held, and not in the log yet; and when the last of them was. */
  used: number
  usedAtMs: number
  /** Granted to the requests that are being decided, and in the log already. */
  granted: number
  /** In the log, as of then, and not let in after all. */
  returned: number
  returnedAtMs: number
  /** Counted in memory before, and in no row yet. */
  unwritten: number[] | undefined
  /** The unwritten log is all there is, whatever the row says. */
  isWhole: boolean
  /** Asked for since the last statement. */
  asked: number
  statedMs: number
  /** What this node would like to hold. */
  wished: number
  /** The limit as last asked for. */
  limit: number
}

export const newLease = (): CounterLease => ({
  stamp: 0,
  log: emptyWindow(),
  holds: [],
  left: 0,
  untilMs: Number.NEGATIVE_INFINITY,
  used: 0,
  usedAtMs: Number.NEGATIVE_INFINITY,
  granted: 0,
  returned: 0,
  returnedAtMs: Number.NEGATIVE_INFINITY,
  unwritten: undefined,
  isWhole: false,
  asked: 0,
  statedMs: Number.NEGATIVE_INFINITY,
  wished: 0,
  limit: 0,
})

/** What is held is for the near future; unused, it counts no longer than this and the window. */
const HOLD_MS = 1_000
/** A busy node holds what it will let in during so long. */
const AHEAD_MS = 250
const SHORTEST_MEASURE_MS = 50
/** All nodes together hold at most this share of a limit, so that nobody is refused much because of what others hold. */
const HELD_SHARE = 0.05
/** And nothing is held when so little is left that somebody may need it at once. */
const FREE_SHARE = 0.2

export type Proposal = {
  log: Window
  hold: number
  untilMs: number
  /** For the requests that are being decided. */
  granted: number
  /** For later ones, of the hold. */
  added: number
  settled: number
  returned: number
  atMs: number
}

/** What the row would be after this node has written down what it did, and taken `need`, and what it will soon need. */
export function propose(lease: CounterLease, demand: Demand | undefined, need: number, now: number): Proposal {
  if (demand) lease.limit = demand.limit
  lease.holds = lease.holds.filter(({ untilMs }) => untilMs + LONGEST_WINDOW_MS > now)
  const log = writtenLog(lease)
  const left = now < lease.untilMs ? lease.left : 0
  const proposal = {
    ...{ log, hold: left, untilMs: left > 0 ? lease.untilMs : now, granted: 0, added: 0 },
    ...{ settled: lease.used, returned: lease.returned, atMs: now },
  }
  if (!demand) return proposal
  const room = roomIn(log, lease.holds, demand, now) - left
  // Besides what is held, which other requests may use up meanwhile.
  proposal.granted = Math.max(0, Math.min(need, room))
  record(log, now, demand.limit, SHARED_GRAIN, proposal.granted)
  proposal.added = worthHolding(lease, demand, left, room - proposal.granted, now)
  proposal.hold = left + proposal.added
  if (proposal.added > 0) proposal.untilMs = now + HOLD_MS
  return proposal
}

function writtenLog(lease: CounterLease): Window {
  const log = windowOf(mergeLogs(lease.isWhole ? [] : livingLog(lease.log), lease.unwritten ?? []))
  unrecord(log, lease.returnedAtMs, lease.returned)
  record(log, lease.usedAtMs, lease.limit, SHARED_GRAIN, lease.used)
  return log
}

function roomIn(log: Window, holds: readonly CounterHold[], demand: Demand, now: number): number {
  waitMs(log, now, demand)
  return demand.limit - log.total - heldBy(holds, demand, now)
}

const heldBy = (holds: readonly CounterHold[], { windowMs }: Demand, now: number) =>
  holds.reduce((sum, { untilMs, count }) => sum + (untilMs + windowMs > now ? count : 0), 0)

function worthHolding(lease: CounterLease, demand: Demand, left: number, room: number, now: number): number {
  const { limit } = demand
  if (limit <= SHARED_GRAIN.exactUpTo) return 0
  const measuredMs = Math.max(SHORTEST_MEASURE_MS, now - lease.statedMs)
  lease.wished = Math.ceil((lease.asked * AHEAD_MS) / measuredMs)
  const most = Math.floor(limit * HELD_SHARE) - heldBy(lease.holds, demand, now) - left
  return Math.max(0, Math.min(lease.wished - left, most, Math.floor(room - limit * FREE_SHARE)))
}

/** The row is now what was proposed. Meanwhile some more may have been let in out of what was held before. */
export function apply(lease: CounterLease, { log, added, untilMs, settled, returned, atMs }: Proposal, stamp: number) {
  if (added > 0 && lease.untilMs <= atMs) lease.left = 0
  lease.stamp = stamp
  lease.log = log
  lease.left += added
  lease.untilMs = untilMs
  lease.used -= settled
  lease.returned -= returned
  lease.unwritten = undefined
  lease.isWhole = false
  lease.asked = 0
  lease.statedMs = atMs
}

/** Somebody else has changed the row. */
export function learn(lease: CounterLease, stamp: number, state: string, me: number) {
  const { log, holds } = decode(state)
  lease.stamp = stamp
  lease.log = windowOf(log)
  lease.holds = holds.filter(({ holder }) => holder !== me)
  // What was to be taken out of the log of before may not be in this one.
  lease.returned = 0
}

export const hasToken = (lease: CounterLease, now: number) =>
  lease.granted > 0 || (lease.left > 0 && now < lease.untilMs)

export function spend(lease: CounterLease, now: number) {
  if (lease.granted > 0) lease.granted--
  else {
    lease.left--
    lease.used++
    lease.usedAtMs = Math.max(lease.usedAtMs, now)
  }
}

/** The requests are decided: what was granted to them and is left must not be let in later. */
export function endGrant(lease: CounterLease, atMs: number) {
  if (lease.granted === 0) return
  lease.returned += lease.granted
  lease.returnedAtMs = atMs
  lease.granted = 0
}

/** What is held is enough for so many. */
export const covers = (lease: CounterLease, count: number, now: number) => lease.left >= count && now < lease.untilMs

/** Soon there will be nothing left. */
export const runsOut = (lease: CounterLease) => lease.wished > 0 && lease.left <= lease.wished / 2

export const hasUnwritten = (lease: CounterLease) =>
  lease.unwritten !== undefined || lease.used > 0 || lease.returned > 0 || lease.left > 0

/** How long to wait for all that is known: the log, what others hold, and what this node holds. 0 when there may be room. */
export function waitFor(lease: CounterLease, demand: Demand, now: number): number {
  if (lease.holds.length === 0) return waitMs(lease.log, now, demand)
  const held = lease.holds.flatMap(({ untilMs, count }) => [untilMs, count])
  return waitMs(windowOf(mergeLogs(livingLog(lease.log), held)), now, demand)
}

/**
 * The same, where it is certain without asking: what is in the log stays until it has left the window, but what others hold
 * may be given back.
 */
export const certainWait = (lease: CounterLease, demand: Demand, now: number) =>
  lease.returned > 0 || lease.unwritten !== undefined ? 0 : waitMs(lease.log, now, demand)

/** As kept in the row, which PostgreSQL does not look into: the log, then the holds. */
export function encode({ log, hold, untilMs }: Proposal, lease: CounterLease, me: number): string {
  const holds = lease.holds.flatMap(({ untilMs, count, holder }) => [untilMs, count, holder])
  if (hold > 0) holds.push(untilMs, hold, me)
  return `${livingLog(log).join(' ')}|${holds.join(' ')}`
}

function decode(state: string): { log: number[]; holds: CounterHold[] } {
  const [log = [], held = []] = state.split('|').map((list) => (list === '' ? [] : list.split(' ').map(Number)))
  const holds: CounterHold[] = []
  for (let i = 0; i < held.length; i += 3)
    holds.push({ untilMs: held[i] as number, count: held[i + 1] as number, holder: held[i + 2] as number })
  return { log, holds: holds.toSorted((left, right) => left.untilMs - right.untilMs) }
}

/** Nothing in the row matters later than this and the longest window. */
export const lastMs = ({ log, hold, untilMs }: Proposal, lease: CounterLease) =>
  Math.max(
    log.log.at(-2) ?? Number.NEGATIVE_INFINITY,
    hold > 0 ? untilMs : Number.NEGATIVE_INFINITY,
    ...lease.holds.map((hold) => hold.untilMs),
    0,
  )
