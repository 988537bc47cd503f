// The pause for complaints. An app's email is paused when too many recipients report it as spam, and resumed by
// somebody who has investigated. The limit of the receivers is 0.3 %; beyond it they block the sender.

import { SYSTEM } from '../apps/app.ts'
import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries } from '../apps/store.ts'
import { type AppId, newId } from '../lib/ids.ts'
import { enqueueResume } from '../sending/control.ts'
import { notifyAdministrators } from '../sending/notify-administrators.ts'
import type { Db } from '../storage/db.ts'
import type { EmailContext } from './context.ts'
import { clearPause, findPauseRow, insertPause } from './pause-store.ts'

const WINDOW_MS = 7 * 86_400_000
const MAX_COMPLAINT_RATE = 0.003
/** Below both of these, a handful of complaints is not significant. */
const MIN_DELIVERED = 1_000
const MIN_COMPLAINTS = 10

export type ComplaintCounts = { delivered: number; complained: number }

export const exceedsComplaintLimit = ({ delivered, complained }: ComplaintCounts) =>
  complained > delivered * MAX_COMPLAINT_RATE && (delivered >= MIN_DELIVERED || complained >= MIN_COMPLAINTS)

/**
 * Returns true when this very call paused email. `count` sums deliveries and complaints from a time on: seven days ago,
 * or when email was last resumed, because complaints that were already investigated must not pause it again.
 */
export async function pauseForComplaints(
  db: Db,
  appId: AppId,
  count: (from: Date) => Promise<ComplaintCounts>,
  now: Date,
): Promise<boolean> {
  const known = await findPauseRow(db, appId)
  if (known?.pausedAt) return false
  const weekAgo = new Date(now.getTime() - WINDOW_MS)
  const from = known?.resumedAt && known.resumedAt > weekAgo ? known.resumedAt : weekAgo
  const { delivered, complained } = await count(from)
  if (!exceedsComplaintLimit({ delivered, complained })) return false
  const detail = { delivered, complained, since: from.toISOString() }
  return db.transaction(async (db) => {
    if (!(await insertPause(db, appId, { detail, countedFrom: from, now }))) return false
    await recordAudit(db, appId, SYSTEM, 'email.pause', detail, now)
    await notifyAdministrators(db, appId, 'email.paused', detail, now)
    return true
  })
}

export const isEmailPaused = async (db: Db, appId: AppId): Promise<boolean> =>
  (await findPausedSince(db, appId)) !== undefined

/** Returns when email was paused, if it is. */
export const findPausedSince = async (db: Db, appId: AppId): Promise<Date | undefined> =>
  (await findPauseRow(db, appId))?.pausedAt ?? undefined

/** Resumes held email. Resuming email that is not paused has no effect. */
export async function resumeEmail(
  { db, now }: Pick<EmailContext, 'db' | 'now'>,
  appId: AppId,
  by: RequestOrigin,
): Promise<boolean> {
  const at = now()
  return db.transaction(async (db) => {
    if (!(await clearPause(db, appId, at))) return false
    await recordAudit(db, appId, actorOf(by), 'email.resume', {}, at)
    await enqueueResume(db, appId, at)
    return true
  })
}

const recordAudit = (
  db: Db,
  appId: AppId,
  actor: ReturnType<typeof actorOf>,
  action: string,
  detail: Record<string, unknown>,
  now: Date,
) => insertAuditEntries(db, appId, [{ id: newId(), actor, action, targetType: 'app', targetId: appId, detail }], now)
