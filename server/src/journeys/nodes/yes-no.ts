import { isPresent } from '../document/reader.ts'
import { branchesField, readBranches } from './branches.ts'
import { questionOf, readCondition, takeBranch } from './conditions.ts'
import type { BaseNode, BranchCondition, ConditionalBranch, NodeBranch } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'

export interface YesNoNode<Inner> extends BaseNode {
  kind: 'yes_no'
  branches: [ConditionalBranch<Inner>, NodeBranch<Inner>]
}

export const yesNo = <Inner>(): NodeKindDefinition<YesNoNode<Inner>, Inner> => ({
  summary: 'users who meet the condition take the first branch, all others the second',
  fields: branchesField,
  required: ['branches'],
  read(input) {
    const { reading } = input
    const items = readBranches(input, { least: 2, most: 2 })
    const branches = items.map(({ path, fields, branch }, n) => {
      if (n === 0)
        return Object.assign(branch, { condition: readCondition(reading, path, fields.condition) as BranchCondition })
      if (isPresent(fields.condition))
        reading.reader.report(`${path}.condition`, 'must be left out: the second branch is the way of all others')
      return branch
    })
    return { branches: branches as YesNoNode<Inner>['branches'] }
  },
  decide({ branches: [yes, no] }, { facts }) {
    const question = questionOf(yes)
    const fact = facts.get(question.key)
    if (fact === undefined) return { kind: 'asks', questions: [question] }
    return takeBranch(fact ? yes.id : no.id, fact)
  },
})
