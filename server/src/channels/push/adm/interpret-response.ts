// Interprets Amazon's answers.

import { ownProperty } from '../../../lib/own-property.ts'
import type { ChannelOutcome } from '../../channel.ts'
import { interpretMissingReply, type ProviderReply, retryAfterMs } from '../http/exchange.ts'

type AdmVerdict = 'gone' | 'failed' | 'misconfigured' | 'retry' | 'retry all'

/** By Amazon's reason. Unknown reasons are not repeated in ours. */
const REASONS: Readonly<Record<string, AdmVerdict>> = {
  // Amazon does not know the registration, or it belongs to another app.
  InvalidRegistrationId: 'gone',
  Unregistered: 'gone',
  InvalidData: 'failed',
  InvalidConsolidationKey: 'failed',
  InvalidExpiration: 'failed',
  InvalidChecksum: 'failed',
  InvalidType: 'failed',
  MessageTooLarge: 'failed',
  AccessTokenExpired: 'misconfigured',
  MaxRateExceeded: 'retry all',
}

const byStatus = (status: number): AdmVerdict => {
  if (status === 401 || status === 403) return 'misconfigured'
  if (status === 429) return 'retry all'
  return status === 408 || status >= 500 ? 'retry' : 'failed'
}

/** Used when an answer names no time. */
const RATE_PAUSE_MS = 60_000
const BACKOFF_MS = 10_000

export function interpretAdmResponse(reply: ProviderReply, now: Date): ChannelOutcome {
  if (reply.kind !== 'answer') return interpretMissingReply(reply)
  const { status, headers } = reply
  if (status === 200) {
    const id = headers['x-amzn-requestid']
    return { kind: 'sent', ...(typeof id === 'string' && { id }) }
  }
  const word = readReason(reply.body)
  const verdict = ownProperty(REASONS, word) ?? byStatus(status)
  const reason = Object.hasOwn(REASONS, word) ? word : `status ${status}`
  const afterMs = retryAfterMs(reply, now)
  if (verdict === 'retry all') return { kind: 'retry', reason, afterMs: afterMs ?? RATE_PAUSE_MS, pausesProvider: true }
  if (verdict === 'retry') return { kind: 'retry', reason, afterMs: afterMs ?? BACKOFF_MS }
  return { kind: verdict, reason }
}

export const isAdmTokenRefused = (reply: ProviderReply) => reply.kind === 'answer' && reply.status === 401

function readReason(body: string): string {
  try {
    return String((JSON.parse(body) as { reason?: unknown }).reason)
  } catch {
    return ''
  }
}
