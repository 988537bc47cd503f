// The conditions that decide who takes a branch.

import { attributes, object, text, uuid, uuids } from '../document/json-schema.ts'
import { readEventMatch, readSegments } from '../document/read-fields.ts'
import { type Fields, isPresent } from '../document/reader.ts'
import type { DocumentReading } from '../document/reading.ts'
import type { RunEvent } from '../runs/run.ts'
import {
  type BranchCondition,
  type BranchId,
  type ConditionalBranch,
  type EventPair,
  MESSAGE_ACTIONS,
  type MessageAction,
} from './node.ts'
import type { Fact, NodeDecision, RunQuestion } from './node-kind.ts'

const MAX_KEY = 255
const MAX_PAIRS = 20

export const conditionSchema = {
  description: 'Decides who takes the branch.',
  anyOf: [
    object(
      {
        kind: { const: 'segment_membership' },
        included_segment_ids: uuids('In any of these.'),
        excluded_segment_ids: uuids('And in none of these.'),
      },
      ['kind'],
    ),
    object(
      {
        kind: { const: 'on_notification_action' },
        action: { enum: [...MESSAGE_ACTIONS] },
        sending_node_id: uuid('The node that sends the message.'),
        client_node_id: text(255, 'The same by its client_node_id; not answered.'),
      },
      ['kind', 'action'],
    ),
    object(
      {
        kind: { const: 'event_trigger' },
        name: text(255),
        attributes,
        entry_event_match_attributes: {
          type: 'array',
          description: 'For journeys that an event triggers: properties that must be as those of the entry event.',
          items: object(
            { key: text(255), entry_key: text(255, 'The key in the entry event. Defaults to the same key.') },
            ['key'],
          ),
        },
      },
      ['kind', 'name'],
    ),
  ],
}
export function readCondition(
  reading: DocumentReading,
  branchPath: string,
  value: unknown,
): BranchCondition | undefined {
  const { reader } = reading
  const path = `${branchPath}.condition`
  const fields = reader.object(path, value)
  const kind =
    fields &&
    reader.oneOf(`${path}.kind`, fields.kind, ['segment_membership', 'on_notification_action', 'event_trigger'])
  if (!fields || !kind) return undefined
  if (kind === 'event_trigger')
    return {
      kind,
      ...readEventMatch(reading, path, fields),
      entry_event_match_attributes: readPairs(reading, path, fields),
    }
  if (kind === 'segment_membership') {
    const included_segment_ids = readSegments(reading, `${path}.included_segment_ids`, fields.included_segment_ids)
    const excluded_segment_ids = readSegments(reading, `${path}.excluded_segment_ids`, fields.excluded_segment_ids)
    if (included_segment_ids.length + excluded_segment_ids.length === 0)
      reader.report(path, 'must name at least one segment')
    return { kind, included_segment_ids, excluded_segment_ids }
  }
  const action = reader.oneOf(`${path}.action`, fields.action, MESSAGE_ACTIONS) as MessageAction
  const condition = { kind, action, sending_node_id: '' }
  const [hasId, hasName] = [isPresent(fields.sending_node_id), isPresent(fields.client_node_id)]
  if (hasId === hasName) reader.report(path, 'must have sending_node_id or client_node_id, and one of them only')
  else
    reading.messageConditions.push({
      path,
      condition,
      nodeId: hasId ? reader.uuid(`${path}.sending_node_id`, fields.sending_node_id) : undefined,
      clientNodeId: hasName ? reader.text(`${path}.client_node_id`, fields.client_node_id, MAX_KEY) : undefined,
    })
  return condition
}

function readPairs({ reader, isEventJourney }: DocumentReading, path: string, fields: Fields): EventPair[] {
  const field = `${path}.entry_event_match_attributes`
  const items = reader.list(field, fields.entry_event_match_attributes, { most: MAX_PAIRS })
  if (items.length > 0 && !isEventJourney) reader.report(field, 'is for journeys with an event_trigger audience')
  return items.flatMap(([path, value]): EventPair[] => {
    const fields = reader.object(path, value)
    if (!fields) return []
    const key = reader.text(`${path}.key`, fields.key, MAX_KEY) as string
    const entry = isPresent(fields.entry_key) ? reader.text(`${path}.entry_key`, fields.entry_key, MAX_KEY) : key
    return [{ key, entry_key: entry as string }]
  })
}

export const questionOf = ({ id, condition }: ConditionalBranch<unknown>, upTo?: Date): RunQuestion => ({
  key: id,
  kind: 'condition',
  condition,
  ...(upTo && { upTo }),
})

/** `reason`: the fact by which the branch was chosen. */
export const takeBranch = (branchId: BranchId, reason: Fact | undefined): NodeDecision => ({
  kind: 'continues',
  branchId,
  metEvent: isEvent(reason) ? reason : undefined,
})

const isEvent = (fact: Fact | undefined): fact is RunEvent =>
  typeof fact === 'object' && fact !== null && !(fact instanceof Date)
