// Limits how many messages this process has in flight. Every app has its own share with every provider, so an app whose
// messages hang fills only its own share. Resources that apps really share, such as the connections to the server's
// relay, are divided where they are used (channels/email/smtp/fair-shares.ts). Within a share, bulk leaves a quarter
// for direct messages.
//
// The shares of all apps together are bounded too. Each app takes at most a quarter of what is left, so that the next
// one gets something even while dozens of others hang.

import type { AppId } from '../../lib/ids.ts'
import type { Provider } from '../delivery.ts'
import { type JobLane, lanes } from '../message.ts'

export type Slots = {
  /** Waits for a free slot, then takes at most `wanted` slots. Returns how many it took. */
  acquire(from: SlotOwner, wanted: number): Promise<number>
  release(from: SlotOwner, count: number): void
  stats(): { inFlight: number; waiting: number; most: number }
}

export type SlotOwner = { appId: AppId; provider: Provider; lane: JobLane }

type SlotRequest = { wanted: number; resolve: (taken: number) => void }
/** The slots of one app with one provider. */
type AppShare = { taken: Record<JobLane, number>; waiting: Record<JobLane, SlotRequest[]> }
/** The shares of all apps with one provider. */
type ProviderShares = { byApp: Map<AppId, AppShare>; taken: number }

/** All apps together have this many times the slots of one app. */
const ALL_APPS_FACTOR = 5

/** `most`: how many slots one app has with one provider. */
export function createSlots(most: number): Slots {
  const byProvider = new Map<Provider, ProviderShares>()

  function sharesOf(provider: Provider): ProviderShares {
    const shares = byProvider.get(provider) ?? { byApp: new Map(), taken: 0 }
    byProvider.set(provider, shares)
    return shares
  }

  function shareOf({ byApp }: ProviderShares, appId: AppId): AppShare {
    const share = byApp.get(appId) ?? newShare()
    byApp.set(appId, share)
    return share
  }

  /** How many slots this app may have, given how many the others have taken. */
  function mostNow({ taken: all }: ProviderShares, { taken }: AppShare): number {
    const left = ALL_APPS_FACTOR * most - all + taken.direct + taken.bulk
    return Math.min(most, left, Math.max(1, Math.floor(left / 4)))
  }

  function serve(shares: ProviderShares, share: AppShare) {
    const { taken, waiting } = share
    for (const lane of lanes)
      for (let next = waiting[lane][0]; next; next = waiting[lane][0]) {
        const all = mostNow(shares, share)
        const free = Math.min(all - taken.direct - taken.bulk, mostOf(lane, all) - taken[lane])
        if (free <= 0) break
        const granted = Math.min(free, next.wanted)
        taken[lane] += granted
        shares.taken += granted
        waiting[lane].shift()
        next.resolve(granted)
      }
  }

  const sum = (of: (share: AppShare, lane: JobLane) => number) =>
    [...byProvider.values()]
      .flatMap(({ byApp }) => [...byApp.values()])
      .reduce((total, share) => total + of(share, 'direct') + of(share, 'bulk'), 0)

  return {
    acquire({ appId, provider, lane }, wanted) {
      const shares = sharesOf(provider)
      const share = shareOf(shares, appId)
      return new Promise((resolve) => {
        share.waiting[lane].push({ wanted, resolve })
        serve(shares, share)
      })
    },
    release({ appId, provider, lane }, given) {
      const shares = sharesOf(provider)
      const share = shareOf(shares, appId)
      share.taken[lane] -= given
      shares.taken -= given
      // Every app may be entitled to more now. The app that released its slots is served last.
      shares.byApp.delete(appId)
      if (!isIdle(share)) shares.byApp.set(appId, share)
      for (const each of shares.byApp.values()) serve(shares, each)
    },
    stats: () => ({
      inFlight: sum(({ taken }, lane) => taken[lane]),
      waiting: sum(({ waiting }, lane) => waiting[lane].length),
      most,
    }),
  }
}

const newShare = (): AppShare => ({ taken: { direct: 0, bulk: 0 }, waiting: { direct: [], bulk: [] } })

const mostOf = (lane: JobLane, all: number) => (lane === 'direct' ? all : Math.max(1, all - Math.floor(all / 4)))

const isIdle = ({ taken, waiting }: AppShare) => lanes.every((lane) => taken[lane] + waiting[lane].length === 0)
