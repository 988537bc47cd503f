// What one node may admit from a counter that several nodes share. Three things count against the limit:
// - the log of what any node admitted;
// - the holds of other nodes: how many requests each may still admit, until a time;
// - what this node holds itself.
// All three are one row in PostgreSQL. A node reads the row, decides how much to take, and writes that on condition
// that the row has not changed; otherwise it gets the current row and decides again. So a decision is one statement, no
// node waits for a lock of another, and a dead node loses nothing: what it held stays counted until it would have left
// the window.

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

/** A row as last seen, and this node's part of it. */
export type CounterLease = {
  /** Identifies the version of the row; 0 when no row is known. */
  stamp: number
  log: Window
  /** The holds of other nodes. */
  holds: CounterHold[]
  /** How many requests this node may still admit, until `untilMs`. */
  left: number
  untilMs: number
  /** Requests admitted from the hold that are not in the log yet, and the time of the last of them. */
  used: number
  usedAtMs: number
  /** Granted to the requests that are being decided, and already in the log. */
  granted: number
  /** In the log as of that time, but not admitted in the end. */
  returned: number
  returnedAtMs: number
  /** Counted in memory before, and not in any row yet. */
  unwritten: number[] | undefined
  /** The unwritten log is complete, whatever the row says. */
  isWhole: boolean
  /** Requests since the last statement. */
  asked: number
  statedMs: number
  /** How many requests this node would like to hold. */
  wished: number
  /** The limit of the latest demand. */
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

/** A hold is for the near future; an unused one counts no longer than this plus the window. */
const HOLD_MS = 1_000
/** A busy node holds what it expects to admit during this time. */
const AHEAD_MS = 250
const SHORTEST_MEASURE_MS = 50
/**
 * All nodes together hold at most this share of a limit, so that few requests are refused because of what other nodes
 * hold.
 */
const HELD_SHARE = 0.05
/** Nothing is held when less than this share of the limit is left, because another node may need it at once. */
const FREE_SHARE = 0.2

export type Proposal = {
  log: Window
  hold: number
  untilMs: number
  /** For the requests that are being decided. */
  granted: number
  /** For later requests, added to the hold. */
  added: number
  settled: number
  returned: number
  atMs: number
}

/**
 * The row as it would be after this node has recorded what it admitted, and has taken `need` and what it expects to
 * need soon.
 */
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
  // In addition to what is held, which other requests may use up in the meantime.
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

/** The row now contains the proposal. Meanwhile more requests may have been admitted from the earlier hold. */
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

/** Another node has changed the row. */
export function learn(lease: CounterLease, stamp: number, state: string, me: number) {
  const { log, holds } = decode(state)
  lease.stamp = stamp
  lease.log = windowOf(log)
  lease.holds = holds.filter(({ holder }) => holder !== me)
  // What was to be removed from the earlier log may not be in this one.
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

/** The requests are decided: what was granted to them but not used must not be admitted later. */
export function endGrant(lease: CounterLease, atMs: number) {
  if (lease.granted === 0) return
  lease.returned += lease.granted
  lease.returnedAtMs = atMs
  lease.granted = 0
}

/** Whether the hold is enough for this many requests. */
export const covers = (lease: CounterLease, count: number, now: number) => lease.left >= count && now < lease.untilMs

/** Whether the hold will soon be used up. */
export const runsOut = (lease: CounterLease) => lease.wished > 0 && lease.left <= lease.wished / 2

export const hasUnwritten = (lease: CounterLease) =>
  lease.unwritten !== undefined || lease.used > 0 || lease.returned > 0 || lease.left > 0

/**
 * How long to wait, given everything known: the log, what others hold, and what this node holds. 0 when there may be
 * room.
 */
export function waitFor(lease: CounterLease, demand: Demand, now: number): number {
  if (lease.holds.length === 0) return waitMs(lease.log, now, demand)
  const held = lease.holds.flatMap(({ untilMs, count }) => [untilMs, count])
  return waitMs(windowOf(mergeLogs(livingLog(lease.log), held)), now, demand)
}

/**
 * The wait that is certain without querying: what is in the log stays until it leaves the window, but other nodes may
 * return what they hold.
 */
export const certainWait = (lease: CounterLease, demand: Demand, now: number) =>
  lease.returned > 0 || lease.unwritten !== undefined ? 0 : waitMs(lease.log, now, demand)

/** The state as stored in the row, which is opaque to PostgreSQL: the log, then the holds. */
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

/** After this time plus the longest window, nothing in the row matters. */
export const lastMs = ({ log, hold, untilMs }: Proposal, lease: CounterLease) =>
  Math.max(
    log.log.at(-2) ?? Number.NEGATIVE_INFINITY,
    hold > 0 ? untilMs : Number.NEGATIVE_INFINITY,
    ...lease.holds.map((hold) => hold.untilMs),
    0,
  )
