// Decides what a delivery becomes after the provider's answer.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { isStorable } from '../../lib/text.ts'
import type { RetryPolicy } from '../engine/channel.ts'
import { goneReason } from '../reasons.ts'
import type { DeliveryChange, DueDelivery } from './store.ts'

/** 20 attempts take about 12 hours. A delivery with a shorter lifetime expires before. */
const DEFAULT_RETRY_POLICY: RetryPolicy = { attempts: 20, firstMs: 10_000, longestMs: 3_600_000 }
/** Used when the provider does not say how long to pause. */
const DEFAULT_PAUSE_MS = 60_000
const MISCONFIGURED_PAUSE_MS = 10 * 60_000

/**
 * Doubles with each attempt. Half of it is random, so that deliveries that failed together are not retried together.
 */
export function backoffMs(
  attempt: number,
  random: () => number,
  { firstMs, longestMs }: RetryPolicy = DEFAULT_RETRY_POLICY,
): number {
  return Math.round(Math.min(longestMs, firstMs * 2 ** (attempt - 1)) * (0.5 + random() / 2))
}

export type PauseRequest = { reason: string; until: Date; isMisconfigured: boolean }

/** Set when the outcome concerns everything that the app sends through this provider. */
export function pauseRequestOf(outcome: ChannelOutcome, now: Date): PauseRequest | undefined {
  const after = (ms: number) => new Date(now.getTime() + ms)
  if (outcome.kind === 'misconfigured')
    return { reason: outcome.reason, until: after(MISCONFIGURED_PAUSE_MS), isMisconfigured: true }
  if (outcome.kind === 'retry' && outcome.pausesProvider)
    return { reason: outcome.reason, until: after(outcome.afterMs ?? DEFAULT_PAUSE_MS), isMisconfigured: false }
  return undefined
}

/** The provider said that it does not have the message, so nobody can have received it. */
export const isRefused = ({ kind }: ChannelOutcome) => kind !== 'sent' && kind !== 'unknown'

const MAX_REFERENCE_LENGTH = 500

/** A provider's reference can be any text. The message was sent, so one that cannot be stored is left out. */
const storableReference = (id: string | undefined) =>
  id !== undefined && id.length <= MAX_REFERENCE_LENGTH && isStorable(id) ? id : null

export type JudgeContext = {
  now: Date
  random: () => number
  atLeastOnce: boolean
  retryPolicy?: RetryPolicy | undefined
}

/** `due` is the delivery as it was before this attempt. */
export function judgeOutcome(
  due: DueDelivery,
  outcome: ChannelOutcome,
  { now, random, atLeastOnce, retryPolicy = DEFAULT_RETRY_POLICY }: JudgeContext,
): DeliveryChange {
  const { expandAt, messageId, subscriptionId, runId, platform, dueAt } = due
  const attempts = due.attempts + 1
  const end = {
    ...{ expandAt, messageId, subscriptionId, runId, platform, dueAt, attempts, fence: null, settledAt: now },
    ...{ providerRef: null, sendingDomain: null, inboxProvider: null, deliveredAt: null, bouncedAt: null },
  }
  const reason = 'reason' in outcome ? outcome.reason : null
  const retryIn = (afterMs: number, isAttempt: boolean): DeliveryChange => {
    // Not after it expires, so that it ends as expired on time.
    const dueMs = Math.min(now.getTime() + afterMs, Math.max(due.expiresAt.getTime(), now.getTime()))
    const retry = { state: 'pending' as const, reason, settledAt: null }
    return { ...end, ...retry, dueAt: new Date(dueMs), attempts: isAttempt ? attempts : due.attempts }
  }
  switch (outcome.kind) {
    case 'sent':
      return { ...end, state: 'sent', reason: null, providerRef: storableReference(outcome.id) }
    case 'gone':
      return { ...end, state: 'failed', reason: goneReason(outcome.reason) }
    case 'failed':
      return { ...end, state: 'failed', reason }
    case 'misconfigured':
      return retryIn(MISCONFIGURED_PAUSE_MS, false)
    case 'retry':
      if (outcome.pausesProvider || outcome.wasNotAttempted) return retryIn(outcome.afterMs ?? DEFAULT_PAUSE_MS, false)
      if (attempts >= retryPolicy.attempts) return { ...end, state: 'failed', reason }
      return retryIn(Math.max(outcome.afterMs ?? 0, backoffMs(attempts, random, retryPolicy)), true)
    case 'unknown':
      if (atLeastOnce && attempts < retryPolicy.attempts) return retryIn(backoffMs(attempts, random, retryPolicy), true)
      return { ...end, state: 'unknown', reason }
  }
}
