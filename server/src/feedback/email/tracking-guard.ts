// Who opens and clicks: a person, or a machine that looks at mail before or instead of a person. Machines are counted all the
// same, and said to be machines.

import type { Clock } from '../../lib/clock.ts'

/**
 * `Mozilla/5.0` and nothing more is Apple's privacy proxy, which fetches everything at delivery. Gmail and Yahoo fetch pictures
 * through their own; the rest look for malware, or for a preview.
 */
const MACHINES =
  /^$|^mozilla\/5\.0$|googleimageproxy|ggpht\.com|yahoomailproxy|yahoo! slurp|barracuda|proofpoint|mimecast|symantec|messagelabs|trendmicro|trend micro|sophos|fireeye|forcepoint|ironport|cisco|fortinet|bitdefender|kaspersky|avast|zscaler|safelinks|microsoft office|ms-office|skypeuripreview|bot\b|crawler|spider|scanner|preview|headlesschrome|phantomjs|python-requests|python-urllib|aiohttp|go-http-client|java\/|okhttp|libwww|curl\/|wget\//i

export const isMachineAgent = (agent: string | undefined): boolean => MACHINES.test((agent ?? '').trim())

/** Nobody has read a mail and chosen a link in it so soon after it was delivered. */
const SOONEST_CLICK_MS = 2_000
const SAME_MOMENT_MS = 1_000
/** Of one email in a second: more than anybody opens, less than would be felt. */
const MOST_PER_SECOND = 100

export type TrackingGuard = {
  /**
   * Whether this is still to be counted. Limits are per email and not per address, because the mass of opens comes from the few
   * addresses of large providers' proxies: a limit per address would lose them, while who floods us has but few references.
   */
  mayCount(reference: string): boolean
  /** Whether a person can have clicked this, by its time and by what else was clicked in the same mail. */
  isTooFast(reference: string, url: string, deliveredAt: Date | null): boolean
}

/** What is remembered is of the last seconds, so that nothing grows. */
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
