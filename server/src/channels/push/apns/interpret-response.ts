// Interprets Apple's answers.

import { ownProperty } from '../../../lib/own-property.ts'
import type { ChannelOutcome } from '../../channel.ts'
import { interpretMissingReply, type ProviderReply, retryAfterMs } from '../http/exchange.ts'

type ApnsVerdict = 'gone' | 'failed' | 'misconfigured' | 'retry' | 'retry all'

/** By Apple's reason. Unknown reasons are not repeated in ours. */
const REASONS: Readonly<Record<string, ApnsVerdict>> = {
  // Also the answer for a token of the other environment: if an app's first messages all fail with this, check its
  // environment.
  BadDeviceToken: 'gone',
  DeviceTokenNotForTopic: 'gone',
  Unregistered: 'gone',
  ExpiredToken: 'gone',
  MissingDeviceToken: 'gone',
  BadTopic: 'misconfigured',
  MissingTopic: 'misconfigured',
  TopicDisallowed: 'misconfigured',
  BadCertificate: 'misconfigured',
  BadCertificateEnvironment: 'misconfigured',
  ExpiredProviderToken: 'misconfigured',
  Forbidden: 'misconfigured',
  InvalidProviderToken: 'misconfigured',
  MissingProviderToken: 'misconfigured',
  UnrelatedKeyIdInToken: 'misconfigured',
  BadEnvironmentKeyInToken: 'misconfigured',
  BadCollapseId: 'failed',
  BadExpirationDate: 'failed',
  BadMessageId: 'failed',
  BadPriority: 'failed',
  DuplicateHeaders: 'failed',
  InvalidPushType: 'failed',
  PayloadEmpty: 'failed',
  PayloadTooLarge: 'failed',
  BadPath: 'failed',
  MethodNotAllowed: 'failed',
  IdleTimeout: 'retry',
  TooManyRequests: 'retry',
  TooManyProviderTokenUpdates: 'retry all',
  InternalServerError: 'retry',
  ServiceUnavailable: 'retry',
  Shutdown: 'retry',
}

const byStatus = (status: number): ApnsVerdict => {
  if (status === 410) return 'gone'
  if (status === 403) return 'misconfigured'
  return status === 429 || status >= 500 ? 'retry' : 'failed'
}

/** The shortest interval at which Apple permits a token to be renewed. */
const TOKEN_PAUSE_MS = 20 * 60_000

export function interpretApnsResponse(reply: ProviderReply, now: Date): ChannelOutcome {
  if (reply.kind !== 'answer') return interpretMissingReply(reply)
  const { status, headers } = reply
  if (status === 200) {
    const id = headers['apns-id']
    return { kind: 'sent', ...(typeof id === 'string' && { id }) }
  }
  const { word, since } = readAnswer(reply.body)
  const verdict = ownProperty(REASONS, word) ?? byStatus(status)
  const reason = Object.hasOwn(REASONS, word) ? word : `status ${status}`
  const afterMs = retryAfterMs(reply, now)
  if (verdict === 'gone') return { kind: 'gone', reason, ...(since && { since }) }
  if (verdict === 'retry') return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
  if (verdict === 'retry all')
    return { kind: 'retry', reason, afterMs: afterMs ?? TOKEN_PAUSE_MS, pausesProvider: true }
  return { kind: verdict, reason }
}

export const isApnsTokenExpired = (reply: ProviderReply) =>
  reply.kind === 'answer' && reply.status === 403 && readAnswer(reply.body).word === 'ExpiredProviderToken'

/**
 * Reads `{"reason": …, "timestamp": …}`. The timestamp, in milliseconds, says since when the token is known to be
 * unused.
 */
function readAnswer(body: string): { word: string; since: Date | undefined } {
  try {
    const { reason, timestamp } = JSON.parse(body) as { reason?: unknown; timestamp?: unknown }
    const since = typeof timestamp === 'number' ? new Date(timestamp) : undefined
    return { word: String(reason), since: since && !Number.isNaN(since.getTime()) ? since : undefined }
  } catch {
    return { word: '', since: undefined }
  }
}
