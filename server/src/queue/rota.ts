// Whose turn it is. Apps take turns within each lane, no app takes every slot, and a quarter of all slots takes direct jobs alone.

import type { AppId } from '../lib/ids.ts'
import { type ClaimedJob, type Lane, lanes } from './job.ts'

/** `most`: how many jobs it may claim. */
export type Turn = { appId: AppId; lane: Lane; most: number }

export type Rota = {
  /** Apps that may have due jobs, of either lane. */
  add(appIds: Iterable<AppId>): void
  /** It had jobs of the lane, and may have more. */
  again(turn: Pick<Turn, 'appId' | 'lane'>): void
  hasNext(): boolean
  /** Takes it off the rota. */
  next(): Turn | undefined
}

type Running = Pick<ClaimedJob, 'appId' | 'lane'>

/** `slots`: for jobs of any lane; the quarter for direct ones comes on top. `running` tells what runs at this moment. */
export function createRota(slots: number, running: () => readonly Running[]): Rota {
  const all = slots + Math.ceil(slots / 3)
  const slotsOf: Record<Lane, number> = { direct: all, bulk: slots }
  const turns: Record<Lane, Set<AppId>> = { direct: new Set(), bulk: new Set() }

  /** Another app finds a slot even while jobs of this one are slow. */
  const slotsPerApp = (lane: Lane) => Math.max(1, slotsOf[lane] - Math.ceil(slotsOf[lane] / 4))

  function find(): Turn | undefined {
    const jobs = running()
    for (const lane of lanes) {
      const ofLane = jobs.filter((job) => job.lane === lane)
      const free = Math.min(all - jobs.length, slotsOf[lane] - ofLane.length)
      if (free <= 0) continue
      const share = Math.ceil(slotsOf[lane] / turns[lane].size)
      for (const appId of turns[lane]) {
        const left = slotsPerApp(lane) - ofLane.filter((job) => job.appId === appId).length
        if (left > 0) return { appId, lane, most: Math.min(share, free, left) }
      }
    }
    return undefined
  }

  return {
    add(appIds) {
      for (const appId of appIds) for (const lane of lanes) turns[lane].add(appId)
    },
    again({ appId, lane }) {
      turns[lane].add(appId)
    },
    hasNext: () => find() !== undefined,
    next() {
      const turn = find()
      if (turn) turns[turn.lane].delete(turn.appId)
      return turn
    },
  }
}
