// Hold the sending of an app, let it go on, and enable an app that has sent too much.

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

/** Whoever sends does this job: look again at what is due for the app. */
export const RESUME_DELIVERIES = 'messages.wake'
/** The same for every app; the system's. */
export const RESUME_ALL_DELIVERIES = 'messages.wake-all'

/** The same after a change of settings that hold deliveries back; its keys say which. */
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

/** Nothing is reserved for this app once this has returned. Pausing twice is pausing once. */
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
 * Begins a new window: what the app has sent so far counts no more, or the next message would disable it again. An app that
 * is not disabled is left alone, so that nobody can keep its window empty.
 */
export function enableSending({ db, now }: ControlContext, appId: AppId, by: RequestOrigin): Promise<void> {
  const at = now()
  return db.transaction(async (db) => {
    const { disabledAt, used } = await lockSendingRow(db, appId)
    if (!disabledAt || !(await findDisabledHold(db, appId, disabledAt, at))) return
    // From the next second on: what is given back of the window before must not be taken from this one.
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
