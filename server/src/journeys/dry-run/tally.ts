// What is counted while people walk. It grows with the nodes and the minutes of the journey, not with the people.

import type { JourneyNode } from '../nodes/kinds.ts'
import type { BranchId, NodeId } from '../nodes/node.ts'
import { DAY_MS } from './options.ts'

const MINUTE_MS = 60_000
const MINUTES = DAY_MS / MINUTE_MS

/** A number for each minute since the start; days on which nothing happens take no room. */
export class Minutes {
  readonly #days = new Map<number, Int32Array>()

  add(ms: number, by: number): void {
    const minute = Math.floor(ms / MINUTE_MS)
    const day = Math.floor(minute / MINUTES)
    const own = this.#days.get(day) ?? new Int32Array(MINUTES)
    this.#days.set(day, own)
    const at = minute - day * MINUTES
    own[at] = (own[at] as number) + by
  }

  /** In the order of time, those that are not 0. */
  *entries(): Generator<{ ms: number; count: number }> {
    for (const [day, own] of [...this.#days].sort(([a], [b]) => a - b))
      for (const [minute, count] of own.entries())
        if (count !== 0) yield { ms: (day * MINUTES + minute) * MINUTE_MS, count }
  }
}

export type NodeTally = {
  arrived: number
  completed: number
  exitedEarly: number
  waitingAtEnd: number
  /** How many more or fewer wait here from each minute on. */
  waiting: Minutes
  /** How many went on from here, after waiting or by being sent something. */
  moved: Minutes
  /** By the day of the calendar, in UTC. */
  sends: Map<number, { count: number; reachable: number }>
}

/** All times are milliseconds since the start, but for the days of sends. */
export class Tally {
  /** Those who were walked through; who enters again has started once more. */
  users = 0
  started = 0
  completed = 0
  exitedEarly = 0
  stillInside = 0
  readonly nodes: ReadonlyMap<NodeId, NodeTally>
  readonly branches = new Map<BranchId, number>()
  /** By whole minutes. */
  readonly timesToComplete = new Map<number, number>()
  longestMs = 0

  readonly #startMs: number

  constructor(nodes: readonly JourneyNode[], startAt: Date) {
    this.#startMs = startAt.getTime()
    this.nodes = new Map(
      nodes.map(({ id }) => [
        id,
        {
          arrived: 0,
          completed: 0,
          exitedEarly: 0,
          waitingAtEnd: 0,
          waiting: new Minutes(),
          moved: new Minutes(),
          sends: new Map(),
        },
      ]),
    )
  }

  at(id: NodeId): NodeTally {
    return this.nodes.get(id) as NodeTally
  }

  take(id: BranchId): void {
    this.branches.set(id, (this.branches.get(id) ?? 0) + 1)
  }

  send(id: NodeId, ms: number, isReachable: boolean): void {
    const node = this.at(id)
    const day = Math.floor((this.#startMs + ms) / DAY_MS)
    const own = node.sends.get(day) ?? { count: 0, reachable: 0 }
    own.count++
    if (isReachable) own.reachable++
    node.sends.set(day, own)
    node.moved.add(ms, 1)
  }

  complete(tookMs: number): void {
    this.completed++
    const minutes = Math.floor(tookMs / MINUTE_MS)
    this.timesToComplete.set(minutes, (this.timesToComplete.get(minutes) ?? 0) + 1)
    this.longestMs = Math.max(this.longestMs, tookMs)
  }
}
