// A whole dry run, on a snapshot of the database.

import type { Db } from '../../storage/db.ts'
import { compileJourney } from '../runs/compiled.ts'
import { createJudge } from './judge.ts'
import type { Order } from './order.ts'
import { eachPage } from './people.ts'
import { learnRates } from './rates.ts'
import { type Report, writeReport } from './report.ts'
import { Tally } from './tally.ts'
import { type Trip, walkAll } from './walk.ts'

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
