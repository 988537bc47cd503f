// One user once on the way through a journey, as far as whoever moves it needs to know.

import type { UserId } from '../../lib/ids.ts'
import type { RunId } from '../../messages/message.ts'
import type { NodeId } from '../node.ts'

export type { RunId } from '../../messages/message.ts'

/** Runs are shared out by their users. */
export const PARTS = [0, 1, 2, 3] as const
export type Part = (typeof PARTS)[number]
export const partOf = (userId: UserId): Part => (Number.parseInt(userId.slice(-1), 16) % PARTS.length) as Part

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
  wantsExit: boolean
  /** Whether it has been done with a node. */
  hasPassed: boolean
}
