// Interprets Google's answers.

import type { ChannelOutcome } from '../../channel.ts'
import { interpretMissingReply, type ProviderReply, retryAfterMs } from '../http/exchange.ts'

type FcmErrorDetails = { code: string | undefined; isOurPayload: boolean }

const CODES = [
  'UNREGISTERED',
  'INVALID_ARGUMENT',
  'SENDER_ID_MISMATCH',
  'QUOTA_EXCEEDED',
  'UNAVAILABLE',
  'INTERNAL',
  'THIRD_PARTY_AUTH_ERROR',
]
/** Google's recommended pause when an answer names no time. */
const QUOTA_PAUSE_MS = 60_000
const BACKOFF_MS = 10_000

export function interpretFcmResponse(reply: ProviderReply, now: Date): ChannelOutcome {
  if (reply.kind !== 'answer') return interpretMissingReply(reply)
  const { status } = reply
  if (status === 200) return { kind: 'sent', ...readId(reply.body) }
  const { code, isOurPayload } = readDetails(reply.body)
  const reason = code ?? `status ${status}`
  const afterMs = retryAfterMs(reply, now)
  switch (code) {
    case 'UNREGISTERED':
    // The token belongs to another project.
    case 'SENDER_ID_MISMATCH':
      return { kind: 'gone', reason }
    case 'INVALID_ARGUMENT':
      // Either the token is invalid or a field of the message is. In the latter case, Google names the field.
      return isOurPayload ? { kind: 'failed', reason } : { kind: 'gone', reason }
    case 'THIRD_PARTY_AUTH_ERROR':
      return { kind: 'misconfigured', reason }
  }
  if (code === 'QUOTA_EXCEEDED' || status === 429)
    return { kind: 'retry', reason, afterMs: afterMs ?? QUOTA_PAUSE_MS, pausesProvider: true }
  if (status === 408 || status >= 500) return { kind: 'retry', reason, afterMs: afterMs ?? BACKOFF_MS }
  // The account may not send for this project, or there is no such project.
  if (status === 401 || status === 403 || status === 404) return { kind: 'misconfigured', reason }
  return { kind: 'failed', reason }
}

/** The access token was refused. If there is an error code, the answer is about something else. */
export const isFcmTokenRefused = (reply: ProviderReply) =>
  reply.kind === 'answer' && reply.status === 401 && readDetails(reply.body).code === undefined

function readDetails(body: string): FcmErrorDetails {
  const details: unknown[] = []
  try {
    const given = JSON.parse(body)?.error?.details
    if (Array.isArray(given)) details.push(...given)
  } catch {
    // Not JSON, so only the status is available.
  }
  const typed = details.filter((it): it is Record<string, unknown> => it !== null && typeof it === 'object')
  const named = (name: string) => typed.find((it) => String(it['@type']).endsWith(name))
  const code = named('google.firebase.fcm.v1.FcmError')?.errorCode
  return {
    code: typeof code === 'string' && CODES.includes(code) ? code : undefined,
    isOurPayload: named('google.rpc.BadRequest') !== undefined,
  }
}

function readId(body: string): { id?: string } {
  try {
    const { name } = JSON.parse(body) as { name?: unknown }
    return typeof name === 'string' ? { id: name } : {}
  } catch {
    return {}
  }
}
