import type { UserId } from '../../lib/ids.ts'
import { flag } from '../document/json-schema.ts'
import { isPresent } from '../document/reader.ts'
import type { DocumentReading } from '../document/reading.ts'
import type { RunId } from '../runs/run.ts'
import { type BranchInput, branchesField, readBranches } from './branches.ts'
import type { BaseNode, BranchId, NodeBranch } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'
import { pickNumber } from './pick.ts'

interface WeightedBranch<Inner> extends NodeBranch<Inner> {
  weight: number
}

export interface SplitRangeNode<Inner> extends BaseNode {
  kind: 'split_range'
  randomize_on_entry: boolean
  branches: WeightedBranch<Inner>[]
}

const WHOLE = 100

export const splitRange = <Inner>(): NodeKindDefinition<SplitRangeNode<Inner>, Inner> => ({
  summary: 'spreads users over its branches by their weights',
  fields: {
    randomize_on_entry: flag('split_range: whether users who enter again are assigned anew.'),
    ...branchesField,
  },
  required: ['branches'],
  read(input) {
    const { reading, path, fields } = input
    const items = readBranches(input, { least: 2, most: 20 })
    const branches = readWeights(reading, `${path}.branches`, items)
    return {
      randomize_on_entry: reading.reader.boolean(`${path}.randomize_on_entry`, fields.randomize_on_entry),
      branches,
    }
  },
  decide: (node, { journeyId, run }) => ({ kind: 'continues', branchId: pickBranch(journeyId, node, run) }),
  // Which branch a user is in was decided by these weights. The nodes inside the branches may change.
  frozen: ({ randomize_on_entry, branches }) => ({
    randomize_on_entry,
    weights: branches.map(({ id, weight }) => [id, weight]),
  }),
})

/** In hundredths: 33.3, 33.3 and 33.4 sum to 100 as well. */
function readWeights<Inner>(
  { reader }: DocumentReading,
  path: string,
  items: readonly BranchInput<Inner>[],
): WeightedBranch<Inner>[] {
  const branches = items.map(({ path, fields: { weight }, branch }) => {
    if (typeof weight !== 'number')
      reader.report(`${path}.weight`, isPresent(weight) ? 'must be a number' : 'is required')
    else if (weight < 0 || weight > WHOLE || Math.abs(weight * 100 - Math.round(weight * 100)) > 1e-6)
      reader.report(`${path}.weight`, 'must be from 0 to 100, with two decimals at most')
    else return Object.assign(branch, { weight })
    return undefined
  })
  const weighted = branches.filter((branch) => branch !== undefined)
  const sum = Math.round(weighted.reduce((sum, { weight }) => sum + weight * 100, 0)) / 100
  if (weighted.length === items.length && items.length > 0 && sum !== WHOLE)
    reader.report(path, `must have weights that sum to 100, not ${sum}`)
  return weighted
}

/** The same branch for a user on every run, unless each run is to be assigned anew. */
export function pickBranch(
  journeyId: string,
  node: SplitRangeNode<unknown>,
  { userId, id }: { userId: UserId; id: RunId },
): BranchId {
  const picked = pickNumber(journeyId, node.id, userId, ...(node.randomize_on_entry ? [id] : [])) * WHOLE
  let reached = 0
  for (const branch of node.branches) {
    reached += branch.weight
    if (picked < reached) return branch.id
  }
  // The sum of hundredths may fall short of 100 by a rounding error.
  return (node.branches.findLast(({ weight }) => weight > 0) ?? node.branches[0])?.id as BranchId
}
