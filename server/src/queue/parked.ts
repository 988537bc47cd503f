// What operators can do with parked jobs.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { JobId } from './job.ts'
import * as store from './store.ts'

export const countParked = store.countParkedAcrossApps

export const listParked = (db: Db, appId: AppId, limit = 100) => store.findParked(db, appId, limit)

/** Released jobs start afresh: their attempts and crashes are reset. Returns how many were released. */
export const releaseParked = (db: Db, appId: AppId, ids: readonly JobId[], now: Date) =>
  db.transaction(async (db) => {
    const released = await store.releaseParked(db, appId, ids, now)
    if (released.length > 0) await store.notifyApps(db, [{ appId }])
    return released.length
  })

export const deleteParked = async (db: Db, appId: AppId, ids: readonly JobId[]) =>
  (await store.deleteParked(db, appId, ids)).length
