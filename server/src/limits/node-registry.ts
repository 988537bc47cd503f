// The registry of nodes that answer requests, and how each counts them. Nothing here takes a lock: a node always
// announces first and reads afterwards. Of two nodes that do so at the same time, at least one sees the other:
// - A node that wants to count alone announces that and then reads; if it sees another node, it withdraws.
// - A node that joins announces that and then reads; if it sees a node that counts alone, it waits until that one has
//   stopped.
// A node that leaves or dies stays in the registry as long as something that it admitted may count in a window.

import type { Db } from '../storage/db.ts'
import { LONGEST_WINDOW_MS } from './rules.ts'
import {
  announceChange,
  type CountingMode,
  deleteGoneNodes,
  findNodes,
  markNodesGone,
  renewNode,
  type ServerNode,
  saveNode,
} from './store.ts'

/** A node that does not renew for this long is considered dead. */
const LEASE_MS = 5_000
/**
 * A node stops counting alone this long before its lease ends: 1 s so that what it admitted last has left every window
 * of a second before another node begins, and 1 s for clock differences.
 */
const MARGIN_MS = 2_000

export type OtherNodes = {
  /** Nodes that answer requests, or are about to. */
  alive: ServerNode[]
  /** True when nothing that departed nodes admitted can still count. */
  areAllForgotten: boolean
}

export type NodeHeartbeat = {
  /** True when no other node considered this one dead since its last renewal. */
  wasMember: boolean
  /** Until when it may count alone, if it does. */
  aloneUntilMs: number
  /** Until when it may count together with others: before any other node could find itself alone. */
  memberUntilMs: number
}

/** Records that this node is alive, and how it counts. A node that was considered dead rejoins as one of several. */
export async function renewMembership(
  db: Db,
  id: string,
  counts: Exclude<CountingMode, 'gone'>,
  now: number,
): Promise<NodeHeartbeat> {
  const leaseUntil = now + LEASE_MS
  const wasMember = await renewNode(db, { id, counts, leaseUntil })
  if (!wasMember) {
    await saveNode(db, { id, counts: 'shared', leaseUntil })
    await announceChange(db)
  }
  return { wasMember, aloneUntilMs: leaseUntil - MARGIN_MS, memberUntilMs: leaseUntil + LONGEST_WINDOW_MS / 2 }
}

/** Finds the other nodes, and marks those dead that have not renewed in time. */
export async function findOtherNodes(db: Db, id: string, now: number): Promise<OtherNodes> {
  const others = (await findNodes(db)).filter((node) => node.id !== id)
  const isLate = ({ counts, leaseUntil }: ServerNode) => counts !== 'gone' && leaseUntil <= now
  const late = others.filter(isLate).map((node) => node.id)
  const buried = late.length > 0 ? await markNodesGone(db, late, now, LONGEST_WINDOW_MS) : []
  const dead = new Set(buried.map((node) => node.id))
  if (others.some(({ counts, leaseUntil }) => counts === 'gone' && leaseUntil <= now)) await deleteGoneNodes(db, now)
  return {
    alive: others.filter((node) => node.counts !== 'gone' && !dead.has(node.id)),
    areAllForgotten: others.every((node) => forgottenAt(node) <= now),
  }
}

const forgottenAt = ({ counts, leaseUntil }: ServerNode) =>
  counts === 'gone' ? leaseUntil : leaseUntil + LONGEST_WINDOW_MS

/** Whether something may still count that an earlier process admitted under this id. */
export async function hasPredecessor(db: Db, id: string, now: number): Promise<boolean> {
  return (await findNodes(db)).some((node) => node.id === id && forgottenAt(node) > now)
}

export const announce = announceChange

export async function leaveRegistry(db: Db, id: string, now: number): Promise<void> {
  await saveNode(db, { id, counts: 'gone', leaseUntil: now + LONGEST_WINDOW_MS })
  await announceChange(db)
}
