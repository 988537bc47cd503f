// The nodes of a journey, in the words of the interface.

import type { Id } from '../../lib/ids.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { EventMatch } from '../journey.ts'

export type NodeId = Id<'journey node'>
export type BranchId = Id<'journey branch'>

export const NODE_KINDS = [
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
export type NodeKind = (typeof NODE_KINDS)[number]

export const MESSAGE_ACTIONS = ['received', 'clicked', 'opened'] as const

export type BranchCondition =
  | { kind: 'segment_membership'; included_segment_ids: SegmentId[]; excluded_segment_ids: SegmentId[] }
  | { kind: 'on_notification_action'; action: (typeof MESSAGE_ACTIONS)[number]; sending_node_id: NodeId }
  | ({ kind: 'event_trigger'; entry_event_match_attributes: EventPair[] } & EventMatch)

/** A property of the event that must have the value that a property of the entry event had. */
export type EventPair = { key: string; entry_key: string }

export type JourneyBranch = { id: BranchId; nodes: JourneyNode[] }
type Conditional = JourneyBranch & { condition: BranchCondition }

export type TimeOfDay = { hour: number; minute: number }
/** On every day, unless one is given: 1 is Monday. An end that is not after the start is on the next day. */
export type TimeWindow = { start: TimeOfDay; end: TimeOfDay; day_of_week?: number }

type Common = { id: NodeId; client_node_id?: string; annotation?: string }

export type JourneyNode = Common &
  (
    | { kind: 'wait'; duration_seconds: number }
    | { kind: 'time_window'; relative_to: 'last_active_time' }
    | {
        kind: 'time_window'
        relative_to: 'schedule_in_timezone'
        windows: TimeWindow[]
        time_zone: string
        use_user_time_zone: boolean
      }
    | { kind: 'send_push' | 'send_email' | 'send_sms'; template_id: string }
    | { kind: 'send_iam'; iam_id: string; user_ttl_seconds: number | null }
    | { kind: 'send_webhook'; webhook_id: string }
    | { kind: 'tag'; assignments: Record<string, string> }
    | { kind: 'split_range'; randomize_on_entry: boolean; branches: (JourneyBranch & { weight: number })[] }
    | { kind: 'yes_no'; branches: [Conditional, JourneyBranch] }
    | { kind: 'wait_until'; branches: Conditional[]; expiration: { duration_seconds: number; exits: boolean } | null }
  )

export type NodeOf<K extends NodeKind> = Extract<JourneyNode, { kind: K }>

export const branchesOf = (node: JourneyNode): JourneyBranch[] => ('branches' in node ? node.branches : [])

/** Every node at any depth, each before what is nested in it. */
export const allNodes = (nodes: readonly JourneyNode[]): JourneyNode[] =>
  nodes.flatMap((node) => [node, ...branchesOf(node).flatMap((branch) => allNodes(branch.nodes))])

/** The channel of the template that a node sends. */
export const CHANNEL_OF = { send_push: 'push', send_email: 'email', send_sms: 'sms' } as const
export const sendsTemplate = (kind: NodeKind): kind is keyof typeof CHANNEL_OF => Object.hasOwn(CHANNEL_OF, kind)
