// Which nodes answer requests, and how each counts them. What is always true of the rows, because every change is made
// under one lock: at most one node counts locally, and then all others are joiners that wait for it to stop doing so.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { CounterLog } from './local.ts'
import {
  announceChange,
  type Counts,
  deleteNodes,
  findNodes,
  insertNode,
  lockCensus,
  lockNodes,
  type ServerNode,
  takeCountersOfAllApps,
  updateNode,
} from './store.ts'

/** A node that says nothing for so long is taken for dead. */
export const LEASE_MS = 5_000
/**
 * A node counts locally only until so long before its lease ends: 1 s so that what it let in last has left every window
 * of a second before another node begins, 1 s for clocks that differ.
 */
const MARGIN_MS = 2_000

export type Census = {
  /** How the row says that this node counts; undefined when there was no row, and there is a new one now. */
  mine: Counts | undefined
  others: ServerNode[]
  /** Until when this node may count locally, if it does. */
  localUntilMs: number
}

/** Say that this node lives, and bury those that have not said so in time. */
export async function renewLease(db: Db, id: string, leaseMs: number): Promise<Census> {
  const leaseUntil = leaseMs + LEASE_MS
  return db.transaction(async (db) => {
    await lockCensus(db)
    const nodes = await findNodes(db)
    const mine = nodes.find((node) => node.id === id)?.counts
    const others = await buryDead(db, nodes, id, leaseMs)
    if (mine) await updateNode(db, { id, counts: mine, leaseUntil })
    else {
      await insertNode(db, { id, counts: 'shared', leaseUntil })
      await announceChange(db)
    }
    return { mine, others, localUntilMs: leaseUntil - MARGIN_MS }
  })
}

async function buryDead(db: Db, nodes: ServerNode[], id: string, leaseMs: number): Promise<ServerNode[]> {
  const others = nodes.filter((node) => node.id !== id)
  const dead = others.filter((node) => node.leaseUntil <= leaseMs).map((node) => node.id)
  if (dead.length > 0) await deleteNodes(db, dead)
  return others.filter((node) => node.leaseUntil > leaseMs)
}

/**
 * Become the one that counts locally, until the time that comes back; undefined when somebody else is there.
 * `onRead` gets all that was counted together, before the commit: when its outcome is never learnt, that may exist
 * nowhere else.
 */
export async function becomeLocal(
  db: Db,
  id: string,
  leaseMs: number,
  onRead: (counters: (CounterLog & { appId: AppId })[]) => void,
): Promise<number | undefined> {
  const leaseUntil = leaseMs + LEASE_MS
  return db.transaction(async (db) => {
    await lockCensus(db)
    const nodes = await lockNodes(db)
    if (!nodes.some((node) => node.id === id)) return undefined
    if ((await buryDead(db, nodes, id, leaseMs)).length > 0) return undefined
    await updateNode(db, { id, counts: 'local', leaseUntil })
    onRead(await takeCountersOfAllApps(db))
    return leaseUntil - MARGIN_MS
  })
}

/** From here on the others need not wait for this node. False when it was taken for dead meanwhile. */
export async function becomeShared(db: Db, id: string, leaseMs: number): Promise<boolean> {
  return db.transaction(async (db) => {
    await lockCensus(db)
    const updated = await updateNode(db, { id, counts: 'shared', leaseUntil: leaseMs + LEASE_MS })
    await announceChange(db)
    return updated.length > 0
  })
}

export async function leaveCensus(db: Db, id: string): Promise<void> {
  await db.transaction(async (db) => {
    await lockCensus(db)
    await deleteNodes(db, [id])
    await announceChange(db)
  })
}
