// Distinguishes people from machines that open or click before, or instead of, a person. Opens and clicks by machines
// are counted too, and marked as such.

import type { Clock } from '../../lib/clock.ts'

/**
 * A bare `Mozilla/5.0` is Apple's privacy proxy, which fetches everything at delivery. Gmail and Yahoo fetch images
 * through proxies of their own; the rest scan for malware or create previews.
 */
const MACHINES =
  /^$|^mozilla\/5\.0$|googleimageproxy|ggpht\.com|yahoomailproxy|yahoo! slurp|barracuda|proofpoint|mimecast|symantec|messagelabs|trendmicro|trend micro|sophos|fireeye|forcepoint|ironport|cisco|fortinet|bitdefender|kaspersky|avast|zscaler|safelinks|microsoft office|ms-office|skypeuripreview|bot\b|crawler|spider|scanner|preview|headlesschrome|phantomjs|python-requests|python-urllib|aiohttp|go-http-client|java\/|okhttp|libwww|curl\/|wget\//i

export const isMachineAgent = (agent: string | undefined): boolean => MACHINES.test((agent ?? '').trim())

/** No person reads a mail and chooses a link in it this soon after its delivery. */
const SOONEST_CLICK_MS = 2_000
const SAME_MOMENT_MS = 1_000
/** Per email: more than any reader causes, and few enough that a flood costs little. */
const MOST_PER_SECOND = 100

export type TrackingGuard = {
  /**
   * Whether this open or click is within the limit. The limit is per email and not per address, because most opens come
   * from the few proxy addresses of large providers: a limit per address would lose them, whereas an attacker holds
   * only a few references.
   */
  mayCount(reference: string): boolean
  /** Whether the click came too soon after the delivery, or after another click in the same mail, for a person. */
  isTooFast(reference: string, url: string, deliveredAt: Date | null): boolean
}

/** Only the last seconds are remembered, so that memory stays bounded. */
export function createTrackingGuard(clock: Clock): TrackingGuard {
  let second = 0
  const counts = new Map<string, number>()
  let clicks = new Map<string, { url: string; atMs: number }>()
  let older = clicks
  let generationMs = 0

  return {
    mayCount(reference) {
      const current = Math.floor(clock.leaseMs() / 1_000)
      if (current !== second) {
        counts.clear()
        second = current
      }
      const count = (counts.get(reference) ?? 0) + 1
      counts.set(reference, count)
      return count <= MOST_PER_SECOND
    },
    isTooFast(reference, url, deliveredAt) {
      const nowMs = clock.now().getTime()
      if (Math.abs(nowMs - generationMs) >= SAME_MOMENT_MS) {
        older = clicks
        clicks = new Map()
        generationMs = nowMs
      }
      const last = clicks.get(reference) ?? older.get(reference)
      clicks.set(reference, { url, atMs: nowMs })
      if (last && last.url !== url && nowMs - last.atMs < SAME_MOMENT_MS) return true
      return deliveredAt !== null && nowMs - deliveredAt.getTime() < SOONEST_CLICK_MS
    },
  }
}
