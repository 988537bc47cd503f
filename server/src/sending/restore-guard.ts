// A database that was restored from a backup, or copied, considers messages due that its original has sent long ago. So
// the database stores what identifies it; a server that starts on one whose identity has changed holds all sending
// until an operator decides what happens to it.

import type { Log } from '../lib/log.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { Db } from '../storage/db.ts'
import { findObjectIds, findSystemIdentifier } from './database-identity-store.ts'
import { lockServerSending, updateServerSending } from './store.ts'

export type DatabaseIdentity = {
  /** PostgreSQL's system identifier. */
  system: string | null
  database: string
  table: string
  /** The epoch of the data folder of an embedded PostgreSQL. */
  epoch: string | null
}

export async function guardRestore(db: Db, epoch: string | undefined, now: Date, log: Log): Promise<void> {
  const identity: DatabaseIdentity = {
    system: await findSystemIdentifier(db),
    ...(await findObjectIds(db)),
    epoch: epoch ?? null,
  }
  const restored = await db.transaction(async (db) => {
    const before = await lockServerSending(db)
    const differing = differences(before.identity, identity)
    await updateServerSending(db, {
      ...before,
      restoredAt: differing.length > 0 ? (before.restoredAt ?? now) : before.restoredAt,
      // Parts that this server cannot see are kept, because the next server may see them.
      identity: { ...before.identity, ...knownParts(identity) },
    })
    return differing
  })
  if (restored.length > 0)
    log.error(
      { alarm: true, differing: restored },
      'this database was restored or copied: all sending is held; run "carillon resume --send", or "--discard" to give up what is due',
    )
}

const knownParts = (identity: DatabaseIdentity) =>
  Object.fromEntries(Object.entries(identity).filter(([, value]) => value !== null))

/** Compares only parts that both sides know: a database that is seen for the first time is its own original. */
const differences = (before: Record<string, unknown> | null, now: DatabaseIdentity) =>
  Object.entries(knownParts(now)).flatMap(([name, value]) => {
    const earlier = before ? ownProperty(before, name) : undefined
    return earlier !== undefined && earlier !== value ? [name] : []
  })
