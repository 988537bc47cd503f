// Mail that is not sent anywhere is kept for inspection: the newest 1,000 mails of an app, for 7 days.

import { findAllApps } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { EmailContext } from '../context.ts'
import { type CaughtEmail, deleteCaughtBefore, deleteCaughtUpTo, findNewestBeyond, insertCaught } from './store.ts'

export const MAX_CAUGHT = 1_000
const RETENTION_MS = 7 * 86_400_000
/**
 * Besides the hourly cleanup, room is made after this many mails of an app, so that a large send cannot fill the disk.
 */
const MAKE_ROOM_AFTER = 200

export type CaughtEmailDraft = Omit<CaughtEmail, 'id' | 'at'>

/** Returns a function that keeps the mail of one app. */
export function createCatcher(ctx: Pick<EmailContext, 'db' | 'now' | 'newId'>, appId: AppId) {
  let caught = 0

  return async function keep(mails: readonly CaughtEmailDraft[]): Promise<void> {
    const at = ctx.now()
    await insertCaught(
      ctx.db,
      appId,
      mails.map((mail) => ({ ...mail, id: ctx.newId(), at })),
    )
    caught += mails.length
    if (caught < MAKE_ROOM_AFTER) return
    caught = 0
    await makeRoom(ctx.db, appId)
  }
}

async function makeRoom(db: Db, appId: AppId): Promise<void> {
  const beyond = await findNewestBeyond(db, appId, MAX_CAUGHT)
  if (beyond) await deleteCaughtUpTo(db, appId, beyond)
}

/** Covers all apps. */
export async function deleteExpiredCaught(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db)) {
    await deleteCaughtBefore(db, id, new Date(now.getTime() - RETENTION_MS))
    await makeRoom(db, id)
  }
}
