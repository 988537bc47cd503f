// Whether and how an app may send, for everybody who is about to make or to send something.

import { appNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { agedUntil, hasRoom, holdOf } from './application-limit.ts'
import { type Hold, heldByHand } from './hold.ts'
import { DEFAULT_SETTINGS, type DeliverySettings } from './settings.ts'
import { findSending, findUsage, type SendingRow } from './store.ts'

export type Sending = {
  hold: Hold | undefined
  settings: DeliverySettings
  /** After a restore: what was due before this time is given up, not sent. */
  discardBefore: Date | undefined
}

/** One statement; one more while the app is disabled, to see whether that has ended. */
export async function readSending(db: Db, appId: AppId, now: Date): Promise<Sending> {
  const row = await findRow(db, appId)
  return {
    hold: heldByHand(row) ?? (row.disabledAt ? await findDisabled(db, appId, row.disabledAt, now) : undefined),
    settings: settingsOf(row),
    discardBefore: row.discardBefore ?? undefined,
  }
}

export async function findRow(db: Db, appId: AppId): Promise<SendingRow> {
  const row = await findSending(db, appId)
  if (!row) throw appNotFound()
  return row
}

/** Undefined once the window has room again: no job has to end it. */
export async function findDisabled(db: Db, appId: AppId, since: Date, now: Date): Promise<Hold | undefined> {
  const usage = await findUsage(db, appId, agedUntil(now))
  return hasRoom(usage) ? undefined : holdOf(since, usage.roomAfter)
}

/** An app that never set any has the defaults. */
export function settingsOf(row: Pick<SendingRow, keyof DeliverySettings>): DeliverySettings {
  return {
    quietHours: row.quietHours,
    frequencyCaps: row.frequencyCaps ?? DEFAULT_SETTINGS.frequencyCaps,
    throttlePerMinute: row.throttlePerMinute,
    retentionDays: row.retentionDays,
    limitFactor: row.limitFactor ?? DEFAULT_SETTINGS.limitFactor,
  }
}
