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
  if (perMinute) return { kind: 'throttled', perMinute, after: await countPlanned(db, appId, message.id) }
  return { kind: 'at once' }
}

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
