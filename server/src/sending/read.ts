// Whether and how an app may send, for every operation that is about to create or send something.

import { appNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { disabledHold, expiredUntil, hasRoom } from './application-limit.ts'
import { findManualHold, type SendingHold } from './hold.ts'
import { DEFAULT_SETTINGS, type DeliverySettings } from './settings.ts'
import { findSending, findUsage, type SendingRow } from './store.ts'

export type Sending = {
  hold: SendingHold | undefined
  settings: DeliverySettings
  /** After a restore: what was due before this time is discarded, not sent. */
  discardBefore: Date | undefined
}

/** One statement; one more while the app is disabled, to see whether that has ended. */
export async function readSending(db: Db, appId: AppId, now: Date): Promise<Sending> {
  const row = await findSendingRow(db, appId)
  return {
    hold: findManualHold(row) ?? (row.disabledAt ? await findDisabledHold(db, appId, row.disabledAt, now) : undefined),
    settings: settingsOf(row),
    discardBefore: row.discardBefore ?? undefined,
  }
}

export async function findSendingRow(db: Db, appId: AppId): Promise<SendingRow> {
  const row = await findSending(db, appId)
  if (!row) throw appNotFound()
  return row
}

/** Undefined once the window has room again, so that no job has to end the hold. */
export async function findDisabledHold(db: Db, appId: AppId, since: Date, now: Date): Promise<SendingHold | undefined> {
  const usage = await findUsage(db, appId, expiredUntil(now))
  return hasRoom(usage) ? undefined : disabledHold(since, usage.roomAfter)
}

/** An app without settings has the defaults. */
export function settingsOf(row: Pick<SendingRow, keyof DeliverySettings>): DeliverySettings {
  return {
    quietHours: row.quietHours,
    frequencyCaps: row.frequencyCaps ?? DEFAULT_SETTINGS.frequencyCaps,
    throttlePerMinute: row.throttlePerMinute,
    retentionDays: row.retentionDays,
    limitFactor: row.limitFactor ?? DEFAULT_SETTINGS.limitFactor,
  }
}
