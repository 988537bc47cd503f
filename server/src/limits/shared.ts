// Counters in PostgreSQL, for several nodes. The requests of one app that arrive while a decision is under way wait for
// the next and share its transaction. Decisions of one app would wait for each other anyway, so a node has one at a time
// for each app; that also keeps an app that floods from taking the connections of the others.

import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { CounterLog } from './local.ts'
import { findCounters, holdMembership, lockAppCounters, saveCounters } from './store.ts'
import { type Counters, type Demand, takeAll } from './take.ts'
import { emptyWindow, livingLog, mergeLogs, SHARED_GRAIN, type Window, windowOf } from './window.ts'

/** This node is no member any more, or counts locally: nothing was decided. */
export class NotCounting extends Error {}

export type SharedCounters = {
  take(appId: AppId, demands: Demand[]): Promise<number>
  /** Add what this node counted locally. */
  publish(appId: AppId, logs: CounterLog[]): Promise<void>
}

type Waiting = { demands: Demand[]; resolve: (seconds: number) => void; reject: (error: unknown) => void }

const MAX_BATCH = 512

export function sharedCounters({ db, clock, nodeId }: { db: Db; clock: Clock; nodeId: string }): SharedCounters {
  const queues = new Map<AppId, Waiting[]>()

  async function drain(appId: AppId, queue: Waiting[]) {
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_BATCH)
      try {
        const answers = await decide(appId, batch)
        batch.forEach((waiting, i) => {
          waiting.resolve(answers[i] as number)
        })
      } catch (error) {
        for (const waiting of batch) waiting.reject(error)
      }
    }
    queues.delete(appId)
  }

  const decide = (appId: AppId, batch: Waiting[]) =>
    db.transaction(async (db) => {
      if ((await holdMembership(db, nodeId)) !== 'shared') throw new NotCounting()
      await lockAppCounters(db, appId, clock.leaseMs())
      const keys = new Set(batch.flatMap(({ demands }) => demands.map((demand) => demand.key)))
      const read = readCounters(await findCounters(db, appId, [...keys]))
      // Not before the lock is held: the order of the decisions is then the order of their times.
      const now = clock.leaseMs()
      const answers = batch.map(({ demands }) => takeAll(read.counters, demands, now, SHARED_GRAIN))
      if (read.changed.size > 0) await saveCounters(db, appId, changedLogs(read.changed))
      return answers
    })

  return {
    take: (appId, demands) =>
      new Promise((resolve, reject) => {
        const waiting = { demands, resolve, reject }
        const queue = queues.get(appId)
        if (queue) {
          queue.push(waiting)
          return
        }
        const fresh = [waiting]
        queues.set(appId, fresh)
        // Requests read from the sockets in this turn of the event loop travel together.
        setImmediate(() => void drain(appId, fresh))
      }),
    publish: (appId, logs) =>
      db.transaction(async (db) => {
        if ((await holdMembership(db, nodeId)) === undefined) throw new NotCounting()
        await lockAppCounters(db, appId, clock.leaseMs())
        const counters = logs.map(({ counter }) => counter)
        const known = new Map((await findCounters(db, appId, counters)).map(({ counter, log }) => [counter, log]))
        const merged = logs.map(({ counter, log }) => ({ counter, log: mergeLogs(known.get(counter) ?? [], log) }))
        await saveCounters(db, appId, merged)
      }),
  }
}

function readCounters(logs: CounterLog[]): { counters: Counters; changed: Map<string, Window> } {
  const windows = new Map(logs.map(({ counter, log }) => [counter, windowOf(log)]))
  const changed = new Map<string, Window>()
  const counters: Counters = {
    find: (key) => windows.get(key),
    open(key) {
      const window = windows.get(key) ?? emptyWindow()
      windows.set(key, window)
      changed.set(key, window)
      return window
    },
  }
  return { counters, changed }
}

const changedLogs = (changed: Map<string, Window>): CounterLog[] =>
  [...changed].map(([counter, window]) => ({ counter, log: livingLog(window) }))
