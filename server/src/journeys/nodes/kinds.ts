// All kinds of nodes. A new kind is a file of its own, a member of the union and an entry of the list; the compiler asks for both.

import type { ConditionalBranch, NodeBranch, TemplateChannel } from './node.ts'
import { TEMPLATE_CHANNELS } from './node.ts'
import type { NodeKindDefinition, WaitConditions } from './node-kind.ts'
import { type SendEmailNode, sendEmail } from './send-email.ts'
import { type SendIamNode, sendIam } from './send-iam.ts'
import { type SendPushNode, sendPush } from './send-push.ts'
import { type SendSmsNode, sendSms } from './send-sms.ts'
import { type SendWebhookNode, sendWebhook } from './send-webhook.ts'
import { type SplitRangeNode, splitRange } from './split-range.ts'
import { type TagNode, tag } from './tag.ts'
import { type TimeWindowNode, timeWindow } from './time-window.ts'
import { type WaitNode, wait } from './wait.ts'
import { type WaitUntilNode, waitUntil } from './wait-until.ts'
import { type YesNoNode, yesNo } from './yes-no.ts'

export type JourneyNode =
  | WaitNode
  | TimeWindowNode
  | SendPushNode
  | SendEmailNode
  | SendSmsNode
  | SendIamNode
  | SendWebhookNode
  | TagNode
  | SplitRangeNode<JourneyNode>
  | YesNoNode<JourneyNode>
  | WaitUntilNode<JourneyNode>

export type NodeKind = JourneyNode['kind']
export type NodeOf<Kind extends NodeKind> = Extract<JourneyNode, { kind: Kind }>

export const NODE_DEFINITIONS: { [Kind in NodeKind]: NodeKindDefinition<NodeOf<Kind>, JourneyNode> } = {
  wait,
  time_window: timeWindow,
  send_push: sendPush,
  send_email: sendEmail,
  send_sms: sendSms,
  send_iam: sendIam,
  send_webhook: sendWebhook,
  tag,
  split_range: splitRange(),
  yes_no: yesNo(),
  wait_until: waitUntil(),
}

export const NODE_KINDS = Object.keys(NODE_DEFINITIONS) as NodeKind[]

/** The rules of the node's own kind. */
export const definitionOf = ({ kind }: JourneyNode) =>
  NODE_DEFINITIONS[kind] as NodeKindDefinition<JourneyNode, JourneyNode>

export type JourneyBranch = NodeBranch<JourneyNode>

export const branchesOf = (node: JourneyNode): JourneyBranch[] => ('branches' in node ? node.branches : [])

/** Every node at any depth, each before the nodes that are nested in it. */
export const allNodes = (nodes: readonly JourneyNode[]): JourneyNode[] =>
  nodes.flatMap((node) => [node, ...branchesOf(node).flatMap((branch) => allNodes(branch.nodes))])

/** Branches that have a condition. */
export const conditionalBranchesOf = (node: JourneyNode): ConditionalBranch<JourneyNode>[] =>
  branchesOf(node).filter((branch): branch is ConditionalBranch<JourneyNode> => 'condition' in branch)

/** What a run that rests at the node waits for, where that is more than time. */
export const waitConditionsOf = (node: JourneyNode): WaitConditions | undefined =>
  definitionOf(node).waitConditions?.(node)

/** The channel of the template that a node of this kind sends. */
export const templateChannelOf = (kind: NodeKind): TemplateChannel | undefined =>
  TEMPLATE_CHANNELS.find((channel) => channel === NODE_DEFINITIONS[kind].channel)
