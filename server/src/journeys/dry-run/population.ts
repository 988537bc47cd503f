// Who is walked through the journey, page by page, with what is known of them.

import { countEventsNamed, findEventsNamed, type NamedEvent } from '../../events/frequency-store.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import { listUsers, matchUsers, restrictToReachable } from '../../segments/audience.ts'
import type { Db } from '../../storage/db.ts'
import { findPresence } from '../../users/presence-store.ts'
import type { JourneyAudience } from '../journey.ts'
import { definitionOf, templateChannelOf } from '../nodes/kinds.ts'
import { matchesEvent } from '../nodes/match-event.ts'
import { DAY_MS, pastDays, type SimulationOptions } from './options.ts'
import { type SimulatedRun, type Simulation, startRun } from './simulate-users.ts'
import { createSimulatedUser, type SimulatedUser } from './simulated-user.ts'

const PAGE = 5_000

/** How many were looked at, of how many there are. */
export type SampleSize = { looked: number; total: number }

/** `walk` is given a page at a time, and has walked it to its end before the next is read. */
export function forEachPage(
  db: Db,
  order: SimulationOptions,
  trip: Simulation,
  walk: (walkers: SimulatedRun[]) => Promise<void>,
): Promise<SampleSize> {
  const { audience } = order.journey.document
  return audience.kind === 'segment'
    ? eachOfUsers(db, order, trip, walk)
    : eachOfEvents(db, order, audience, trip, walk)
}

async function eachOfUsers(
  db: Db,
  { appId, sample, startAt }: SimulationOptions,
  trip: Simulation,
  walk: (walkers: SimulatedRun[]) => Promise<void>,
): Promise<SampleSize> {
  const { audience } = trip.judge
  if (!audience) return { looked: 0, total: 0 }
  const users = await listUsers(db, audience.included, audience.excluded, { appId, now: startAt }, sample)
  for (let from = 0; from < users.size; from += PAGE) {
    const people = users.slice(from, from + PAGE).map(createSimulatedUser)
    await learn(db, appId, trip, people, startAt)
    await walk(people.map((person) => startRun(trip, person, startAt)))
  }
  return { looked: users.size, total: users.total }
}

/** Each event of the past comes again, as long after the start as it came after the beginning of that time. */
async function eachOfEvents(
  db: Db,
  { appId, sample, startAt, now, days }: SimulationOptions,
  audience: Extract<JourneyAudience, { kind: 'event_trigger' }>,
  trip: Simulation,
  walk: (walkers: SimulatedRun[]) => Promise<void>,
): Promise<SampleSize> {
  const beganMs = now.getTime() - pastDays(days) * DAY_MS
  const past = { after: new Date(beganMs), upTo: now }
  const total = await countEventsNamed(db, appId, audience.name, past)
  let beyond: NamedEvent['id'] | undefined
  let looked = 0
  while (looked < sample) {
    const size = Math.min(PAGE, sample - looked)
    const found = await findEventsNamed(db, appId, audience.name, past, beyond, size)
    looked += found.length
    beyond = found.at(-1)?.id
    const events = found.filter(({ properties }) => matchesEvent(audience, { name: audience.name, properties }))
    const people = new Map(events.map(({ userId }): [UserId, SimulatedUser] => [userId, createSimulatedUser(userId)]))
    await learn(db, appId, trip, [...people.values()], startAt)
    await walk(
      events.map(({ id, userId, at }) => {
        const enteredAt = new Date(startAt.getTime() + at.getTime() - beganMs)
        const event = { id, name: audience.name, at: enteredAt.toISOString(), properties: {} }
        return startRun(trip, people.get(userId) as SimulatedUser, enteredAt, event)
      }),
    )
    if (found.length < size) break
  }
  return { looked, total }
}

/** Only what the nodes of the journey look at. */
async function learn(
  db: Db,
  appId: AppId,
  { journey }: Simulation,
  people: readonly SimulatedUser[],
  now: Date,
): Promise<void> {
  if (people.length === 0) return
  const byId = new Map(people.map((person) => [person.userId, person]))
  if (journey.nodes.some((node) => definitionOf(node).usesPresence))
    for (const { userId, timezoneId, lastActive } of await findPresence(db, appId, [...byId.keys()]))
      Object.assign(byId.get(userId) as SimulatedUser, { zone: timezoneId, lastActive })
  const channels = [...new Set(journey.nodes.flatMap(({ kind }) => templateChannelOf(kind) ?? []))]
  if (channels.length === 0) return
  const trees = channels.map((channel) => restrictToReachable({ kind: 'all', of: [] }, channel))
  for (const { userId, matches: holds } of await matchUsers(db, trees, { appId, now }, [...byId.keys()]))
    (byId.get(userId) as SimulatedUser).channels = new Set(channels.filter((_, n) => holds[n]))
}
