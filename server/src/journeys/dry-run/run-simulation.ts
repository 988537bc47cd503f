// A whole dry run, on a snapshot of the database.

import type { Db } from '../../storage/db.ts'
import { compileJourney } from '../runs/compile-journey.ts'
import type { Order } from './options.ts'
import { eachPage } from './population.ts'
import { learnRates } from './rates.ts'
import { type Report, writeReport } from './report.ts'
import { createJudge } from './segment-answers.ts'
import { type Trip, walkAll } from './simulate-users.ts'
import { Tally } from './tally.ts'

export async function rehearse(db: Db, order: Order): Promise<Report> {
  const { appId, now, startAt, days } = order
  // As if it had not begun before.
  const journey = compileJourney({ ...order.journey, startedAt: null })
  const trip: Trip = {
    journey,
    nodeOf: new Map(journey.nodes.map((node) => [node.id, node])),
    startAt,
    days,
    judge: await createJudge(db, appId, journey, startAt),
    rates: await learnRates(db, appId, journey, now),
    tally: new Tally(journey.nodes, startAt),
  }
  const sampled = await eachPage(db, order, trip, (walkers) => walkAll(trip, walkers))
  return writeReport(order, trip, sampled)
}
