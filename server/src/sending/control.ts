// Holds and resumes the sending of an app, and enables an app that was disabled by its application limit.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries } from '../apps/store.ts'
import { type AppId, newId, SYSTEM_APP_ID } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import { nextBucket } from './application-limit.ts'
import { findDisabledHold } from './read.ts'
import { lockSendingRow } from './reserve.ts'
import { clearUsage, setPaused } from './store.ts'

export type ControlContext = { db: Db; now: () => Date }

/** The sender runs this job to look again at what is due for the app. */
export const RESUME_DELIVERIES = 'messages.wake'
/** The same for every app; a job of the system's app. */
export const RESUME_ALL_DELIVERIES = 'messages.wake-all'

/** The same after a change of the settings that hold deliveries; the job keys say which. */
export const RELEASE_HELD = 'messages.release'
export const QUIET_HOURS_CHANGED = 'quiet_hours'
export const THROTTLE_CHANGED = 'throttle_per_minute'

export const enqueueRelease = (db: Db, appId: AppId, changed: readonly string[], now: Date) =>
  createQueue({ clock: { now: () => now }, newId }).enqueue(
    db,
    changed.map((key) => ({ appId, name: RELEASE_HELD, key })),
  )

export const enqueueResume = (db: Db, appId: AppId, now: Date) =>
  createQueue({ clock: { now: () => now }, newId }).enqueue(db, [{ appId, name: RESUME_DELIVERIES, key: 'wake' }])

export const enqueueResumeAll = (db: Db, now: Date) =>
  createQueue({ clock: { now: () => now }, newId }).enqueue(db, [
    { appId: SYSTEM_APP_ID, name: RESUME_ALL_DELIVERIES, key: 'wake' },
  ])

/** Once this has returned, no more messages are reserved for the app. Pausing again has no effect. */
export function pauseSending({ db, now }: ControlContext, appId: AppId, by: RequestOrigin): Promise<void> {
  const at = now()
  return db.transaction(async (db) => {
    const { pausedAt } = await lockSendingRow(db, appId)
    if (pausedAt) return
    await setPaused(db, appId, at)
    await recordAudit(db, appId, by, 'sending.pause', {}, at)
  })
}

export function resumeSending({ db, now }: ControlContext, appId: AppId, by: RequestOrigin): Promise<void> {
  const at = now()
  return db.transaction(async (db) => {
    const { pausedAt } = await lockSendingRow(db, appId)
    if (!pausedAt) return
    await setPaused(db, appId, null)
    await recordAudit(db, appId, by, 'sending.resume', { paused_since: pausedAt }, at)
    await enqueueResume(db, appId, at)
  })
}

/**
 * Starts a new window in which earlier messages do not count; otherwise the next message would disable the app again.
 * An app that is not disabled is left unchanged, so that nobody can keep its window empty.
 */
export function enableSending({ db, now }: ControlContext, appId: AppId, by: RequestOrigin): Promise<void> {
  const at = now()
  return db.transaction(async (db) => {
    const { disabledAt, used } = await lockSendingRow(db, appId)
    if (!disabledAt || !(await findDisabledHold(db, appId, disabledAt, at))) return
    // From the next second on, so that messages released from the earlier window do not reduce this one.
    await clearUsage(db, appId, { enabledAt: at, countedAt: nextBucket(at) })
    await recordAudit(db, appId, by, 'sending.enable', { disabled_since: disabledAt, used }, at)
    await enqueueResume(db, appId, at)
  })
}

const recordAudit = (
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  detail: Record<string, unknown>,
  at: Date,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'app', targetId: appId, detail }],
    at,
  )
