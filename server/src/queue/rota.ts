// Whose turn it is. Apps take turns within each lane, no app takes every slot, and a quarter of all slots takes direct jobs alone.
// Jobs that wait for somebody outside take none of these slots. Of those that wait for the same there are only so many at once:
// whoever is slow holds up nobody but them.

import type { AppId } from '../lib/ids.ts'
import { type ClaimedJob, type Lane, lanes } from './job.ts'

/** Jobs of this name whose key begins like this wait for the same. */
export type Waited = { name: string; prefix: string }

/** `most`: how many jobs it may claim. `crowded`: for whom enough jobs wait already. */
export type Turn = { appId: AppId; lane: Lane; most: number; crowded: readonly Waited[] }

export type Rota = {
  /** Apps that may have due jobs, of either lane. */
  add(appIds: Iterable<AppId>): void
  /** It had jobs of the lane, and may have more. */
  again(turn: Pick<Turn, 'appId' | 'lane'>): void
  /** A job has ended. */
  leave(job: Running): void
  hasNext(): boolean
  /** Takes it off the rota. */
  next(): Turn | undefined
}

type Running = Pick<ClaimedJob, 'appId' | 'lane' | 'name' | 'key'>

/** `waitsFor`: the beginning of the job's key that says for whom it waits; undefined for who waits for nobody outside. */
export type RotaOptions = { slots: number; running(): readonly Running[]; waitsFor(job: Running): string | undefined }

/** For the same, and in all of one name. */
const MOST_WAITING = { same: 16, name: 200 }

/** `slots`: for jobs of any lane; the quarter for direct ones comes on top. `running` tells what runs at this moment. */
export function createRota({ slots, running, waitsFor }: RotaOptions): Rota {
  const all = slots + Math.ceil(slots / 3)
  const slotsOf: Record<Lane, number> = { direct: all, bulk: slots }
  const turns: Record<Lane, Set<AppId>> = { direct: new Set(), bulk: new Set() }
  /** Apps that were told that enough jobs wait for somebody, in the order in which they were. */
  const sentAway = new Map<string, Set<AppId>>()

  /** Another app finds a slot even while jobs of this one are slow. */
  const slotsPerApp = (lane: Lane) => Math.max(1, slotsOf[lane] - Math.ceil(slotsOf[lane] / 4))

  /** Those it waits for, and all of its name. */
  function waitedBy(job: Running): Waited[] {
    const prefix = waitsFor(job)
    const all = { name: job.name, prefix: '' }
    return prefix === undefined ? [] : prefix === '' ? [all] : [{ name: job.name, prefix }, all]
  }

  function findCrowded(jobs: readonly Running[]): Waited[] {
    const groups = Map.groupBy(jobs.flatMap(waitedBy), nameOf)
    return [...groups.values()].flatMap((group) => {
      const [waited] = group as [Waited]
      return group.length >= (waited.prefix === '' ? MOST_WAITING.name : MOST_WAITING.same) ? [waited] : []
    })
  }

  function find(): Turn | undefined {
    const jobs = running()
    const inside = jobs.filter((job) => waitsFor(job) === undefined)
    for (const lane of lanes) {
      const ofLane = inside.filter((job) => job.lane === lane)
      const free = Math.min(all - inside.length, slotsOf[lane] - ofLane.length)
      if (free <= 0) continue
      const share = Math.ceil(slotsOf[lane] / turns[lane].size)
      for (const appId of turns[lane]) {
        const left = slotsPerApp(lane) - ofLane.filter((job) => job.appId === appId).length
        if (left > 0) return { appId, lane, most: Math.min(share, free, left), crowded: findCrowded(jobs) }
      }
    }
    return undefined
  }

  const add = (appIds: Iterable<AppId>) => {
    for (const appId of appIds) for (const lane of lanes) turns[lane].add(appId)
  }

  return {
    add,
    again({ appId, lane }) {
      turns[lane].add(appId)
    },
    leave(job) {
      for (const name of waitedBy(job).map(nameOf)) {
        const [next] = sentAway.get(name) ?? []
        if (next === undefined) continue
        sentAway.get(name)?.delete(next)
        add([next])
      }
    },
    hasNext: () => find() !== undefined,
    next() {
      const turn = find()
      if (!turn) return undefined
      turns[turn.lane].delete(turn.appId)
      for (const name of turn.crowded.map(nameOf)) {
        const apps = sentAway.get(name) ?? new Set()
        sentAway.set(name, apps.add(turn.appId))
      }
      return turn
    },
  }
}

const nameOf = ({ name, prefix }: Waited) => `${name} ${prefix}`
