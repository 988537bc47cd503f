// Whose turn it is. Apps take turns within each lane, no app takes every slot, and a quarter of all slots takes direct jobs alone.
// Jobs that wait for somebody outside take none of these slots. Of those that wait for the same there are only so many at once:
// whoever is slow holds up nobody but them. An app has at most half of what is left of these: where the jobs of some apps do not end,
// the next app still finds room.

import type { AppId } from '../lib/ids.ts'
import { type ClaimedJob, type JobLane, lanes } from './job.ts'

/** Jobs of this name whose key begins like this wait for the same. */
export type WaitGroup = { name: string; prefix: string }

/** `most`: how many jobs it may claim. `crowded`: for whom enough jobs wait already. */
export type ClaimTurn = { appId: AppId; lane: JobLane; limit: number; saturated: readonly WaitGroup[] }

export type FairQueue = {
  /** Apps that may have due jobs, of either lane. */
  add(appIds: Iterable<AppId>): void
  /** It had jobs of the lane, and may have more. */
  requeue(turn: Pick<ClaimTurn, 'appId' | 'lane'>): void
  /** A job has ended. */
  release(job: Running): void
  hasTurn(): boolean
  /** Takes it off the rota. */
  takeTurn(): ClaimTurn | undefined
}

type Running = Pick<ClaimedJob, 'appId' | 'lane' | 'name' | 'key'>

/** The beginning of a job's key that says for whom it waits, and how many may do so at once. */
export type ExternalWait = { prefix: string; most?: number | undefined }

/** `waitsFor`: undefined for who waits for nobody outside. */
export type FairQueueOptions = {
  slots: number
  running(): readonly Running[]
  waitsFor(job: Running): ExternalWait | undefined
}

/** For the same unless the handler says otherwise, and in all of one name. */
const MOST_WAITING = { same: 16, name: 256 }

/** All who wait for the same: how many there may be, and how many there are. */
type WaitGroupLoad = WaitGroup & { most: number; waiting: readonly Running[] }

/** `slots`: for jobs of any lane; the quarter for direct ones comes on top. `running` tells what runs at this moment. */
export function createFairQueue({ slots, running, waitsFor }: FairQueueOptions): FairQueue {
  const all = slots + Math.ceil(slots / 3)
  const slotsOf: Record<JobLane, number> = { direct: all, bulk: slots }
  const turns: Record<JobLane, Set<AppId>> = { direct: new Set(), bulk: new Set() }
  /** Apps that were told that enough jobs wait for somebody, in the order in which they were. */
  const sentAway = new Map<string, Set<AppId>>()

  /** Another app finds a slot even while jobs of this one are slow. */
  const slotsPerApp = (lane: JobLane) => Math.max(1, slotsOf[lane] - Math.ceil(slotsOf[lane] / 4))

  /** With those it waits for, and with all of its name. */
  function crowdsOf(job: Running): Omit<WaitGroupLoad, 'waiting'>[] {
    const waits = waitsFor(job)
    if (!waits) return []
    const { prefix, most } = waits
    const { name } = job
    if (prefix === '') return [{ name, prefix, most: most ?? MOST_WAITING.name }]
    return [
      { name, prefix, most: most ?? MOST_WAITING.same },
      { name, prefix: '', most: MOST_WAITING.name },
    ]
  }

  function findCrowds(jobs: readonly Running[]): WaitGroupLoad[] {
    const members = jobs.flatMap((job) => crowdsOf(job).map((crowd) => ({ job, crowd })))
    return [...Map.groupBy(members, ({ crowd }) => nameOf(crowd)).values()].map((group) => ({
      ...(group[0] as (typeof members)[number]).crowd,
      waiting: group.map(({ job }) => job),
    }))
  }

  function find(): ClaimTurn | undefined {
    const jobs = running()
    const inside = jobs.filter((job) => waitsFor(job) === undefined)
    for (const lane of lanes) {
      const ofLane = inside.filter((job) => job.lane === lane)
      const free = Math.min(all - inside.length, slotsOf[lane] - ofLane.length)
      if (free <= 0) continue
      const share = Math.ceil(slotsOf[lane] / turns[lane].size)
      for (const appId of turns[lane]) {
        const left = slotsPerApp(lane) - ofLane.filter((job) => job.appId === appId).length
        if (left > 0) return turnOf(appId, lane, Math.min(share, free, left), findCrowds(jobs))
      }
    }
    return undefined
  }

  const add = (appIds: Iterable<AppId>) => {
    for (const appId of appIds) for (const lane of lanes) turns[lane].add(appId)
  }

  return {
    add,
    requeue({ appId, lane }) {
      turns[lane].add(appId)
    },
    release(job) {
      const crowds = findCrowds(running())
      for (const name of crowdsOf(job).map(nameOf)) {
        const crowd = crowds.find((it) => nameOf(it) === name)
        const next = [...(sentAway.get(name) ?? [])].find((appId) => !crowd || roomFor(appId, crowd) > 0)
        if (next === undefined) continue
        sentAway.get(name)?.delete(next)
        add([next])
      }
    },
    hasTurn: () => find() !== undefined,
    takeTurn() {
      const turn = find()
      if (!turn) return undefined
      turns[turn.lane].delete(turn.appId)
      for (const name of turn.saturated.map(nameOf)) {
        const apps = sentAway.get(name) ?? new Set()
        sentAway.set(name, apps.add(turn.appId))
      }
      return turn
    },
  }
}

function roomFor(appId: AppId, { most, waiting }: WaitGroupLoad): number {
  const left = most - waiting.length
  const share = Math.min(left, Math.max(1, Math.floor(left / 2)))
  return share - waiting.filter((job) => job.appId === appId).length
}

/** Any of the jobs may be one of a crowd that has room for few. */
function turnOf(appId: AppId, lane: JobLane, most: number, crowds: readonly WaitGroupLoad[]): ClaimTurn {
  const rooms = crowds.map((crowd) => roomFor(appId, crowd))
  return {
    appId,
    lane,
    limit: Math.min(most, ...rooms.filter((room) => room > 0)),
    saturated: crowds.filter((_, i) => (rooms[i] as number) <= 0),
  }
}

const nameOf = ({ name, prefix }: WaitGroup) => `${name} ${prefix}`
