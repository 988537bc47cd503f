// The nodes of a journey, in the words of the interface.

import type { Id } from '../../lib/ids.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { EventMatch } from '../journey.ts'

export type NodeId = Id<'journey node'>
export type BranchId = Id<'journey branch'>

export const KINDS = [
  'wait',
  'time_window',
  'send_push',
  'send_email',
  'send_sms',
  'send_iam',
  'send_webhook',
  'tag',
  'split_range',
  'yes_no',
  'wait_until',
] as const
export type Kind = (typeof KINDS)[number]

export const ACTIONS = ['received', 'clicked', 'opened'] as const

export type Condition =
  | { kind: 'segment_membership'; included_segment_ids: SegmentId[]; excluded_segment_ids: SegmentId[] }
  | { kind: 'on_notification_action'; action: (typeof ACTIONS)[number]; sending_node_id: NodeId }
  | ({ kind: 'event_trigger'; entry_event_match_attributes: EventPair[] } & EventMatch)

/** A property of the event that must have the value that a property of the entry event had. */
export type EventPair = { key: string; entry_key: string }

export type Branch = { id: BranchId; nodes: Node[] }
type Conditional = Branch & { condition: Condition }

export type TimePoint = { hour: number; minute: number }
/** On every day, unless one is given: 1 is Monday. An end that is not after the start is on the next day. */
export type Window = { start: TimePoint; end: TimePoint; day_of_week?: number }

type Common = { id: NodeId; client_node_id?: string; annotation?: string }

export type Node = Common &
  (
    | { kind: 'wait'; duration_seconds: number }
    | { kind: 'time_window'; relative_to: 'last_active_time' }
    | {
        kind: 'time_window'
        relative_to: 'schedule_in_timezone'
        windows: Window[]
        time_zone: string
        use_user_time_zone: boolean
      }
    | { kind: 'send_push' | 'send_email' | 'send_sms'; template_id: string }
    | { kind: 'send_iam'; iam_id: string; user_ttl_seconds: number | null }
    | { kind: 'send_webhook'; webhook_id: string }
    | { kind: 'tag'; assignments: Record<string, string> }
    | { kind: 'split_range'; randomize_on_entry: boolean; branches: (Branch & { weight: number })[] }
    | { kind: 'yes_no'; branches: [Conditional, Branch] }
    | { kind: 'wait_until'; branches: Conditional[]; expiration: { duration_seconds: number; exits: boolean } | null }
  )

export type NodeOf<K extends Kind> = Extract<Node, { kind: K }>

export const branchesOf = (node: Node): Branch[] => ('branches' in node ? node.branches : [])

/** Every node at any depth, each before what is nested in it. */
export const allNodes = (nodes: readonly Node[]): Node[] =>
  nodes.flatMap((node) => [node, ...branchesOf(node).flatMap((branch) => allNodes(branch.nodes))])

/** The channel of the template that a node sends. */
export const CHANNEL_OF = { send_push: 'push', send_email: 'email', send_sms: 'sms' } as const
export const sendsTemplate = (kind: Kind): kind is keyof typeof CHANNEL_OF => Object.hasOwn(CHANNEL_OF, kind)
