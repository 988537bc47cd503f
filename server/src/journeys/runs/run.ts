// One user once on the way through a journey, as far as whoever moves it needs to know.

import type { UserId } from '../../lib/ids.ts'
import type { RunId } from '../../messages/message.ts'
import type { NodeId } from '../nodes/node.ts'

export type { RunId } from '../../messages/message.ts'

/** Workers share a journey by parts. A run stays in the one that it came into. */
export const RUN_SHARDS = [0, 1, 2, 3] as const
export type RunShard = (typeof RUN_SHARDS)[number]

const MINUTE_MS = 60_000

/**
 * Of those who come in now. Each part has a job of its own, so that a few who come together should share one; over the minutes all
 * parts get as many.
 */
export const shardAt = (now: Date): RunShard => (Math.floor(now.getTime() / MINUTE_MS) % RUN_SHARDS.length) as RunShard

export type RunEvent = { id: string; name: string; at: string; properties: Record<string, unknown> }

export type RunState = 'waiting' | 'completed' | 'exited' | 'stopped' | 'barred'

export type Run = {
  id: RunId
  userId: UserId
  /** Undefined before the first node. */
  nodeId: NodeId | undefined
  /** Undefined while it is about to come to its node. */
  arrivedAt: Date | undefined
  /** When it leaves its node if nothing happens before. */
  untilAt: Date | undefined
  enteredAt: Date
  entryEvent: RunEvent | undefined
  /** Those by which its conditions were met, in that order. */
  metEvents: readonly RunEvent[]
  /** Something happened that makes it leave early. */
  wantsExit: boolean
  /** It was to leave early when it came in: it is done with its first node before. */
  exitsLater: boolean
  /** Whether it has been done with a node. */
  hasPassed: boolean
}
