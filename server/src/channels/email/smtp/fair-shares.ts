// Decides who gets the next connection to a mail server that several apps use. Direct email goes first, apps take
// turns, and an app whose emails hang leaves connections to the others:
// - bulk email of all apps leaves a quarter of the connections, and always the last one, to direct email;
// - where apps share the server, bulk email of one app uses at most half of the connections, and the app may use one
// more for its direct email;
// - the last connection is reserved for an app that is not sending direct email yet.

import type { AppId } from '../../../lib/ids.ts'
import type { TrafficSource } from '../../channel.ts'

export type FairShares<Task> = {
  add(task: Task): void
  /** Returns a task to the front of its queue, because nothing of it was sent when it had its turn. */
  addFirst(task: Task): void
  /**
   * Returns the next task that may have a connection; its source holds that connection from now on. `connections`: the
   * most that there may be.
   */
  take(connections: number): Task | undefined
  /** Returns the next task for the connection that the source already holds, unless it is another source's turn. */
  takeNext(source: TrafficSource, connections: number): Task | undefined
  release(source: TrafficSource): void
  /** How many more connections could be used, besides those that are held. */
  wanted(connections: number): number
  clear(): Task[]
}

type ShareLane = TrafficSource['lane']
type AppShare<Task> = { held: Record<ShareLane, number>; waiting: Record<ShareLane, Task[]> }

const LANES: readonly ShareLane[] = ['direct', 'bulk']

export function createFairShares<Task extends { source: TrafficSource }>(isShared: boolean): FairShares<Task> {
  /** In the order of their last turn, the least recent first. */
  const shares = new Map<AppId, AppShare<Task>>()
  const held: Record<ShareLane, number> = { direct: 0, bulk: 0 }

  function shareOf(appId: AppId): AppShare<Task> {
    const share = shares.get(appId) ?? { held: { direct: 0, bulk: 0 }, waiting: { direct: [], bulk: [] } }
    shares.set(appId, share)
    return share
  }

  function limitsOf(connections: number) {
    const half = Math.max(1, Math.floor(connections / 2))
    const bulk = connections === 1 ? 1 : connections - Math.max(1, Math.floor(connections / 4))
    return isShared
      ? { bulk, bulkOfApp: Math.min(bulk, half), ofApp: Math.max(1, Math.min(half + 1, connections - 1)) }
      : { bulk, bulkOfApp: bulk, ofApp: connections }
  }

  function mayHold(share: AppShare<Task>, lane: ShareLane, connections: number): boolean {
    const { bulk, bulkOfApp, ofApp } = limitsOf(connections)
    const free = connections - held.direct - held.bulk
    if (free <= 0 || totalOf(share) >= ofApp) return false
    const isLast = free === 1 && connections > 1
    if (lane === 'direct') return !isLast || !isShared || share.held.direct === 0
    return !isLast && held.bulk < bulk && share.held.bulk < bulkOfApp
  }

  function pick(connections: number): TrafficSource | undefined {
    for (const lane of LANES) {
      let fewest: { appId: AppId; count: number } | undefined
      for (const [appId, share] of shares) {
        if (share.waiting[lane].length === 0 || !mayHold(share, lane, connections)) continue
        if (!fewest || share.held[lane] < fewest.count) fewest = { appId, count: share.held[lane] }
      }
      if (fewest) return { appId: fewest.appId, lane }
    }
    return undefined
  }

  function count({ appId, lane }: TrafficSource, by: number) {
    const share = shareOf(appId)
    share.held[lane] += by
    held[lane] += by
    const isIdle = LANES.every((it) => share.held[it] + share.waiting[it].length === 0)
    if (isIdle) shares.delete(appId)
  }

  function begin(source: TrafficSource): Task | undefined {
    const share = shareOf(source.appId)
    shares.delete(source.appId)
    shares.set(source.appId, share)
    const task = share.waiting[source.lane].shift()
    count(source, 1)
    return task
  }

  return {
    add: (task) => void shareOf(task.source.appId).waiting[task.source.lane].push(task),
    addFirst: (task) => void shareOf(task.source.appId).waiting[task.source.lane].unshift(task),
    take(connections) {
      const source = pick(connections)
      return source && begin(source)
    },
    takeNext(source, connections) {
      count(source, -1)
      const next = pick(connections)
      if (next?.appId === source.appId && next.lane === source.lane) return begin(source)
      count(source, 1)
      return undefined
    },
    release: (source) => count(source, -1),
    wanted(connections) {
      const { bulkOfApp, ofApp } = limitsOf(connections)
      return [...shares.values()].reduce((sum, share) => {
        const bulk = Math.min(share.waiting.bulk.length, Math.max(0, bulkOfApp - share.held.bulk))
        return sum + Math.min(bulk + share.waiting.direct.length, Math.max(0, ofApp - totalOf(share)))
      }, 0)
    },
    clear: () => [...shares.values()].flatMap(({ waiting }) => LANES.flatMap((lane) => waiting[lane].splice(0))),
  }
}

const totalOf = ({ held }: AppShare<unknown>) => held.direct + held.bulk
