import { uuid } from '../document/json-schema.ts'
import { readReference } from '../document/read-fields.ts'
import { isPresent } from '../document/reader.ts'
import type { BaseNode } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'

export interface SendIamNode extends BaseNode {
  kind: 'send_iam'
  iam_id: string
  user_ttl_seconds: number | null
}

const MAX_TTL_SECONDS = 2_147_483_647

export const sendIam: NodeKindDefinition<SendIamNode> = {
  summary: 'lets devices of the user show an in-app message',
  fields: {
    iam_id: uuid('send_iam: an in-app message.'),
    user_ttl_seconds: {
      type: ['integer', 'null'],
      minimum: 1,
      description: 'send_iam: how long it may be shown; null: for as long as it exists.',
    },
  },
  required: ['iam_id'],
  channel: 'in_app',
  read: ({ reading, path, fields }) => ({
    iam_id: readReference(reading, `${path}.iam_id`, fields.iam_id, { kind: 'iam' }),
    user_ttl_seconds: isPresent(fields.user_ttl_seconds)
      ? reading.reader.integer(`${path}.user_ttl_seconds`, fields.user_ttl_seconds, 1, MAX_TTL_SECONDS)
      : null,
  }),
  decide: ({ iam_id: iamId, user_ttl_seconds: seconds }) => ({
    kind: 'continues',
    effect: { kind: 'grant', iamId, seconds },
  }),
}
