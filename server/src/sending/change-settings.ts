// Changes an app's delivery settings.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries, lockApp } from '../apps/store.ts'
import { appNotFound, forbidden, invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { isTimeZone, readTimeOfDay } from '../lib/time-zone.ts'
import type { SendingContext } from './context.ts'
import { enqueueRelease, enqueueResume, QUIET_HOURS_CHANGED, THROTTLE_CHANGED } from './control.ts'
import { findSendingRow, settingsOf } from './read.ts'
import type { DeliverySettingsBody } from './schema.ts'
import {
  DAYS,
  DEFAULT_SETTINGS,
  DELIVERY_CHANNELS,
  type DeliverySettings,
  type FrequencyCap,
  type QuietHours,
  windowMsOf,
} from './settings.ts'
import { upsertSettings } from './store.ts'

const MAX_WINDOW_MS = 30 * 86_400_000

/** Fields in the request replace the stored ones, null restores the default, and the others stay. */
export function changeSettings(
  ctx: SendingContext,
  appId: AppId,
  body: DeliverySettingsBody,
  by: RequestOrigin,
): Promise<DeliverySettings> {
  const given = readSettings(body)
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    if (!(await lockApp(db, appId))) throw appNotFound()
    const before = settingsOf(await findSendingRow(db, appId))
    const after = { ...before, ...given }
    const isOtherLimit = after.limitFactor !== before.limitFactor
    if (isOtherLimit && by.caller.kind !== 'organization')
      throw forbidden('limit_factor is changed by an organization key alone')
    await upsertSettings(db, appId, after, now)
    await insertAuditEntries(
      db,
      appId,
      [
        {
          id: ctx.newId(),
          actor: actorOf(by),
          action: 'delivery_settings.update',
          targetType: 'app',
          targetId: appId,
          detail: { fields: Object.keys(body).filter((name) => Object.hasOwn(FIELDS, name)) },
        },
      ],
      now,
    )
    if (isOtherLimit) await enqueueResume(db, appId, now)
    await enqueueRelease(db, appId, changedHolds(before, after), now)
    return after
  })
}

/** Does not include frequency caps, because deliveries beyond a cap are skipped, not held. */
function changedHolds(before: DeliverySettings, after: DeliverySettings): string[] {
  const isOther = (name: 'quietHours' | 'throttlePerMinute') =>
    before[name] !== null && JSON.stringify(before[name]) !== JSON.stringify(after[name])
  return [
    ...(isOther('quietHours') ? [QUIET_HOURS_CHANGED] : []),
    ...(isOther('throttlePerMinute') ? [THROTTLE_CHANGED] : []),
  ]
}

const FIELDS = {
  quiet_hours: (given: DeliverySettingsBody['quiet_hours']) => ({ quietHours: given ? readQuietHours(given) : null }),
  frequency_caps: (given: DeliverySettingsBody['frequency_caps']) => ({ frequencyCaps: readCaps(given ?? []) }),
  throttle_per_minute: (given: number | null | undefined) => ({ throttlePerMinute: given ?? null }),
  retention_days: (given: number | null | undefined) => ({ retentionDays: given ?? null }),
  limit_factor: (given: number | null | undefined) => ({ limitFactor: given ?? DEFAULT_SETTINGS.limitFactor }),
}

/** The schema has already checked types and ranges. */
function readSettings(body: DeliverySettingsBody): Partial<DeliverySettings> {
  return {
    ...(body.quiet_hours !== undefined && FIELDS.quiet_hours(body.quiet_hours)),
    ...(body.frequency_caps !== undefined && FIELDS.frequency_caps(body.frequency_caps)),
    ...(body.throttle_per_minute !== undefined && FIELDS.throttle_per_minute(body.throttle_per_minute)),
    ...(body.retention_days !== undefined && FIELDS.retention_days(body.retention_days)),
    ...(body.limit_factor !== undefined && FIELDS.limit_factor(body.limit_factor)),
  }
}

function readQuietHours(given: NonNullable<DeliverySettingsBody['quiet_hours']>): QuietHours {
  const { start, end, days = DAYS, channels = DELIVERY_CHANNELS, fallback_time_zone: fallbackTimeZone = 'UTC' } = given
  for (const [name, time] of Object.entries({ start, end }))
    if (!/^\d\d:\d\d$/.test(time) || readTimeOfDay(time) === undefined)
      throw fieldError(`quiet_hours.${name}`, 'must be a time of day from 00:00 to 23:59, as 22:00')
  if (!isTimeZone(fallbackTimeZone))
    throw fieldError('quiet_hours.fallback_time_zone', 'must be the name of a time zone, as Europe/Berlin')
  if (start === end && DAYS.every((day) => days.includes(day)))
    throw fieldError('quiet_hours', 'must leave some time to send in')
  return { start, end, days: unique(days), channels: unique(channels), fallbackTimeZone }
}

function readCaps(given: readonly FrequencyCap[]): FrequencyCap[] {
  const channels = given.map(({ channel }) => channel)
  return given.map(({ channel, count, window, unit }, i) => {
    if (windowMsOf({ window, unit }) > MAX_WINDOW_MS)
      throw fieldError(`frequency_caps[${i}].window`, 'must be 30 days at most')
    if (channels.indexOf(channel) !== i) throw fieldError(`frequency_caps[${i}].channel`, 'must not be there twice')
    return { channel, count, window, unit }
  })
}

const unique = <Word>(words: readonly Word[]): Word[] => [...new Set(words)]
const fieldError = (field: string, demand: string) => invalid(`${field} ${demand}`, { field })
