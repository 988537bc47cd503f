import { flag, object } from '../document/json-schema.ts'
import { isPresent } from '../document/reader.ts'
import type { DocumentReading } from '../document/reading.ts'
import { branchesField, readBranches } from './branches.ts'
import { questionOf, readCondition, takeBranch } from './conditions.ts'
import type { BaseNode, BranchCondition, ConditionalBranch } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'
import { readDuration, secondsAfter, secondsSchema } from './rest.ts'

type Expiration = { duration_seconds: number; exits: boolean }

export interface WaitUntilNode<Inner> extends BaseNode {
  kind: 'wait_until'
  branches: ConditionalBranch<Inner>[]
  expiration: Expiration | null
}

export const waitUntil = <Inner>(): NodeKindDefinition<WaitUntilNode<Inner>, Inner> => ({
  summary: 'users rest until a condition is met, and take its branch',
  fields: {
    ...branchesField,
    expiration: {
      ...object({
        duration_seconds: secondsSchema,
        exits: flag('Whether users leave the journey when the time is over.'),
      }),
      type: ['object', 'null'],
      description: 'wait_until: how long users wait; for ever without it.',
    },
  },
  required: ['branches'],
  read(input) {
    const { reading, path, fields } = input
    const branches = readBranches(input, { least: 1, most: 10 }).map(({ path, fields, branch }) =>
      Object.assign(branch, { condition: readCondition(reading, path, fields.condition) as BranchCondition }),
    )
    if (branches.filter(({ condition }) => condition?.kind === 'on_notification_action').length > 1)
      reading.reader.report(`${path}.branches`, 'must have one condition of the kind on_notification_action at most')
    return { branches, expiration: readExpiration(reading, `${path}.expiration`, fields.expiration) }
  },
  /**
   * The first condition that holds decides. Events that are seen only after the time is over count if they happened in time; segments
   * and messages have no such time, so whoever meets the condition by then is taken to have met it in time.
   */
  decide({ branches, expiration }, { now, arrivedAt, untilAt, facts }) {
    const questions = branches.map((branch) => questionOf(branch, untilAt)).filter(({ key }) => !facts.has(key))
    if (questions.length > 0) return { kind: 'asks', questions }
    const met = branches.find(({ id }) => facts.get(id))
    if (met) return takeBranch(met.id, facts.get(met.id))
    const end = arrivedAt === undefined ? expiration && secondsAfter(now, expiration.duration_seconds) : untilAt
    if (!end) return { kind: 'rests', untilAt: undefined, dueAt: undefined }
    if (end > now) return { kind: 'rests', untilAt: end, dueAt: end }
    return expiration?.exits ? { kind: 'exits' } : { kind: 'continues' }
  },
  waitConditions: ({ branches, expiration }) => ({ branches, expiration }),
})

function readExpiration(reading: DocumentReading, path: string, value: unknown): Expiration | null | undefined {
  if (!isPresent(value)) return null
  const fields = reading.reader.object(path, value)
  return (
    fields && {
      duration_seconds: readDuration(reading, `${path}.duration_seconds`, fields.duration_seconds) as number,
      exits: reading.reader.boolean(`${path}.exits`, fields.exits),
    }
  )
}
