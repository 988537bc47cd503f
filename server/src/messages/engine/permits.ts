// How much is under way at once, in this process. A place belongs to who is behind it: one that all apps share, or an app's own,
// such as its account for texts or its relay. So who is slow holds up those who wait for the same, and nobody else. A place takes at
// most so many messages. Bulk leaves a quarter for direct messages, so that those need not wait for a slow broadcast. Where several
// apps wait for one place, one that has half of it lets the others go first.
//
// The own places of all apps together are bounded too. Each takes at most a quarter of what is left, so that the next app finds
// something even where dozens of others do not move.

import type { AppId } from '../../lib/ids.ts'
import type { Provider } from '../delivery.ts'
import { type Lane, lanes } from '../message.ts'

export type Permits = {
  /** Waits for a place, and takes up to so many. */
  take(from: From, wanted: number): Promise<number>
  give(from: From, count: number): void
  stats(): { inFlight: number; waiting: number; most: number }
}

/** Which place it is, and whose message. */
export type From = { appId: AppId; provider: Provider; lane: Lane; isOwn: boolean }

type Waiting = { appId: AppId; wanted: number; resolve: (taken: number) => void }
type Place = {
  isOwn: boolean
  taken: Record<Lane, number>
  takenBy: Map<AppId, number>
  waiting: Record<Lane, Waiting[]>
}
/** Of one provider. */
type Places = { shared: Place; own: Map<AppId, Place>; takenOfOwn: number }

/** As many times of what one place takes are under way in the own places of a provider, all apps together. */
const OWN_TIMES = 5

export function createPermits(most: number): Permits {
  const known = new Map<Provider, Places>()

  function placesOf(provider: Provider): Places {
    const places = known.get(provider) ?? { shared: newPlace(false), own: new Map(), takenOfOwn: 0 }
    known.set(provider, places)
    return places
  }

  function placeOf({ shared, own }: Places, { appId, isOwn }: From): Place {
    if (!isOwn) return shared
    const place = own.get(appId) ?? newPlace(true)
    own.set(appId, place)
    return place
  }

  function count(places: Places, place: Place, { lane, appId }: Pick<From, 'lane' | 'appId'>, by: number) {
    place.taken[lane] += by
    if (place.isOwn) places.takenOfOwn += by
    const left = (place.takenBy.get(appId) ?? 0) + by
    if (left > 0) place.takenBy.set(appId, left)
    else place.takenBy.delete(appId)
  }

  /** Of this place, as things are. */
  function mostNow({ takenOfOwn }: Places, { isOwn }: Place): number {
    if (!isOwn) return most
    const left = OWN_TIMES * most - takenOfOwn
    return Math.min(most, left, Math.max(1, Math.floor(left / 4)))
  }

  function serve(places: Places, place: Place) {
    const { taken, waiting } = place
    for (const lane of lanes)
      for (let next = nextOf(place, lane, most); next; next = nextOf(place, lane, most)) {
        const all = mostNow(places, place)
        const free = Math.min(all - taken.direct - taken.bulk, mostOf(lane, all) - taken[lane])
        if (free <= 0) break
        const granted = Math.min(free, next.wanted)
        count(places, place, { lane, appId: next.appId }, granted)
        waiting[lane].splice(waiting[lane].indexOf(next), 1)
        next.resolve(granted)
      }
  }

  const everywhere = () => [...known.values()].flatMap(({ shared, own }) => [shared, ...own.values()])
  const sum = (of: (place: Place, lane: Lane) => number) =>
    everywhere().reduce((total, place) => total + of(place, 'direct') + of(place, 'bulk'), 0)

  return {
    take(from, wanted) {
      const places = placesOf(from.provider)
      const place = placeOf(places, from)
      return new Promise((resolve) => {
        place.waiting[from.lane].push({ appId: from.appId, wanted, resolve })
        serve(places, place)
      })
    },
    give(from, given) {
      const places = placesOf(from.provider)
      const place = placeOf(places, from)
      count(places, place, from, -given)
      if (!from.isOwn) return serve(places, place)
      // There is more left for everybody. Who had some comes last.
      places.own.delete(from.appId)
      if (!isIdle(place)) places.own.set(from.appId, place)
      for (const each of places.own.values()) serve(places, each)
    },
    stats: () => ({
      inFlight: sum(({ taken }, lane) => taken[lane]),
      waiting: sum(({ waiting }, lane) => waiting[lane].length),
      most,
    }),
  }
}

const newPlace = (isOwn: boolean): Place => ({
  isOwn,
  taken: { direct: 0, bulk: 0 },
  takenBy: new Map(),
  waiting: { direct: [], bulk: [] },
})

const mostOf = (lane: Lane, all: number) => (lane === 'direct' ? all : Math.max(1, all - Math.floor(all / 4)))

const nextOf = ({ takenBy, waiting }: Place, lane: Lane, most: number) =>
  waiting[lane].find(({ appId }) => (takenBy.get(appId) ?? 0) < mostOf(lane, most) / 2) ?? waiting[lane][0]

const isIdle = ({ taken, waiting }: Place) => lanes.every((lane) => taken[lane] + waiting[lane].length === 0)
