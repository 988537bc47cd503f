// Request limits over any number of nodes. A node that is alone counts in its memory, without a word to the database. Several
// lease what they let in from PostgreSQL (leases.ts). Between the two nothing is forgotten, and no request waits:
//   - a node that joins waits until the one that counts alone has written its counters down and said so. That one goes on
//     deciding meanwhile: in memory what is not written down yet, by leases the rest;
//   - a node that is left alone counts by leases and in memory until everything that others let in has left every window,
//     and from then on in memory only;
//   - a node that cannot renew its lease stops counting alone before anybody may take it for dead.
// What a node that dies had counted alone dies with it. Its lease covers the limits per second; of those averaged over a
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
  /** Take one from each counter, or from none. 0 when taken, else the whole seconds to wait before the next try. */
  take(app: LimitedApp, charges: RuleCharge[]): number | Promise<number>
  has(rule: string): boolean
  /** Resolves when this node may answer requests. */
  join(): Promise<void>
  leave(): Promise<void>
  /** Look at the census now. Happens every second by itself. */
  renew(): Promise<void>
  mode(): 'local' | 'shared' | 'off'
  isOff(): boolean
  /** Counters in memory, for the metrics page. */
  size(): number
}

export type LimiterOptions = {
  db: Db
  clock: Clock
  profile: Profile
  log: Log
  /** Makes joining faster; nothing depends on it. */
  listener?: Listener
  /** A node that comes back under its old id, which no other process may have, need not wait for its own old lease. */
  nodeId?: string
  /** 0: only `renew()` looks at the census. */
  heartbeatMs?: number
}

const HEARTBEAT_MS = 1_000
const JOIN_POLL_MS = 50
/** A node that counts alone writes its counters down within seconds; half a minute is time enough. */
const MAX_JOIN_POLLS = 600
const ATTEMPTS = 3

export function createLimiter(options: LimiterOptions): Limiter {
  const { db, clock, profile, log, listener, nodeId = newId(), heartbeatMs = HEARTBEAT_MS } = options
  /** `waiting`: another node still counts alone, or it is not known whether one does. */
  let state: 'out' | 'waiting' | 'alone' | 'handing over' | 'shared' = 'out'
  /** What counts while this node is alone, and what will count when it is going to be. */
  let memory = localCounters()
  /** Since when everything that this node lets in is in its memory too. */
  let mirroredSinceMs: number | undefined
  /** It has let in nothing yet that counts, in this life or a former one. Not known before it has looked. */
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
      // The lease is nearly over: a process that was stopped, or a database that was away.
      if (state === 'alone' || clock.leaseMs() >= memberUntilMs) await renew().catch(() => {})
      const again = takeAlone(appId, demands) ?? (canLease() ? leases.take(appId, demands) : undefined)
      if (typeof again === 'number') return again
      answer = again
    }
    throw unavailable()
  }

  const canLease = () => (state === 'shared' || state === 'handing over') && clock.leaseMs() < memberUntilMs

  /** Others are there: what was counted alone is written down while requests go on. */
  function handOver() {
    leases.add(memory, true)
    memory = localCounters()
    mirroredSinceMs = undefined
    state = 'handing over'
  }

  /** Somebody took this node for dead. What it counted is added to what others have counted since. */
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

  /** Say it first and look after: a joiner that comes at the same time sees this node, or is seen by it. */
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

  // The database's own warnings say why; a node that cannot renew answers 503 until it can.
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
      // So that the next node, or this one after a restart, knows what was let in.
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
