// The changes of the counts of a journey, its nodes and its branches by one batch.

import type { JourneyId } from '../journey.ts'
import type { CountChange } from '../stats-store.ts'
import type { RunMove } from './run-move.ts'

export function countMoves(journeyId: JourneyId, moves: readonly RunMove[]): CountChange[] {
  const sums = new Map<string, CountChange>()
  const add = (placeId: string, fact: string, by: number) => {
    const name = `${fact} ${placeId}`
    const sum = sums.get(name)
    if (sum) sum.by += by
    else sums.set(name, { placeId, fact, by })
  }
  for (const { run, outcome } of moves) {
    if (run.nodeId && run.arrivedAt) add(run.nodeId, 'waiting', -1)
    for (const id of outcome.completed) add(id, 'completed', 1)
    for (const id of outcome.branches) add(id, 'completed', 1)
    if (outcome.kind === 'rests') {
      if (outcome.arrivedAt) add(outcome.nodeId, 'waiting', 1)
    } else if (outcome.state === 'completed') add(journeyId, 'completed', 1)
    else {
      add(journeyId, 'exited_early', 1)
      if (outcome.nodeId) add(outcome.nodeId, 'exited_early', 1)
    }
  }
  return [...sums.values()].filter(({ by }) => by !== 0)
}
