// When each delivery of a message is due: at once, at an hour of each user's own, or one after the other.

import type { AppId } from '../../lib/ids.ts'
import { dayOf, nextTimeOfDay, timeZoneOf, UTC, wallOf } from '../../lib/time-zone.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import type { Db } from '../../storage/db.ts'
import type { WarmUp } from '../message.ts'
import { type Expansion, findZones, type Timing } from './expand-statement.ts'
import { countPlanned, type WaitingMessage } from './expand-store.ts'

export async function timingOf(
  db: Db,
  appId: AppId,
  message: WaitingMessage,
  candidates: Expansion['candidates'],
  settings: DeliverySettings,
): Promise<Timing> {
  const { options, channel } = message
  if (options.warmUp)
    return { kind: 'staged', stages: stagesOf(options.warmUp), after: await countPlanned(db, appId, message.id) }
  if (options.delayedOption === 'last-active') return { kind: 'last active' }
  if (options.delayedOption === 'timezone') return zoneTiming(message, await findZones(db, appId, candidates))
  const perMinute = channel === 'push' ? (options.throttlePerMinute ?? settings.throttlePerMinute) : undefined
  if (perMinute) return { kind: 'throttled', perMinute, after: await countBefore(db, appId, message) }
  return { kind: 'at once' }
}

/** Places are counted from the time of the message; while one is open, from the first that is free. */
const countBefore = (db: Db, appId: AppId, { id, audience }: WaitingMessage) =>
  audience.kind === 'recipients' ? 0 : countPlanned(db, appId, id)

/** From when on those are due who were added to an open message. */
export const firstDue = ({ throttledTo }: WaitingMessage, now: Date): Date =>
  throttledTo && throttledTo > now ? throttledTo : now

/** Until when places are taken, after so many more. */
export const lastTaken = (message: WaitingMessage, timing: Timing, count: number, now: Date): Date | null =>
  message.audience.kind === 'recipients' && timing.kind === 'throttled'
    ? new Date(firstDue(message, now).getTime() + (count * 60_000) / timing.perMinute)
    : null

const stagesOf = ({ stages }: WarmUp) =>
  stages.map(({ start, end, quota }) => ({ start: new Date(start), end: new Date(end), quota }))

type Found = { zone: string | null; seconds: number | null }

/** The first time, at or after that of the message, that the user's clock shows the hour; without one given, the message's own. */
function zoneTiming({ options, sendAfter }: WaitingMessage, found: readonly Found[]): Timing {
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
