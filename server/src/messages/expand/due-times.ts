// When each delivery of a message is due: at once, at an hour of each user's own, or one after the other.

import type { AppId } from '../../lib/ids.ts'
import { dayOf, nextTimeOfDay, timeZoneOf, UTC, wallOf } from '../../lib/time-zone.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import type { Db } from '../../storage/db.ts'
import { intervalMs, throttlePerMinuteOf } from '../deliver/throttle.ts'
import type { WarmUp } from '../message.ts'
import { type DueTiming, type Expansion, findZones } from './insert-deliveries.ts'
import { countPlanned, type UnexpandedMessage } from './store.ts'

export async function timingOf(
  db: Db,
  appId: AppId,
  message: UnexpandedMessage,
  candidates: Expansion['candidates'],
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

/** From when on they are due: with a throttle from the first place that is free. Who was added to an open message is to get it now. */
export function firstDue({ audience, sendAfter, throttledTo }: UnexpandedMessage, timing: DueTiming, now: Date): Date {
  if (timing.kind === 'throttled' && throttledTo && throttledTo > now) return throttledTo
  return timing.kind === 'throttled' || audience.kind === 'recipients' ? now : sendAfter
}

/** Until when places are taken, after so many more. */
export const throttledUntil = (message: UnexpandedMessage, timing: DueTiming, count: number, now: Date): Date | null =>
  timing.kind === 'throttled'
    ? new Date(firstDue(message, timing, now).getTime() + count * intervalMs(timing.perMinute))
    : null

const stagesOf = ({ stages }: WarmUp) =>
  stages.map(({ start, end, quota }) => ({ start: new Date(start), end: new Date(end), quota }))

type RecipientZone = { zone: string | null; seconds: number | null }

/**
 * The first time, at or after that of the message, that the user's clock shows the hour; without one given, the message's own. Clocks
 * show seconds: by less than one nobody is late, who would otherwise wait for a day.
 */
function zoneTiming({ options, sendAfter: given }: UnexpandedMessage, found: readonly RecipientZone[]): DueTiming {
  const sendAfter = new Date(Math.floor(given.getTime() / 1_000) * 1_000)
  const wall = wallOf(UTC, sendAfter)
  const time = options.timeOfDay === undefined ? wall - dayOf(wall) : options.timeOfDay * 1_000
  const dueIn = (zone: typeof UTC) => nextTimeOfDay(zone, time, sendAfter)
  return {
    kind: 'zones',
    fallback: dueIn(UTC),
    byZone: found.flatMap(({ zone }) => (zone === null ? [] : [{ zone, dueAt: dueIn(timeZoneOf(zone)) }])),
    byOffset: found.flatMap(({ seconds }) =>
      seconds === null ? [] : [{ seconds, dueAt: dueIn({ name: 'offset', offsetMs: () => seconds * 1_000 }) }],
    ),
  }
}
