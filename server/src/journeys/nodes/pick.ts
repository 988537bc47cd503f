// Chance that can be told again: the same names always draw the same number, before a crash and after it, here and in a dry run.

import { hash } from 'node:crypto'
import type { UserId } from '../../lib/ids.ts'
import type { JourneyId } from '../journey.ts'
import type { RunId } from '../runs/run.ts'
import type { BranchId, NodeOf } from './node.ts'

const BITS = 48

/** From 0 up to 1. */
export const pickNumber = (...names: string[]): number =>
  Number.parseInt(hash('sha256', names.join(' '), 'hex').slice(0, BITS / 4), 16) / 2 ** BITS

/** The same branch for a user whenever they come by, unless every run is to draw anew. */
export function pickBranch(
  journeyId: JourneyId,
  node: NodeOf<'split_range'>,
  { userId, id }: { userId: UserId; id: RunId },
): BranchId {
  const drawn = pickNumber(journeyId, node.id, userId, ...(node.randomize_on_entry ? [id] : [])) * 100
  let reached = 0
  for (const branch of node.branches) {
    reached += branch.weight
    if (drawn < reached) return branch.id
  }
  // Weights are hundredths, and their sum may fall short of 100 by less than a hair.
  return (node.branches.findLast(({ weight }) => weight > 0) ?? node.branches[0])?.id as BranchId
}
