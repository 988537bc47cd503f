// Reads a message's audience: as a filter tree, or as names of recipients.

import { type AppId, isUuid } from '../../lib/ids.ts'
import { readFilters } from '../../segments/filters/read-filters.ts'
import type { FilterNode } from '../../segments/filters/tree.ts'
import type { Db } from '../../storage/db.ts'
import { ONESIGNAL_ID } from '../../users/aliases/identity.ts'
import type { Engine } from '../engine/types.ts'
import { readSegmentTrees } from '../frozen-segments.ts'
import type { Audience, MessageId } from '../message.ts'
import type { NamedRecipient } from './candidates.ts'
import type { UnexpandedMessage } from './store.ts'

export const isByRange = ({ kind }: Audience) => kind === 'segments' || kind === 'filters' || kind === 'activity'

const NOBODY: FilterNode = { kind: 'any', of: [] }

/** Only for audiences that are read by ranges. */
export async function audienceOf(
  { log }: Pick<Engine, 'log'>,
  db: Db,
  appId: AppId,
  { id, audience, channel }: UnexpandedMessage,
): Promise<FilterNode> {
  if (audience.kind !== 'segments' && audience.kind !== 'filters') return NOBODY
  const excluded = await readSegmentTrees(db, appId, audience.excluded)
  // Nobody can tell any more who was to be excluded. Sending to nobody is better than sending to one of them.
  if (!excluded.every((tree) => tree !== undefined)) {
    log.warn({ appId, messageId: id }, 'Sending the message to nobody: an excluded segment was deleted')
    return NOBODY
  }
  const included =
    audience.kind === 'filters'
      ? [readFilters(audience.filters).tree]
      : (await readSegmentTrees(db, appId, audience.included)).filter((tree) => tree !== undefined)
  return {
    kind: 'all',
    of: [
      { kind: 'any', of: included },
      { kind: 'none', of: excluded },
      { kind: 'channel', channel },
    ],
  }
}

export function namesIn(messageId: MessageId, audience: Audience): NamedRecipient[] {
  if (audience.kind === 'subscriptions') return audience.ids.map((subscriptionId) => ({ messageId, subscriptionId }))
  if (audience.kind !== 'aliases') return []
  return Object.entries(audience.aliases).flatMap(([label, values]): NamedRecipient[] =>
    label === ONESIGNAL_ID
      ? values.filter(isUuid).map((userId) => ({ messageId, userId }))
      : values.map((value) => ({ messageId, label, value })),
  )
}
