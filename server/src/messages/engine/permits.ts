// How much is under way at once: of each provider at most so many messages, in this process. Bulk leaves a quarter for direct
// messages, so that those need not wait for a slow broadcast.

import type { Provider } from '../delivery.ts'
import { type Lane, lanes } from '../message.ts'

export type Permits = {
  /** Waits for a place, and takes up to so many. */
  take(provider: Provider, lane: Lane, wanted: number): Promise<number>
  give(provider: Provider, lane: Lane, count: number): void
  stats(): { inFlight: number; waiting: number; most: number }
}

type Waiting = { wanted: number; resolve: (taken: number) => void }
type Place = { taken: Record<Lane, number>; waiting: Record<Lane, Waiting[]> }

export function createPermits(most: number): Permits {
  const places = new Map<Provider, Place>()
  const mostOf: Record<Lane, number> = { direct: most, bulk: Math.max(1, most - Math.floor(most / 4)) }

  function placeOf(provider: Provider): Place {
    const known = places.get(provider)
    if (known) return known
    const place: Place = { taken: { direct: 0, bulk: 0 }, waiting: { direct: [], bulk: [] } }
    places.set(provider, place)
    return place
  }

  function serve({ taken, waiting }: Place) {
    for (const lane of lanes)
      for (let next = waiting[lane][0]; next; next = waiting[lane][0]) {
        const free = Math.min(most - taken.direct - taken.bulk, mostOf[lane] - taken[lane])
        if (free <= 0) break
        const count = Math.min(free, next.wanted)
        taken[lane] += count
        waiting[lane].shift()
        next.resolve(count)
      }
  }

  const sum = (of: (place: Place, lane: Lane) => number) =>
    [...places.values()].reduce((total, place) => total + of(place, 'direct') + of(place, 'bulk'), 0)

  return {
    take(provider, lane, wanted) {
      const place = placeOf(provider)
      return new Promise((resolve) => {
        place.waiting[lane].push({ wanted, resolve })
        serve(place)
      })
    },
    give(provider, lane, count) {
      const place = placeOf(provider)
      place.taken[lane] -= count
      serve(place)
    },
    stats: () => ({
      inFlight: sum(({ taken }, lane) => taken[lane]),
      waiting: sum(({ waiting }, lane) => waiting[lane].length),
      most,
    }),
  }
}
