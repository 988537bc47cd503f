// The last step of Create message: the answer, in the field names that the request used.

import { ownProperty } from '../../lib/own-property.ts'
import type { CreatedAnswer } from '../schema.ts'
import type { MessageRequest } from './read-request.ts'
import type { Targeting } from './read-targeting.ts'
import type { AcceptedMessage } from './submission.ts'

/** This exact text is in the official clients' error catalogue. */
export const NO_SUBSCRIBERS = 'All included players are not subscribed'

/** `accepted` is undefined when no target could be reached. */
export function writeAnswer(
  { keys, targeting }: Pick<MessageRequest, 'keys' | 'targeting'>,
  accepted: AcceptedMessage | undefined,
  warnings: readonly string[],
): CreatedAnswer {
  const warningsField = warnings.length > 0 && { warnings: [...warnings] }
  if (!accepted) return { id: '', errors: [NO_SUBSCRIBERS], ...warningsField }
  const errors = unsubscribedErrors(targeting, accepted.unsubscribed)
  return {
    id: accepted.id,
    external_id: keys[0]?.key ?? null,
    ...(accepted.recipients !== null && { recipients: accepted.recipients }),
    ...(errors && { errors }),
    ...warningsField,
  }
}

const ERROR_NAMES: Record<string, string> = {
  email_to: 'invalid_email_tokens',
  include_email_tokens: 'invalid_email_tokens',
  include_phone_numbers: 'invalid_phone_numbers',
  include_external_user_ids: 'invalid_external_user_ids',
}

/** Names the targets that exist but are not subscribed. `indexes` are their positions among the targets. */
function unsubscribedErrors(targeting: Targeting, indexes: readonly number[]): object | undefined {
  if (indexes.length === 0) return undefined
  if (targeting.kind === 'aliases' && targeting.field === 'include_aliases')
    return { invalid_aliases: aliasesAt(targeting.aliases, indexes) }
  const { field, names } = namesIn(targeting)
  return { [ownProperty(ERROR_NAMES, field) ?? 'invalid_player_ids']: indexes.map((index) => names[index]) }
}

function aliasesAt(aliases: Record<string, string[]>, indexes: readonly number[]): Record<string, string[]> {
  const pairs = Object.entries(aliases).flatMap(([label, values]) => values.map((value) => ({ label, value })))
  const byLabel: Record<string, string[]> = Object.create(null)
  for (const index of indexes) {
    const { label, value } = pairs[index] as { label: string; value: string }
    byLabel[label] = [...(ownProperty(byLabel, label) ?? []), value]
  }
  return byLabel
}

function namesIn(targeting: Targeting): { field: string; names: string[] } {
  const { kind } = targeting
  if (kind === 'subscriptions') return { field: targeting.field, names: targeting.ids }
  if (kind === 'tokens') return { field: targeting.field, names: targeting.tokens }
  if (kind === 'aliases') return { field: targeting.field, names: Object.values(targeting.aliases).flat() }
  throw new Error('segments and filters name nobody')
}
