// Interprets Huawei's answers. Its own code says more than the status, which is 200 for some refusals.

import { ownProperty } from '../../../lib/own-property.ts'
import type { ChannelOutcome } from '../../channel.ts'
import { interpretMissingReply, type ProviderReply, retryAfterMs } from '../http/exchange.ts'

type HuaweiVerdict = 'sent' | 'gone' | 'failed' | 'misconfigured' | 'retry'

const SUCCESS = '80000000'
/** All or some of a request's tokens are invalid. Our requests have one token each. */
const INVALID_TOKENS = '80300007'
const SOME_TOKENS_INVALID = '80100000'
/** The access token was refused or has expired. */
const UNAUTHENTICATED = ['80200001', '80200003']

const CODES: Readonly<Record<string, HuaweiVerdict>> = {
  [SUCCESS]: 'sent',
  [SOME_TOKENS_INVALID]: 'gone',
  [INVALID_TOKENS]: 'gone',
  // Parameters, structure, expiry, collapse key, sensitive words, template; body or number of tokens too large.
  80100001: 'failed',
  80100003: 'failed',
  80100004: 'failed',
  80100013: 'failed',
  80100016: 'failed',
  80100018: 'failed',
  80300008: 'failed',
  80300010: 'failed',
  // The app has no permission for high-priority messages.
  80300011: 'failed',
  80200001: 'misconfigured',
  80200003: 'misconfigured',
  // The app may not send: the service is disabled for it.
  80300002: 'misconfigured',
  // Huawei's token service or another of its services is down.
  80600003: 'retry',
  81000001: 'retry',
}

const byStatus = (status: number): HuaweiVerdict => {
  if (status === 401 || status === 403 || status === 404) return 'misconfigured'
  return status === 408 || status === 429 || status >= 500 ? 'retry' : 'failed'
}

/** Used when an answer names no time. */
const BACKOFF_MS = 10_000
const FLOW_PAUSE_MS = 30_000

export function interpretHuaweiResponse(reply: ProviderReply, now: Date): ChannelOutcome {
  if (reply.kind !== 'answer') return interpretMissingReply(reply)
  const { status } = reply
  const { code, requestId } = readAnswer(reply.body)
  // A refusal can have the same status, so the status alone proves nothing.
  if (status === 200 && code === '') return { kind: 'unknown', reason: 'answer not understood' }
  const verdict = ownProperty(CODES, code) ?? byStatus(status)
  const reason = Object.hasOwn(CODES, code) ? `code ${code}` : `status ${status}`
  switch (verdict) {
    case 'sent':
      return { kind: 'sent', ...(requestId !== undefined && { id: requestId }) }
    case 'retry': {
      const afterMs = retryAfterMs(reply, now)
      // Huawei's way of saying that an app sends too fast.
      if (status === 429 || status === 503)
        return { kind: 'retry', reason, afterMs: afterMs ?? FLOW_PAUSE_MS, pausesProvider: true }
      return { kind: 'retry', reason, afterMs: afterMs ?? BACKOFF_MS }
    }
    default:
      return { kind: verdict, reason }
  }
}

export const isHuaweiTokenRefused = (reply: ProviderReply) =>
  reply.kind === 'answer' && (reply.status === 401 || UNAUTHENTICATED.includes(readAnswer(reply.body).code))

function readAnswer(body: string): { code: string; requestId: string | undefined } {
  try {
    const { code, requestId } = JSON.parse(body) as { code?: unknown; requestId?: unknown }
    return {
      code: typeof code === 'string' ? code : '',
      requestId: typeof requestId === 'string' ? requestId : undefined,
    }
  } catch {
    return { code: '', requestId: undefined }
  }
}
