// How much is under way at once: of each provider at most so many messages, in this process. Bulk leaves a quarter for direct
// messages, so that those need not wait for a slow broadcast. Where several apps wait, one that has half of it lets the others
// go first: its own relay may be slow.

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
export type From = { appId: AppId; provider: Provider; lane: Lane }

type Waiting = { appId: AppId; wanted: number; resolve: (taken: number) => void }
type Place = { taken: Record<Lane, number>; takenBy: Map<AppId, number>; waiting: Record<Lane, Waiting[]> }

export function createPermits(most: number): Permits {
  const places = new Map<Provider, Place>()
  const mostOf: Record<Lane, number> = { direct: most, bulk: Math.max(1, most - Math.floor(most / 4)) }

  function placeOf(provider: Provider): Place {
    const known = places.get(provider)
    if (known) return known
    const place: Place = { taken: { direct: 0, bulk: 0 }, takenBy: new Map(), waiting: { direct: [], bulk: [] } }
    places.set(provider, place)
    return place
  }

  const count = (place: Place, lane: Lane, appId: AppId, by: number) => {
    place.taken[lane] += by
    const left = (place.takenBy.get(appId) ?? 0) + by
    if (left > 0) place.takenBy.set(appId, left)
    else place.takenBy.delete(appId)
  }

  const nextOf = ({ takenBy, waiting }: Place, lane: Lane) =>
    waiting[lane].find(({ appId }) => (takenBy.get(appId) ?? 0) < mostOf[lane] / 2) ?? waiting[lane][0]

  function serve(place: Place) {
    const { taken, waiting } = place
    for (const lane of lanes)
      for (let next = nextOf(place, lane); next; next = nextOf(place, lane)) {
        const free = Math.min(most - taken.direct - taken.bulk, mostOf[lane] - taken[lane])
        if (free <= 0) break
        const granted = Math.min(free, next.wanted)
        count(place, lane, next.appId, granted)
        waiting[lane].splice(waiting[lane].indexOf(next), 1)
        next.resolve(granted)
      }
  }

  const sum = (of: (place: Place, lane: Lane) => number) =>
    [...places.values()].reduce((total, place) => total + of(place, 'direct') + of(place, 'bulk'), 0)

  return {
    take({ appId, provider, lane }, wanted) {
      const place = placeOf(provider)
      return new Promise((resolve) => {
        place.waiting[lane].push({ appId, wanted, resolve })
        serve(place)
      })
    },
    give({ appId, provider, lane }, given) {
      const place = placeOf(provider)
      count(place, lane, appId, -given)
      serve(place)
    },
    stats: () => ({
      inFlight: sum(({ taken }, lane) => taken[lane]),
      waiting: sum(({ waiting }, lane) => waiting[lane].length),
      most,
    }),
  }
}
