// A whole dry run, on a snapshot of the database.

import type { Db } from '../../storage/db.ts'
import { compileJourney } from '../runs/compile-journey.ts'
import type { SimulationOptions } from './options.ts'
import { forEachPage } from './population.ts'
import { estimateRates } from './rates.ts'
import { type SimulationReport, writeReport } from './report.ts'
import { createSegmentAnswers } from './segment-answers.ts'
import { type Simulation, simulateRuns } from './simulate-users.ts'
import { Tally } from './tally.ts'

export async function runSimulation(db: Db, order: SimulationOptions): Promise<SimulationReport> {
  const { appId, now, startAt, days } = order
  // As if it had not begun before.
  const journey = compileJourney({ ...order.journey, startedAt: null })
  const trip: Simulation = {
    journey,
    nodeOf: new Map(journey.nodes.map((node) => [node.id, node])),
    startAt,
    days,
    judge: await createSegmentAnswers(db, appId, journey, startAt),
    rates: await estimateRates(db, appId, journey, now),
    tally: new Tally(journey.nodes, startAt),
  }
  const sampled = await forEachPage(db, order, trip, (walkers) => simulateRuns(trip, walkers))
  return writeReport(order, trip, sampled)
}
