// Decides which app may claim jobs next. Apps take turns within each lane, no app gets every slot, and a quarter of all
// slots is reserved for direct jobs.
// Jobs that wait for an external party take none of these slots. Instead, the number of jobs that wait for the same
// party is limited, so that a slow party delays only its own jobs. An app gets at most half of the room that is left
// among these, so that the next app still finds room while the jobs of other apps do not end.

import type { AppId } from '../lib/ids.ts'
import { type ClaimedJob, type JobLane, lanes } from './job.ts'

/** Jobs of this name whose keys begin with `prefix` wait for the same external party. */
export type WaitGroup = { name: string; prefix: string }

/** `limit`: how many jobs may be claimed. `saturated`: the groups that have no room for more waiting jobs. */
export type ClaimTurn = { appId: AppId; lane: JobLane; limit: number; saturated: readonly WaitGroup[] }

export type FairQueue = {
  /** Adds apps that may have due jobs, in either lane. */
  add(appIds: Iterable<AppId>): void
  /** Adds an app again that had jobs in the lane and may have more. */
  requeue(turn: Pick<ClaimTurn, 'appId' | 'lane'>): void
  /** Called when a job has ended. */
  release(job: Running): void
  hasTurn(): boolean
  /** Takes the next app, and removes it from the rotation. */
  takeTurn(): ClaimTurn | undefined
}

type Running = Pick<ClaimedJob, 'appId' | 'lane' | 'name' | 'key'>

/**
 * `prefix`: the beginning of a job's key, which names the party it waits for. `most`: how many jobs may wait for it at
 * once.
 */
export type ExternalWait = { prefix: string; most?: number | undefined }

/** `waitsFor` returns undefined for a job that waits for no external party. */
export type FairQueueOptions = {
  slots: number
  running(): readonly Running[]
  waitsFor(job: Running): ExternalWait | undefined
}

/** `same`: jobs waiting for the same party, unless the handler sets its own limit. `name`: all jobs of one name. */
const MOST_WAITING = { same: 16, name: 256 }

/** A group of jobs that wait for the same party, with its limit and its current members. */
type WaitGroupLoad = WaitGroup & { most: number; waiting: readonly Running[] }

/**
 * `slots` are for jobs of any lane; the slots reserved for direct jobs come on top. `running` returns the jobs that run
 * now.
 */
export function createFairQueue({ slots, running, waitsFor }: FairQueueOptions): FairQueue {
  const all = slots + Math.ceil(slots / 3)
  const slotsOf: Record<JobLane, number> = { direct: all, bulk: slots }
  const turns: Record<JobLane, Set<AppId>> = { direct: new Set(), bulk: new Set() }
  /** Apps that found a group saturated, in that order; they get a turn when the group has room again. */
  const sentAway = new Map<string, Set<AppId>>()

  /** Leaves slots for another app even while this app's jobs are slow. */
  const slotsPerApp = (lane: JobLane) => Math.max(1, slotsOf[lane] - Math.ceil(slotsOf[lane] / 4))

  /** A job counts both among the jobs that wait for the same party and among all jobs of its name. */
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

/** The limit is the smallest room of any group with room left, because every claimed job may belong to that group. */
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
