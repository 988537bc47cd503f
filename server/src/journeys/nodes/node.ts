// The shapes that nodes of all kinds share, in the words of the interface. What a kind adds is in the file of the kind.

import type { Id } from '../../lib/ids.ts'
import type { SegmentId } from '../../segments/segment.ts'

export type NodeId = Id<'journey node'>
export type BranchId = Id<'journey branch'>

export interface BaseNode {
  id: NodeId
  client_node_id?: string
  annotation?: string
}

/** An alternative of a node. `Inner`: the nodes in it, which only the list of all kinds knows. */
export interface NodeBranch<Inner> {
  id: BranchId
  nodes: Inner[]
}

export interface ConditionalBranch<Inner> extends NodeBranch<Inner> {
  condition: BranchCondition
}

export const EVENT_OPERATORS = [
  'equal',
  'not_equal',
  'less',
  'less_or_equal',
  'greater_or_equal',
  'greater',
  'is',
  'is_not',
  'exists',
  'not_exists',
  'before',
  'after',
] as const
export type EventAttribute = { key: string; operator: (typeof EVENT_OPERATORS)[number]; value?: string }

/** At most one group, all of which must hold. */
export type EventMatch = { name: string; attributes: EventAttribute[][] }

/** A property of the event must have the value that a property of the entry event had. */
export type EventPair = { key: string; entry_key: string }

export const MESSAGE_ACTIONS = ['received', 'clicked', 'opened'] as const
export type MessageAction = (typeof MESSAGE_ACTIONS)[number]

export type MessageCondition = { kind: 'on_notification_action'; action: MessageAction; sending_node_id: NodeId }

export type BranchCondition =
  | { kind: 'segment_membership'; included_segment_ids: SegmentId[]; excluded_segment_ids: SegmentId[] }
  | MessageCondition
  | ({ kind: 'event_trigger'; entry_event_match_attributes: EventPair[] } & EventMatch)

/** Channels of messages that are made of templates. */
export const TEMPLATE_CHANNELS = ['push', 'email', 'sms'] as const
export type TemplateChannel = (typeof TEMPLATE_CHANNELS)[number]
export type NodeChannel = TemplateChannel | 'in_app' | 'webhook'
