// Request limits over any number of nodes. A node that is alone counts in memory, without using the database. Several
// nodes lease from PostgreSQL what they admit (leases.ts). Between the two modes no count is lost, and no request
// waits:
// - A node that joins waits until the one that counts alone has written its counters and announced that. Meanwhile that
//   node goes on deciding: in memory for what is not written yet, by leases for the rest.
// - A node that is left alone counts both by leases and in memory until everything that others admitted has left every
//   window, and from then on in memory only.
// - A node that cannot renew its lease stops counting alone before any other node may consider it dead.
// When a node dies, what it counted alone is lost. Its lease outlasts the limits per second; of limits averaged over a
// minute, the part before the crash is lost. What it had leased stays counted.

import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../lib/clock.ts'
import { unavailable } from '../lib/errors.ts'
import { type AppId, newId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/db.ts'
import type { Listener } from '../storage/listen.ts'
import { createLeases, NotCounting } from './leases.ts'
import { localCounters } from './local.ts'
import {
  announce,
  findOtherNodes,
  hasPredecessor,
  leaveRegistry,
  type OtherNodes,
  renewMembership,
} from './node-registry.ts'
import { hasRule, LONGEST_WINDOW_MS, type Profile, type RuleCharge } from './rules.ts'
import { NODES_CHANNEL } from './store.ts'
import { type Demand, demandsOf, type LimitedApp, takeAll } from './take.ts'
import { LOCAL_GRAIN } from './window.ts'

export type Limiter = {
  /**
   * Takes one from each counter, or from none. Returns 0 when taken, otherwise the whole seconds to wait before
   * retrying.
   */
  take(app: LimitedApp, charges: RuleCharge[]): number | Promise<number>
  has(rule: string): boolean
  /** Resolves when this node may answer requests. */
  join(): Promise<void>
  leave(): Promise<void>
  /** Reads the registry of nodes now. This also happens every second by itself. */
  renew(): Promise<void>
  mode(): 'local' | 'shared' | 'off'
  isOff(): boolean
  /** Number of counters in memory, for the metrics page. */
  size(): number
}

export type LimiterOptions = {
  db: Db
  clock: Clock
  profile: Profile
  log: Log
  /** Makes joining faster; nothing depends on it. */
  listener?: Listener
  /** A node that returns under its old id, which no other process may use, need not wait for its own old lease. */
  nodeId?: string
  /** With 0, only `renew()` reads the registry. */
  heartbeatMs?: number
}

const HEARTBEAT_MS = 1_000
const JOIN_POLL_MS = 50
/** A node that counts alone writes its counters within seconds; half a minute is enough. */
const MAX_JOIN_POLLS = 600
const ATTEMPTS = 3

export function createLimiter(options: LimiterOptions): Limiter {
  const { db, clock, profile, log, listener, nodeId = newId(), heartbeatMs = HEARTBEAT_MS } = options
  /** `waiting`: another node still counts alone, or it is unknown whether one does. */
  let state: 'out' | 'waiting' | 'alone' | 'handing over' | 'shared' = 'out'
  /** Used while this node is alone, and filled in advance when it is going to be. */
  let memory = localCounters()
  /** Since when everything that this node admits is in its memory too. */
  let mirroredSinceMs: number | undefined
  /**
   * True when this node, now or in an earlier process, has admitted nothing that still counts. Unknown before it has
   * checked.
   */
  let isFresh: boolean | undefined
  let aloneUntilMs = Number.NEGATIVE_INFINITY
  let memberUntilMs = Number.NEGATIVE_INFINITY
  let renewing: Promise<void> | undefined
  let writing: Promise<void> | undefined
  let heartbeat: NodeJS.Timeout | undefined
  let listening = false
  let leaving = false

  const leases = createLeases({
    db,
    leaseMs: clock.leaseMs,
    hasAuthority: () => state === 'handing over' && clock.leaseMs() < aloneUntilMs,
    mayDecide: () => state === 'handing over' || state === 'shared',
    mirror: () => (mirroredSinceMs === undefined ? undefined : memory),
  })

  function take(app: LimitedApp, charges: RuleCharge[]): number | Promise<number> {
    if (profile === 'off' || charges.length === 0) return 0
    const demands = demandsOf(app, charges, profile)
    return takeAlone(app.id, demands) ?? takeElsewhere(app.id, demands)
  }

  function takeAlone(appId: AppId, demands: Demand[]): number | undefined {
    if (state !== 'alone') return undefined
    const now = clock.leaseMs()
    return now < aloneUntilMs ? takeAll(memory.of(appId, now), demands, now, LOCAL_GRAIN) : undefined
  }

  function takeElsewhere(appId: AppId, demands: Demand[]): number | Promise<number> {
    const taken = canLease() ? leases.take(appId, demands) : undefined
    return typeof taken === 'number' ? taken : takeWithPatience(appId, demands, taken)
  }

  async function takeWithPatience(appId: AppId, demands: Demand[], taken: Promise<number> | undefined) {
    let answer = taken
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      try {
        if (answer) return await answer
      } catch (error) {
        if (!(error instanceof NotCounting)) throw error
      }
      if (state === 'out' || state === 'waiting') break
      const alone = takeAlone(appId, demands)
      if (alone !== undefined) return alone
      // The lease has nearly expired: the process was suspended, or the database was unreachable.
      if (state === 'alone' || clock.leaseMs() >= memberUntilMs) await renew().catch(() => {})
      const again = takeAlone(appId, demands) ?? (canLease() ? leases.take(appId, demands) : undefined)
      if (typeof again === 'number') return again
      answer = again
    }
    throw unavailable()
  }

  const canLease = () => (state === 'shared' || state === 'handing over') && clock.leaseMs() < memberUntilMs

  /** Other nodes exist: what was counted alone is written while requests continue. */
  function handOver() {
    leases.add(memory, true)
    memory = localCounters()
    mirroredSinceMs = undefined
    state = 'handing over'
  }

  /** Another node considered this one dead. What this node counted is added to what others have counted since. */
  function loseAuthority() {
    if (state === 'alone') {
      leases.add(memory, false)
      memory = localCounters()
    }
    state = 'waiting'
  }

  function writeInBackground() {
    writing ??= write()
      .catch((error: Error) => log.debug({ reason: error.message }, 'Could not write rate limit counters; retrying'))
      .finally(() => {
        writing = undefined
      })
  }

  async function write() {
    await leases.write()
    if (state !== 'handing over' || leases.hasUnwritten()) return
    const said = await renewMembership(db, nodeId, 'shared', clock.leaseMs())
    memberUntilMs = said.memberUntilMs
    if (state === 'handing over') state = 'shared'
    await announce(db)
  }

  /**
   * Announces first and checks afterwards, so that of this node and one that joins at the same time, at least one sees
   * the other.
   */
  async function goAlone() {
    const said = await renewMembership(db, nodeId, 'local', clock.leaseMs())
    const others = await findOtherNodes(db, nodeId, clock.leaseMs())
    if (said.wasMember && isAlone(others)) {
      state = 'alone'
      isFresh = false
      aloneUntilMs = said.aloneUntilMs
      mirroredSinceMs = undefined
      leases.clear()
      return
    }
    await renewMembership(db, nodeId, 'shared', clock.leaseMs())
    await announce(db)
  }

  const isAlone = (others: OtherNodes) => others.alive.length === 0 && others.areAllForgotten

  const isMirrored = () =>
    mirroredSinceMs !== undefined && clock.leaseMs() - mirroredSinceMs >= LONGEST_WINDOW_MS && !leases.hasUnwritten()

  function mirrorWhileAlone(others: OtherNodes) {
    if (others.alive.length > 0) {
      isFresh = false
      if (mirroredSinceMs !== undefined) memory = localCounters()
      mirroredSinceMs = undefined
    } else mirroredSinceMs ??= isFresh ? Number.NEGATIVE_INFINITY : clock.leaseMs()
  }

  async function lookAtCensus() {
    isFresh ??= !(await hasPredecessor(db, nodeId, clock.leaseMs())) && !leases.hasUnwritten()
    const countsAlone = state === 'alone' || state === 'handing over'
    const said = await renewMembership(db, nodeId, countsAlone ? 'local' : 'shared', clock.leaseMs())
    if (countsAlone && said.wasMember) aloneUntilMs = said.aloneUntilMs
    else if (countsAlone) loseAuthority()
    memberUntilMs = said.memberUntilMs
    const others = await findOtherNodes(db, nodeId, clock.leaseMs())
    if (state === 'alone' && others.alive.length > 0) handOver()
    if (state === 'waiting' || !said.wasMember)
      state = others.alive.some(({ counts }) => counts === 'local') ? 'waiting' : 'shared'
    if (state === 'shared') mirrorWhileAlone(others)
    if (state === 'handing over' || leases.hasUnwritten()) writeInBackground()
    if (state === 'shared' && isAlone(others) && isMirrored()) await goAlone()
  }

  function renew(): Promise<void> {
    if (state === 'out' || leaving) return Promise.resolve()
    renewing ??= lookAtCensus().finally(() => {
      renewing = undefined
    })
    return renewing
  }

  // The database's own warnings give the reason; a node that cannot renew answers 503 until it can.
  const renewQuietly = () =>
    void renew().catch((error: Error) =>
      log.debug({ reason: error.message }, 'Could not renew the registration of this node'),
    )

  async function join() {
    if (profile === 'off' || state !== 'out') return
    state = 'waiting'
    isFresh = undefined
    if (heartbeatMs > 0) heartbeat = setInterval(renewQuietly, heartbeatMs).unref()
    if (!listening) listener?.on(NODES_CHANNEL, renewQuietly, renewQuietly)
    listening = true
    try {
      for (let poll = 0; state === 'waiting' || poll === 0; poll++) {
        if (poll === MAX_JOIN_POLLS) throw new Error('another server did not hand over its request counters in time')
        if (poll > 0) await pause(JOIN_POLL_MS)
        await renew()
      }
    } catch (error) {
      clearInterval(heartbeat)
      state = 'out'
      throw error
    }
  }

  async function leave() {
    if (state === 'out' || leaving) return
    leaving = true
    clearInterval(heartbeat)
    await renewing?.catch(() => {})
    await writing
    try {
      // So that the next node, or this one after a restart, knows what was admitted.
      if (state === 'alone') handOver()
      await leases.settle()
      await leaveRegistry(db, nodeId, clock.leaseMs())
    } catch (error) {
      log.debug({ reason: (error as Error).message }, 'Could not unregister this node; its lease expires by itself')
    }
    state = 'out'
    memory = localCounters()
    mirroredSinceMs = undefined
    leases.clear()
    leaving = false
  }

  return {
    take,
    has: hasRule,
    join,
    leave,
    renew,
    isOff: () => profile === 'off',
    mode: () => (profile === 'off' ? 'off' : state === 'alone' || state === 'handing over' ? 'local' : 'shared'),
    size: () => memory.size() + leases.size(),
  }
}
