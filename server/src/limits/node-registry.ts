// Which nodes answer requests, and how each counts them. Nothing here takes a lock: a node always says first and looks after.
// Of two that do so at the same time, at least one sees the other:
//   - a node that wants to count alone says so and then looks; when it sees anybody, it takes it back;
//   - a node that joins says so and then looks; when it sees one that counts alone, it waits until that one has stopped.
// A node that leaves or dies stays in the census as long as something that it let in may count in a window.

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

/** A node that says nothing for so long is taken for dead. */
const LEASE_MS = 5_000
/**
 * A node counts alone only until so long before its lease ends: 1 s so that what it let in last has left every window
 * of a second before another node begins, 1 s for clocks that differ.
 */
const MARGIN_MS = 2_000

export type OtherNodes = {
  /** They answer requests, or are about to. */
  alive: ServerNode[]
  /** What a node that is gone let in may still count. */
  areAllForgotten: boolean
}

export type NodeHeartbeat = {
  /** Nobody took this node for dead since it last said something. */
  wasMember: boolean
  /** Until when it may count alone, if it does. */
  aloneUntilMs: number
  /** Until when it may count together with others: before anybody else could find itself alone. */
  memberUntilMs: number
}

/** Say that this node lives, and how it counts. One that was taken for dead joins as one of several. */
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

/** See who else is there, and bury those that have not said anything in time. */
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

/** Whether something may still count that a former life under this id let in. */
export async function hasPredecessor(db: Db, id: string, now: number): Promise<boolean> {
  return (await findNodes(db)).some((node) => node.id === id && forgottenAt(node) > now)
}

export const announce = announceChange

export async function leaveRegistry(db: Db, id: string, now: number): Promise<void> {
  await saveNode(db, { id, counts: 'gone', leaseUntil: now + LONGEST_WINDOW_MS })
  await announceChange(db)
}
