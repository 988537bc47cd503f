// How much time of the rendering processes each app has used recently. Use is forgotten gradually, so that an app with slow templates
// comes behind the others for as long as it uses much, and for some seconds after.

import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'

/** After this time half of what was used is forgotten. */
const HALF_LIFE_MS = 10_000
/** An app that has used more than this of late may not use the reserved process. */
export const MAX_RESERVED_USAGE_MS = 1_000
/** Less than this counts as nothing; the account is removed when there are many. */
const NEGLIGIBLE_MS = 1
const MAX_ACCOUNTS = 1_000

export type AppUsage = {
  usedMs(appId: AppId): number
  charge(appId: AppId, ms: number): void
}

export function createAppUsage({ leaseMs }: Pick<Clock, 'leaseMs'>): AppUsage {
  const accounts = new Map<AppId, { usedMs: number; atMs: number }>()

  function usedMs(appId: AppId): number {
    const account = accounts.get(appId)
    if (!account) return 0
    const elapsedMs = Math.max(0, leaseMs() - account.atMs)
    return account.usedMs * 2 ** (-elapsedMs / HALF_LIFE_MS)
  }

  return {
    usedMs,
    charge(appId, ms) {
      accounts.set(appId, { usedMs: usedMs(appId) + Math.max(0, ms), atMs: leaseMs() })
      if (accounts.size > MAX_ACCOUNTS)
        for (const id of accounts.keys()) if (usedMs(id) < NEGLIGIBLE_MS) accounts.delete(id)
    },
  }
}
