// What an answer of a provider means for the delivery.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { isStorable } from '../../lib/text.ts'
import type { Platform } from '../delivery.ts'
import { goneReason } from '../reasons.ts'
import type { DeliveryChange, DueDelivery } from './store.ts'

type RetryPolicy = { attempts: number; firstMs: number; longestMs: number }

/** 20 attempts span about 12 hours. What lives shorter than that is given up when its time is over. */
const USUAL: RetryPolicy = { attempts: 20, firstMs: 10_000, longestMs: 3_600_000 }
/** Servers of mail put off whom they do not know yet, and want it tried again in minutes: these span about three days. */
const OF_MAIL: RetryPolicy = { attempts: 30, firstMs: 5 * 60_000, longestMs: 4 * 3_600_000 }

export const retryPolicyFor = (platform: Platform): RetryPolicy => (platform === 'Email' ? OF_MAIL : USUAL)
/** For a pause that the provider gave no end, and for credentials that it refuses. */
const DEFAULT_PAUSE_MS = 60_000
const MISCONFIGURED_PAUSE_MS = 10 * 60_000

/** Doubles with each attempt. Half of it is random, so that what failed together does not come back together. */
export function backoffMs(attempt: number, random: () => number, { firstMs, longestMs }: RetryPolicy = USUAL): number {
  return Math.round(Math.min(longestMs, firstMs * 2 ** (attempt - 1)) * (0.5 + random() / 2))
}

export type PauseRequest = { reason: string; until: Date; isMisconfigured: boolean }

/** Whether this outcome holds for everything of the app that goes by this provider. */
export function pauseRequestOf(outcome: ChannelOutcome, now: Date): PauseRequest | undefined {
  const after = (ms: number) => new Date(now.getTime() + ms)
  if (outcome.kind === 'misconfigured')
    return { reason: outcome.reason, until: after(MISCONFIGURED_PAUSE_MS), isMisconfigured: true }
  if (outcome.kind === 'retry' && outcome.pausesProvider)
    return { reason: outcome.reason, until: after(outcome.afterMs ?? DEFAULT_PAUSE_MS), isMisconfigured: false }
  return undefined
}

/** True where the provider said that it does not have the message: nobody can have got it. */
export const isRefused = ({ kind }: ChannelOutcome) => kind !== 'sent' && kind !== 'unknown'

const MAX_REFERENCE_LENGTH = 500

/** A provider's own name for it can be anything. One that cannot be kept is done without: it was sent all the same. */
const refOf = (id: string | undefined) =>
  id !== undefined && id.length <= MAX_REFERENCE_LENGTH && isStorable(id) ? id : null

export type JudgeContext = { now: Date; random: () => number; atLeastOnce: boolean }

/** `due` as it was before this attempt. */
export function judgeOutcome(
  due: DueDelivery,
  outcome: ChannelOutcome,
  { now, random, atLeastOnce }: JudgeContext,
): DeliveryChange {
  const { expandAt, messageId, subscriptionId, runId, platform, dueAt } = due
  const attempts = due.attempts + 1
  const patience = retryPolicyFor(platform)
  const end = {
    ...{ expandAt, messageId, subscriptionId, runId, platform, dueAt, attempts, fence: null, settledAt: now },
    ...{ providerRef: null, sendingDomain: null, inboxProvider: null, deliveredAt: null, bouncedAt: null },
  }
  const reason = 'reason' in outcome ? outcome.reason : null
  const again = (afterMs: number, counted: boolean): DeliveryChange => {
    // Not later than it lives: what is due then is given up on time.
    const at = Math.min(now.getTime() + afterMs, Math.max(due.expiresAt.getTime(), now.getTime()))
    const more = { state: 'pending' as const, reason, settledAt: null }
    return { ...end, ...more, dueAt: new Date(at), attempts: counted ? attempts : due.attempts }
  }
  switch (outcome.kind) {
    case 'sent':
      return { ...end, state: 'sent', reason: null, providerRef: refOf(outcome.id) }
    case 'gone':
      return { ...end, state: 'failed', reason: goneReason(outcome.reason) }
    case 'failed':
      return { ...end, state: 'failed', reason }
    case 'misconfigured':
      return again(MISCONFIGURED_PAUSE_MS, false)
    case 'retry':
      if (outcome.pausesProvider || outcome.wasNotAttempted) return again(outcome.afterMs ?? DEFAULT_PAUSE_MS, false)
      if (attempts >= patience.attempts) return { ...end, state: 'failed', reason }
      return again(Math.max(outcome.afterMs ?? 0, backoffMs(attempts, random, patience)), true)
    case 'unknown':
      if (atLeastOnce && attempts < patience.attempts) return again(backoffMs(attempts, random, patience), true)
      return { ...end, state: 'unknown', reason }
  }
}
