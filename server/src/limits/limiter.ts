// Request limits over any number of nodes. A node that is alone counts in its memory, without a word to the database;
// several count together in PostgreSQL. Between the two nothing is forgotten and no request is judged twice:
//   - a node that joins waits until the one that counts in memory has written its counters down and said so;
//   - a node that is left alone takes the counters out of the database, in the transaction that makes it the only one;
//   - a node that cannot renew its lease stops counting in memory before anybody may take it for dead.
// What a node that dies had counted in memory dies with it. Its lease covers the limits per second; of those averaged
// over a minute, the part before the crash is lost.

import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../lib/clock.ts'
import { unavailable } from '../lib/errors.ts'
import { type AppId, newId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/db.ts'
import type { Listener } from '../storage/listen.ts'
import { becomeLocal, becomeShared, leaveCensus, renewLease } from './census.ts'
import { type CounterLog, localCounters } from './local.ts'
import { type Charge, hasRule, type Profile } from './rules.ts'
import { NotCounting, sharedCounters } from './shared.ts'
import { CENSUS_CHANNEL } from './store.ts'
import { type Demand, demandsOf, type LimitedApp, takeAll } from './take.ts'
import { LOCAL_GRAIN } from './window.ts'

export type Limiter = {
  /** Take one from each counter, or from none. 0 when taken, else the whole seconds to wait before the next try. */
  take(app: LimitedApp, charges: Charge[]): number | Promise<number>
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
/** Counters written down in one statement. */
const PUBLISH_CHUNK = 1_000
const ATTEMPTS = 3

export function createLimiter(options: LimiterOptions): Limiter {
  const { db, clock, profile, log, listener, nodeId = newId(), heartbeatMs = HEARTBEAT_MS } = options
  const local = localCounters()
  const shared = sharedCounters({ db, clock, nodeId })
  /** `waiting`: another node still counts in its memory, or it is not known whether one does. */
  let state: 'out' | 'waiting' | 'local' | 'shared' = 'out'
  let localUntilMs = Number.NEGATIVE_INFINITY
  /** Set while the counters move; requests wait for it. */
  let moving: Promise<void> | undefined
  let renewing: Promise<void> | undefined
  let heartbeat: NodeJS.Timeout | undefined
  let listening = false
  let leaving = false

  function take(app: LimitedApp, charges: Charge[]): number | Promise<number> {
    if (profile === 'off' || charges.length === 0) return 0
    const demands = demandsOf(app, charges, profile)
    return takeLocally(app.id, demands) ?? takeElsewhere(app.id, demands)
  }

  function takeLocally(appId: AppId, demands: Demand[]): number | undefined {
    if (state !== 'local' || moving) return undefined
    const now = clock.leaseMs()
    return now < localUntilMs ? takeAll(local.of(appId, now), demands, now, LOCAL_GRAIN) : undefined
  }

  async function takeElsewhere(appId: AppId, demands: Demand[]): Promise<number> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      await moving
      if (state === 'local') {
        const taken = takeLocally(appId, demands)
        if (taken !== undefined) return taken
        // The lease is nearly over: a process that was stopped, or a database that was away.
        await renew().catch(() => {})
      } else if (state === 'shared') {
        try {
          return await shared.take(appId, demands)
        } catch (error) {
          if (!(error instanceof NotCounting)) throw error
          await renew().catch(() => {})
        }
      } else break
    }
    throw unavailable()
  }

  /** Requests wait while this runs. When it fails, part of the counters may have moved, so the node stops counting. */
  async function move(run: () => Promise<void>): Promise<void> {
    const moved = run().catch((error) => {
      state = 'waiting'
      throw error
    })
    const settled = moved.catch(() => {})
    moving = settled
    try {
      await moved
    } finally {
      if (moving === settled) moving = undefined
    }
  }

  async function publish() {
    for (const [appId, logs] of local.living(clock.leaseMs())) {
      for (let i = 0; i < logs.length; i += PUBLISH_CHUNK) {
        const chunk = logs.slice(i, i + PUBLISH_CHUNK)
        await shared.publish(appId, chunk)
        local.forget(
          appId,
          chunk.map(({ counter }) => counter),
        )
      }
    }
    local.clear()
  }

  const goShared = (mayCount: boolean) =>
    move(async () => {
      await publish()
      state = (await becomeShared(db, nodeId, clock.leaseMs())) && mayCount ? 'shared' : 'waiting'
    })

  const goLocal = () =>
    move(async () => {
      let read: (CounterLog & { appId: AppId })[] = []
      try {
        const until = await becomeLocal(db, nodeId, clock.leaseMs(), (counters) => {
          read = counters
        })
        state = until === undefined ? 'waiting' : 'local'
        localUntilMs = until ?? Number.NEGATIVE_INFINITY
      } finally {
        // Also after a commit whose outcome is unknown: counted twice refuses too early, forgotten lets too many in.
        absorb(read)
      }
    })

  function absorb(read: (CounterLog & { appId: AppId })[]) {
    for (const [appId, logs] of Map.groupBy(read, (row) => row.appId)) local.absorb(appId, logs)
  }

  async function lookAtCensus() {
    const { mine, others, localUntilMs: until } = await renewLease(db, nodeId, clock.leaseMs())
    if (others.length === 0) {
      if (state === 'local' && mine === 'local') localUntilMs = until
      else await goLocal()
      return
    }
    const mayCount = !others.some((node) => node.counts === 'local')
    // Not only from local: a node that was taken for dead joins again with what it had counted in memory.
    if (mine === 'local' || !local.isEmpty()) await goShared(mayCount)
    else state = mayCount ? 'shared' : 'waiting'
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
    void renew().catch((error: Error) => log.debug({ reason: error.message }, 'census of nodes not renewed'))

  async function join() {
    if (profile === 'off' || state !== 'out') return
    state = 'waiting'
    if (heartbeatMs > 0) heartbeat = setInterval(renewQuietly, heartbeatMs).unref()
    if (!listening) listener?.on(CENSUS_CHANNEL, renewQuietly, renewQuietly)
    listening = true
    try {
      for (;;) {
        await renew()
        if (state !== 'waiting') return
        await pause(JOIN_POLL_MS)
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
    try {
      await move(async () => {
        // So that the next node, or this one after a restart, knows what was let in.
        await publish()
        await leaveCensus(db, nodeId)
      })
    } catch (error) {
      log.debug({ reason: (error as Error).message }, 'left without saying so; the lease runs out by itself')
    }
    state = 'out'
    leaving = false
  }

  return {
    take,
    has: hasRule,
    join,
    leave,
    renew,
    isOff: () => profile === 'off',
    mode: () => (profile === 'off' ? 'off' : state === 'local' ? 'local' : 'shared'),
    size: local.size,
  }
}
