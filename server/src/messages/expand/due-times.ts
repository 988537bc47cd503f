// Decides when the deliveries of a message are due: at once, at each recipient's own hour, or one after the other.

import type { AppId } from '../../lib/ids.ts'
import { dayOf, nextTimeOfDay, timeZoneOf, UTC, wallOf } from '../../lib/time-zone.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import type { Db } from '../../storage/db.ts'
import { intervalMs, throttlePerMinuteOf } from '../deliver/throttle.ts'
import type { WarmUp } from '../message.ts'
import type { Candidates } from './candidates.ts'
import { type DueTiming, findZones } from './insert-deliveries.ts'
import { countPlanned, type UnexpandedMessage } from './store.ts'

export async function dueTimingOf(
  db: Db,
  appId: AppId,
  message: UnexpandedMessage,
  candidates: Candidates,
  settings: DeliverySettings,
): Promise<DueTiming> {
  const { options } = message
  if (options.warmUp)
    return { kind: 'staged', stages: stagesOf(options.warmUp), after: await countPlanned(db, appId, message.id) }
  if (options.delayedOption === 'last-active') return { kind: 'last active' }
  if (options.delayedOption === 'timezone') return zoneTiming(message, await findZones(db, appId, candidates))
  const perMinute = throttlePerMinuteOf(message, settings)
  return perMinute ? { kind: 'throttled', perMinute } : { kind: 'at once' }
}

/** With a throttle, this is the first free send time. Recipients who are added to an open message get it at once. */
export function firstDue({ audience, sendAfter, throttledTo }: UnexpandedMessage, timing: DueTiming, now: Date): Date {
  if (timing.kind === 'throttled' && throttledTo && throttledTo > now) return throttledTo
  return timing.kind === 'throttled' || audience.kind === 'recipients' ? now : sendAfter
}

/** Until when send times are taken, once this many more deliveries have theirs. */
export const throttledUntil = (message: UnexpandedMessage, timing: DueTiming, count: number, now: Date): Date | null =>
  timing.kind === 'throttled'
    ? new Date(firstDue(message, timing, now).getTime() + count * intervalMs(timing.perMinute))
    : null

const stagesOf = ({ stages }: WarmUp) =>
  stages.map(({ start, end, quota }) => ({ start: new Date(start), end: new Date(end), quota }))

type RecipientZone = { zone: string | null; seconds: number | null }

/**
 * Finds the first time, at or after the message's, at which the recipient's clock shows the requested hour, or by
 * default the hour of the message's own time. Times are cut to seconds: a recipient who is late by less than a second
 * would otherwise wait for a day.
 */
function zoneTiming(
  { options, sendAfter: exactSendAfter }: UnexpandedMessage,
  zones: readonly RecipientZone[],
): DueTiming {
  const sendAfter = new Date(Math.floor(exactSendAfter.getTime() / 1_000) * 1_000)
  const wall = wallOf(UTC, sendAfter)
  const time = options.timeOfDay === undefined ? wall - dayOf(wall) : options.timeOfDay * 1_000
  const dueIn = (zone: typeof UTC) => nextTimeOfDay(zone, time, sendAfter)
  return {
    kind: 'zones',
    fallback: dueIn(UTC),
    byZone: zones.flatMap(({ zone }) => (zone === null ? [] : [{ zone, dueAt: dueIn(timeZoneOf(zone)) }])),
    byOffset: zones.flatMap(({ seconds }) =>
      seconds === null ? [] : [{ seconds, dueAt: dueIn({ name: 'offset', offsetMs: () => seconds * 1_000 }) }],
    ),
  }
}
