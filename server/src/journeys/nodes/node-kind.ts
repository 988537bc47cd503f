// What a kind of node consists of: how it looks on the wire, how it is read, and what it decides about a run that comes to it.

import type { Id } from '../../lib/ids.ts'
import type { Fields } from '../document/reader.ts'
import type { DocumentReading } from '../document/reading.ts'
import type { Run, RunEvent } from '../runs/run.ts'
import type {
  BaseNode,
  BranchCondition,
  BranchId,
  ConditionalBranch,
  NodeChannel,
  NodeId,
  TemplateChannel,
} from './node.ts'

/** A fact about a user that a decision depends on. Its answer is found by its key. */
export type RunQuestion =
  | { key: 'zone'; kind: 'zone' }
  | { key: 'last active'; kind: 'last active' }
  /** Whether a rule of early exit that looks at segments is met. */
  | { key: 'exit'; kind: 'exit' }
  /** `upTo`: only events that happened by then count. */
  | { key: string; kind: 'condition'; condition: BranchCondition; upTo?: Date }

/** The user's time zone or null, when they were last active, whether a condition holds, or the event that makes it hold. */
export type Fact = string | Date | boolean | RunEvent | null
/** By the keys of questions. */
export type Facts = ReadonlyMap<string, Fact>

export type NodeEffect =
  | { kind: 'send'; nodeId: NodeId; channel: TemplateChannel; templateId: string }
  | { kind: 'grant'; iamId: string; seconds: number | null }
  | { kind: 'call'; nodeId: NodeId; webhookId: string }
  | { kind: 'tag'; assignments: Record<string, string> }

export type NodeDecision =
  | { kind: 'asks'; questions: RunQuestion[] }
  /** `dueAt`: when to decide again; undefined while only an event can move the run. */
  | { kind: 'rests'; untilAt: Date | undefined; dueAt: Date | undefined }
  /** `metEvent`: the event by which the condition of the branch was met. */
  | { kind: 'continues'; branchId?: BranchId; effect?: NodeEffect; metEvent?: RunEvent | undefined }
  | { kind: 'exits' }

/** A run at a node. */
export type NodeVisit = {
  journeyId: Id<'journey'>
  run: Pick<Run, 'id' | 'userId'>
  now: Date
  /** Undefined when it comes to the node just now. */
  arrivedAt: Date | undefined
  untilAt: Date | undefined
  facts: Facts
  /** Nothing may be sent before; undefined when the app may send. */
  sendsHeldUntil: Date | undefined
}

/** A node as an author sent it. */
export type NodeInput<Inner> = {
  reading: DocumentReading
  path: string
  fields: Fields
  /** The node that is being read; its id is assigned when all nodes are known. */
  node: BaseNode
  readNodes: (path: string, value: unknown) => Inner[]
}

type OwnFields<Node> = Node extends unknown ? Omit<Node, 'kind' | keyof BaseNode> : never
type OrUndefined<Fields> = Fields extends unknown ? { [Name in keyof Fields]: Fields[Name] | undefined } : never
/** What could not be read is undefined. Nobody sees that: the reading has noted a problem. */
export type ReadFields<Node> = OrUndefined<OwnFields<Node>>

/** What moves a run that rests at a node. */
export type WaitConditions = {
  branches: readonly ConditionalBranch<unknown>[]
  expiration: { duration_seconds: number; exits: boolean } | null
}

export type NodeKindDefinition<Node, Inner = unknown> = {
  /** For the reference of the API. */
  summary: string
  /** JSON Schemas of the fields that only some kinds have, and which of them this kind cannot do without. */
  fields: Record<string, object>
  required: readonly string[]
  read: (input: NodeInput<Inner>) => ReadFields<Node>
  decide: (node: Node, visit: NodeVisit) => NodeDecision
  /** The channel that it sends by. */
  channel?: NodeChannel
  /** Whether it looks at the time zone and the last activity of users. */
  usesPresence?: boolean
  waitConditions?: (node: Node) => WaitConditions
  /** What an edit must leave alone while the journey is active. */
  frozen?: (node: Node) => unknown
}
