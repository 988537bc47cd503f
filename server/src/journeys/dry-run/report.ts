// What a dry run answers.

import { branchesOf, definitionOf, type JourneyNode } from '../nodes/kinds.ts'
import type { NodeChannel, NodeId } from '../nodes/node.ts'
import { describeAssumptions } from './describe-assumptions.ts'
import { DAY_MS, type SimulationOptions } from './options.ts'
import type { SampleSize } from './population.ts'
import type { Simulation } from './simulate-users.ts'
import type { Minutes, NodeTally, Tally } from './tally.ts'

/** Of all who started, at one node, in one minute. */
const PILE_SHARE = 0.2
const MOST_PILES = 100

export type SimulationReport = ReturnType<typeof writeReport>

export function writeReport(order: SimulationOptions, trip: Simulation, { looked, total }: SampleSize) {
  const { tally, journey, startAt, days } = trip
  const { nodes } = journey
  const momentOf = (ms: number) => new Date(startAt.getTime() + ms).toISOString()
  const share = total === 0 ? 1 : looked / total
  const sends = sendsOf(nodes, tally)
  const factor = 1 / share
  return {
    journey_id: journey.id,
    users: tally.users,
    sample_share: rounded(share),
    estimated_total: {
      factor: rounded(factor),
      started: Math.round(tally.started * factor),
      sends: Math.round(sends.reduce((sum, { count }) => sum + count, 0) * factor),
    },
    start_at: startAt.toISOString(),
    end_at: momentOf(days * DAY_MS),
    started: tally.started,
    completed: tally.completed,
    exited_early: tally.exitedEarly,
    still_inside: tally.stillInside,
    time_to_complete: timesOf(tally),
    sends,
    sends_by_day: byDay(sends),
    nodes: Object.fromEntries(nodes.map((node) => [node.id, nodeObject(node, tally.at(node.id), momentOf)])),
    branches: Object.fromEntries(
      nodes.flatMap(branchesOf).map(({ id }) => [id, { taken: tally.branches.get(id) ?? 0 }]),
    ),
    never_reached: nodes.filter(({ id }) => tally.at(id).arrived === 0).map(({ id }) => id),
    pile_ups: pilesOf(nodes, tally, momentOf),
    rates: ratesOf(trip),
    assumptions: describeAssumptions(order, trip, { looked, total }),
  }
}

const rounded = (value: number) => Math.round(value * 10_000) / 10_000

type Send = { day: string; node_id: NodeId; channel: NodeChannel; count: number; reachable: number }

/** In the order of time. */
function sendsOf(nodes: readonly JourneyNode[], tally: Tally): Send[] {
  return nodes
    .flatMap((node) =>
      [...tally.at(node.id).sends].map(([day, { count, reachable }]): Send => {
        const date = new Date(day * DAY_MS).toISOString().slice(0, 10)
        return { day: date, node_id: node.id, channel: definitionOf(node).channel as NodeChannel, count, reachable }
      }),
    )
    .sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0))
}

const byDay = (sends: readonly Send[]) =>
  [...Map.groupBy(sends, ({ day }) => day)].map(([day, list]) => ({
    day,
    count: list.reduce((sum, { count }) => sum + count, 0),
    reachable: list.reduce((sum, { reachable }) => sum + reachable, 0),
  }))

const nodeObject = ({ kind }: JourneyNode, it: NodeTally, momentOf: (ms: number) => string) => ({
  kind,
  arrived: it.arrived,
  completed: it.completed,
  exited_early: it.exitedEarly,
  waiting_at_end: it.waitingAtEnd,
  most_waiting: mostWaiting(it.waiting, momentOf),
})

function mostWaiting(waiting: Minutes, momentOf: (ms: number) => string): { count: number; at: string } | null {
  let [now, most, at] = [0, 0, 0]
  for (const { ms, count } of waiting.entries()) {
    now += count
    if (now > most) [most, at] = [now, ms]
  }
  return most > 0 ? { count: most, at: momentOf(at) } : null
}

function timesOf({ timesToComplete, longestMs, completed }: Tally) {
  if (completed === 0) return null
  const sorted = [...timesToComplete].sort(([a], [b]) => a - b)
  const at = (share: number) => {
    let reached = 0
    for (const [minutes, count] of sorted) {
      reached += count
      if (reached >= share * completed) return minutes * 60
    }
    return Math.floor(longestMs / 1_000)
  }
  return { p50_seconds: at(0.5), p90_seconds: at(0.9), max_seconds: Math.floor(longestMs / 1_000) }
}

function pilesOf(nodes: readonly JourneyNode[], tally: Tally, momentOf: (ms: number) => string) {
  return nodes
    .flatMap(({ id }) =>
      [...tally.at(id).moved.entries()]
        .filter(({ count }) => count > PILE_SHARE * tally.started)
        .map(({ ms, count }) => ({ node_id: id, ms, count })),
    )
    .sort((a, b) => a.ms - b.ms)
    .slice(0, MOST_PILES)
    .map(({ node_id, ms, count }) => ({
      node_id,
      at: momentOf(ms),
      count,
      share: rounded(count / tally.started),
    }))
}

/** The numbers that decided what cannot be known. */
const ratesOf = ({ rates: { events, sessions, actions } }: Simulation) => [
  ...[...events.values()].map(({ name, curve }) => ({
    kind: 'event' as const,
    name,
    shares: curve.map(({ seconds, share }) => ({ within_seconds: seconds, share: rounded(share) })),
  })),
  ...(sessions
    ? [
        {
          kind: 'session' as const,
          shares: sessions.map(({ seconds, share }) => ({ within_seconds: seconds, share: rounded(share) })),
        },
      ]
    : []),
  ...[...actions.values()].map(({ channel, action, share, sent }) => ({
    kind: 'message' as const,
    channel,
    action,
    share: rounded(share),
    deliveries: sent,
  })),
]
