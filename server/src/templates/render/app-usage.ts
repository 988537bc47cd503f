// Tracks how much time of the rendering processes each app used recently. Usage decays gradually, so an app with slow
// templates is served after the others while it uses much, and for some seconds afterwards.

import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'

/** The time after which half of the usage has decayed. */
const HALF_LIFE_MS = 10_000
/** An app whose recent usage exceeds this may not use the reserved process. */
export const MAX_RESERVED_USAGE_MS = 1_000
/** Usage below this counts as none. Such entries are removed when there are many. */
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
