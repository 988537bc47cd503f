// The leases of a node on counters that it shares with other nodes. Requests of one app that arrive while a statement
// runs wait for the next one and share it, so a node runs one statement at a time per app; that also keeps a flooding
// app from taking the connections of others. Most requests on a busy counter need no statement: they use the hold.

import { randomInt } from 'node:crypto'
import { unavailable } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { createGenerationalMap } from './generational-map.ts'
import {
  apply,
  type CounterLease,
  certainWait,
  covers,
  encode,
  endGrant,
  hasToken,
  hasUnwritten,
  lastMs,
  learn,
  newLease,
  type Proposal,
  propose,
  runsOut,
  spend,
  waitFor,
} from './lease.ts'
import { type LocalCounters, localCounters } from './local.ts'
import { LONGEST_WINDOW_MS } from './rules.ts'
import { writeCounters } from './store.ts'
import type { Demand } from './take.ts'
import { LOCAL_GRAIN, record, type Window, waitMs } from './window.ts'

/** The node no longer counts together with others; nothing was decided. */
export class NotCounting extends Error {}

export type Leases = {
  /** Takes one from each counter or from none. Returns 0, or the whole seconds to wait. */
  take(appId: AppId, demands: Demand[]): number | Promise<number>
  /**
   * Adds counters from memory that have to be written. `isWhole`: no other node has counted anything in the meantime.
   */
  add(counters: LocalCounters, isWhole: boolean): void
  /** Resolves when everything that was added is written. */
  write(): Promise<void>
  hasUnwritten(): boolean
  /** Writes what was admitted, and returns what is held. */
  settle(): Promise<void>
  clear(): void
  size(): number
}

export type LeasesOptions = {
  db: Db
  leaseMs: () => number
  /** True while this node alone may decide, in memory, about counters that were added and are not written yet. */
  hasAuthority: () => boolean
  /** True while this node counts together with others. */
  mayDecide: () => boolean
  /** Counters in memory that also count everything that is admitted. */
  mirror: () => LocalCounters | undefined
}

type PendingRequest = { demands: Demand[]; resolve: (seconds: number) => void; reject: (error: unknown) => void }

type AppWork = {
  queue: PendingRequest[]
  /** Counters whose hold will soon be used up. */
  refresh: Map<string, Demand>
  /** Counters to be written, without a hold. */
  settling: Set<string>
  /** Callers that wait until everything is written. */
  writers: { resolve: () => void; reject: (error: unknown) => void }[]
  isBusy: boolean
}

/** The counters that PostgreSQL was asked about. */
type QueriedCounters = ReadonlyMap<string, unknown>

type LeaseRequest = { lease: CounterLease; demand?: Demand; need: number; proposal?: Proposal }

const MAX_BATCH = 512
/** In-memory counters written by one statement: few enough that requests of the app need not wait long for it. */
const WRITE_CHUNK = 500
const APPS_AT_ONCE = 4
/** In each round another node was faster, and so made progress itself. */
const MAX_ROUNDS = 50
/** Fits into a double together with a sign. */
const STAMPS = 2 ** 48 - 1

export function createLeases({ db, leaseMs, hasAuthority, mayDecide, mirror }: LeasesOptions): Leases {
  const me = randomInt(1, STAMPS)
  const leases = createGenerationalMap<CounterLease>()
  let unwritten = localCounters()
  let isWhole = false
  const works = new Map<AppId, AppWork>()

  const windowOf = (appId: AppId, key: string, now: number): Window | undefined =>
    hasAuthority() ? unwritten.of(appId, now).find(key) : undefined

  function open(appId: AppId, key: string): CounterLease {
    const lease = leases.open(appId, key, newLease)
    const log = unwritten.remove(appId, key)
    if (log) addUnwritten(lease, log)
    return lease
  }

  function addUnwritten(lease: CounterLease, log: number[]) {
    lease.unwritten = log
    lease.isWhole = isWhole && hasAuthority()
  }

  /** Returns 0 when taken, the seconds to wait when that is certain, and undefined when PostgreSQL has to be asked. */
  function judge(appId: AppId, demands: Demand[], now: number, asked?: QueriedCounters): number | undefined {
    let wait = 0
    let isKnown = true
    for (const demand of demands) {
      const here = waitHere(appId, demand, now, asked)
      if (here === undefined) isKnown = false
      else if (here > wait) wait = here
    }
    if (wait > 0) return Math.max(1, Math.ceil(wait / 1000))
    if (!isKnown) return undefined
    for (const demand of demands) takeOne(appId, demand, now)
    return 0
  }

  function waitHere(appId: AppId, demand: Demand, now: number, asked?: QueriedCounters): number | undefined {
    if (demand.limit < 1) return demand.windowMs
    const window = windowOf(appId, demand.key, now)
    if (window) return waitMs(window, now, demand)
    const lease = leases.find(appId, demand.key)
    if (!lease) return undefined
    if (hasToken(lease, now)) return 0
    if (asked?.has(demand.key)) return Math.max(1, waitFor(lease, demand, now))
    return certainWait(lease, demand, now) || undefined
  }

  function takeOne(appId: AppId, demand: Demand, now: number) {
    const window = windowOf(appId, demand.key, now)
    if (window) record(window, now, demand.limit, LOCAL_GRAIN)
    else {
      const lease = leases.open(appId, demand.key, newLease)
      lease.asked++
      spend(lease, now)
      if (runsOut(lease)) refreshSoon(appId, demand)
    }
    const counted = mirror()?.of(appId, now)
    if (counted) record(counted.open(demand.key), now, demand.limit, LOCAL_GRAIN)
  }

  function workOf(appId: AppId): AppWork {
    let work = works.get(appId)
    if (!work) {
      work = { queue: [], refresh: new Map(), settling: new Set(), writers: [], isBusy: false }
      works.set(appId, work)
    }
    return work
  }

  function refreshSoon(appId: AppId, demand: Demand) {
    const work = workOf(appId)
    work.refresh.set(demand.key, demand)
    begin(appId, work)
  }

  /** Requests read from the sockets in the same turn of the event loop share a statement. */
  function begin(appId: AppId, work: AppWork) {
    if (work.isBusy) return
    work.isBusy = true
    setImmediate(() => void drain(appId, work))
  }

  async function drain(appId: AppId, work: AppWork): Promise<void> {
    while (work.queue.length > 0 || work.refresh.size > 0 || work.writers.length > 0) {
      const batch = work.queue.splice(0, MAX_BATCH)
      const writers = work.writers.splice(0)
      const wanted = new Map<string, LeaseRequest>()
      try {
        const isWritten = writers.length > 0 && !wantUnwritten(appId, work, wanted)
        await decide(appId, work, batch, wanted)
        if (isWritten) for (const { resolve } of writers) resolve()
        else work.writers.push(...writers)
      } catch (error) {
        for (const [key, { lease }] of wanted) putBack(appId, key, lease)
        for (const { reject } of [...batch, ...writers]) reject(error)
      }
    }
    work.isBusy = false
    works.delete(appId)
  }

  /**
   * Takes a chunk of the unwritten counters, so that requests of the app get their turn in between. Returns false when
   * nothing is left.
   */
  function wantUnwritten(appId: AppId, work: AppWork, wanted: Map<string, LeaseRequest>): boolean {
    for (const { counter, log } of unwritten.removeSome(appId, WRITE_CHUNK, leaseMs())) {
      const lease = leases.open(appId, counter, newLease)
      addUnwritten(lease, log)
      wanted.set(counter, { lease, need: 0 })
    }
    for (const key of work.settling) {
      if (wanted.size >= WRITE_CHUNK) break
      work.settling.delete(key)
      const lease = leases.find(appId, key)
      if (!lease) continue
      lease.left = 0
      wanted.set(key, { lease, need: 0 })
    }
    return wanted.size > 0
  }

  function putBack(appId: AppId, key: string, lease: CounterLease) {
    if (lease.unwritten) unwritten.put(appId, key, lease.unwritten)
    lease.unwritten = undefined
    lease.isWhole = false
  }

  async function decide(appId: AppId, work: AppWork, batch: PendingRequest[], wanted: Map<string, LeaseRequest>) {
    const now = leaseMs()
    leases.age(now)
    const asking = batch.filter((waiting) => !answer(appId, waiting, now))
    for (const [demand, need] of needsOf(asking)) {
      const lease = leases.find(appId, demand.key)
      // What is held already needs no statement: otherwise a counter shared by all requests would be in every statement
      // of every node.
      const isAtHand = windowOf(appId, demand.key, now) || (lease && covers(lease, need, now))
      if (!isAtHand) want(appId, wanted, demand, need)
    }
    for (const demand of work.refresh.values()) want(appId, wanted, demand, 0)
    work.refresh.clear()
    await state(appId, wanted)
    if (asking.length > 0 && !mayDecide()) throw new NotCounting()
    for (const { lease, proposal } of wanted.values()) lease.granted = proposal?.granted ?? 0
    const answeredMs = leaseMs()
    // Still undecided are requests on counters that could be decided without a query a moment ago.
    work.queue.push(...asking.filter((waiting) => !answer(appId, waiting, answeredMs, wanted)))
    for (const { lease, proposal } of wanted.values()) if (proposal) endGrant(lease, proposal.atMs)
  }

  function answer(appId: AppId, { demands, resolve }: PendingRequest, now: number, asked?: QueriedCounters): boolean {
    const seconds = judge(appId, demands, now, asked)
    if (seconds !== undefined) resolve(seconds)
    return seconds !== undefined
  }

  function want(appId: AppId, wanted: Map<string, LeaseRequest>, demand: Demand, need: number) {
    const known = wanted.get(demand.key)
    if (known) {
      known.need += need
      known.demand = demand
    } else wanted.set(demand.key, { lease: open(appId, demand.key), demand, need })
  }

  /**
   * Writes the wanted counters, retrying those that other nodes changed first. Each round uses the current time: with
   * an older one, a log that others have written since would look like that of a clock that was set back, and would
   * count too little.
   */
  async function state(appId: AppId, wanted: Map<string, LeaseRequest>) {
    let left = [...wanted].toSorted(([one], [other]) => (one < other ? -1 : 1))
    for (let round = 0; left.length > 0; round++) {
      if (round === MAX_ROUNDS) throw unavailable()
      const stamp = randomInt(1, STAMPS)
      const now = leaseMs()
      const written = left.map(([counter, entry]) => {
        const proposal = propose(entry.lease, entry.demand, entry.need, now)
        entry.proposal = proposal
        const { lease } = entry
        return {
          counter,
          previous: lease.isWhole && hasAuthority() ? null : lease.stamp,
          state: encode(proposal, lease, me),
          idleAt: lastMs(proposal, lease) + LONGEST_WINDOW_MS,
        }
      })
      const rows = new Map((await writeCounters(db, appId, stamp, written)).map((row) => [row.counter, row]))
      left = left.filter(([counter, entry]) => {
        const row = rows.get(counter)
        if (row && row.stamp !== stamp) {
          learn(entry.lease, row.stamp, row.state as string, me)
          return true
        }
        // Without a row the app no longer exists; the handler of the request reports that.
        apply(entry.lease, entry.proposal as Proposal, row ? stamp : 0)
        return false
      })
    }
  }

  const written = (appId: AppId) =>
    new Promise<void>((resolve, reject) => {
      const work = workOf(appId)
      work.writers.push({ resolve, reject })
      begin(appId, work)
    })

  async function eachWritten(appIds: AppId[]) {
    for (let i = 0; i < appIds.length; i += APPS_AT_ONCE)
      await Promise.all(appIds.slice(i, i + APPS_AT_ONCE).map(written))
  }

  return {
    take(appId, demands) {
      const now = leaseMs()
      const seconds = judge(appId, demands, now)
      if (seconds !== undefined) return seconds
      return new Promise((resolve, reject) => {
        const work = workOf(appId)
        work.queue.push({ demands, resolve, reject })
        begin(appId, work)
      })
    },
    add(counters, whole) {
      isWhole = whole && unwritten.isEmpty()
      if (unwritten.isEmpty()) unwritten = counters
      else unwritten.absorb(counters, leaseMs())
    },
    write: () => eachWritten(unwritten.apps()),
    hasUnwritten: () => !unwritten.isEmpty(),
    async settle() {
      for (const appId of leases.apps())
        for (const [key, lease] of leases.entries(appId)) if (hasUnwritten(lease)) workOf(appId).settling.add(key)
      await eachWritten([...new Set([...works.keys(), ...unwritten.apps()])])
    },
    clear: leases.clear,
    size: () => leases.size() + unwritten.size(),
  }
}

function needsOf(requests: readonly PendingRequest[]): [Demand, number][] {
  const needs = new Map<string, [Demand, number]>()
  for (const { demands } of requests)
    for (const demand of demands) needs.set(demand.key, [demand, (needs.get(demand.key)?.[1] ?? 0) + 1])
  return [...needs.values()]
}
