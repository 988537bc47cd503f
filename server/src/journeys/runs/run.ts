// A run: one user once through one journey, as far as advancing it needs to know.

import type { UserId } from '../../lib/ids.ts'
import type { RunId } from '../../messages/message.ts'
import type { NodeId } from '../nodes/node.ts'

export type { RunId } from '../../messages/message.ts'

/** Workers share a journey by shards of its runs. A run stays in its shard. */
export const RUN_SHARDS = [0, 1, 2, 3] as const
export type RunShard = (typeof RUN_SHARDS)[number]

const MINUTE_MS = 60_000

/**
 * The shard of users who enter now. Each shard has a job of its own, so users who enter together share one; over the minutes all
 * shards get as many.
 */
export const shardAt = (now: Date): RunShard => (Math.floor(now.getTime() / MINUTE_MS) % RUN_SHARDS.length) as RunShard

export type RunEvent = { id: string; name: string; at: string; properties: Record<string, unknown> }

export type RunState = 'waiting' | 'completed' | 'exited' | 'stopped' | 'barred'

export type Run = {
  id: RunId
  userId: UserId
  /** Undefined before the first node. */
  nodeId: NodeId | undefined
  /** Undefined while it is about to arrive at its node. */
  arrivedAt: Date | undefined
  /** When it leaves its node unless something happens before. */
  untilAt: Date | undefined
  enteredAt: Date
  entryEvent: RunEvent | undefined
  /** Events by which its conditions were met, in order. */
  metEvents: readonly RunEvent[]
  /** Something happened that makes it leave early. */
  wantsExit: boolean
  /** It met a rule of early exit when it entered, so it does its first node and then leaves. */
  exitsLater: boolean
  /** Whether it is done with at least one node. */
  hasPassed: boolean
}
