// What nodes with branches have in common.

import { type Fields, isPresent } from '../document/reader.ts'
import type { NodeBranch } from './node.ts'
import type { NodeInput } from './node-kind.ts'

export const branchesField = {
  branches: {
    type: 'array',
    items: { $ref: '#/components/schemas/JourneyBranch' },
    description: 'split_range, yes_no, wait_until',
  },
}

/** A branch with the fields that its author sent. */
export type BranchInput<Inner> = { path: string; fields: Fields; branch: NodeBranch<Inner> }

export function readBranches<Inner>(
  { reading, path, fields, node, readNodes }: NodeInput<Inner>,
  limits: { least: number; most: number },
): BranchInput<Inner>[] {
  const { reader } = reading
  return reader.list(`${path}.branches`, fields.branches, limits).flatMap(([path, value]): BranchInput<Inner>[] => {
    const fields = reader.object(path, value)
    if (!fields) return []
    const branch: NodeBranch<Inner> = { id: '', nodes: readNodes(`${path}.nodes`, fields.nodes) }
    const givenId = isPresent(fields.id) ? reader.uuid(`${path}.id`, fields.id) : undefined
    reading.branches.push({ path, node, branch, givenId })
    return [{ path, fields, branch }]
  })
}
