// Amazon's answers, and what follows from each.

import { own } from '../../../lib/own.ts'
import type { Outcome } from '../../channel.ts'
import { outcomeWithoutAnswer, type Reply, retryAfterMs } from '../http/exchange.ts'

type Verdict = 'gone' | 'failed' | 'misconfigured' | 'retry' | 'retry all'

/** By Amazon's word for it. A word that is not here is not repeated. */
const REASONS: Readonly<Record<string, Verdict>> = {
  // A registration that Amazon does not know, or not for this app.
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

const byStatus = (status: number): Verdict => {
  if (status === 401 || status === 403) return 'misconfigured'
  if (status === 429) return 'retry all'
  return status === 408 || status >= 500 ? 'retry' : 'failed'
}

/** Where an answer names no time. */
const RATE_PAUSE_MS = 60_000
const BACKOFF_MS = 10_000

export function judge(reply: Reply, now: Date): Outcome {
  if (reply.kind !== 'answer') return outcomeWithoutAnswer(reply)
  const { status, headers } = reply
  if (status === 200) {
    const id = headers['x-amzn-requestid']
    return { kind: 'sent', ...(typeof id === 'string' && { id }) }
  }
  const word = readReason(reply.body)
  const verdict = own(REASONS, word) ?? byStatus(status)
  const reason = Object.hasOwn(REASONS, word) ? word : `status ${status}`
  const afterMs = retryAfterMs(reply, now)
  if (verdict === 'retry all') return { kind: 'retry', reason, afterMs: afterMs ?? RATE_PAUSE_MS, all: true }
  if (verdict === 'retry') return { kind: 'retry', reason, afterMs: afterMs ?? BACKOFF_MS }
  return { kind: verdict, reason }
}

export const isUnauthenticated = (reply: Reply) => reply.kind === 'answer' && reply.status === 401

function readReason(body: string): string {
  try {
    return String((JSON.parse(body) as { reason?: unknown }).reason)
  } catch {
    return ''
  }
}
