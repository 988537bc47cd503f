// The result of one request to a provider, by what matters for a retry.

import type { AppId } from '../../../lib/ids.ts'
import type { ChannelOutcome } from '../../channel.ts'

/** `appId`: the app that the request is for. */
export type ProviderRequest = {
  appId: AppId
  origin: string
  path: string
  headers: Record<string, string>
  body: Buffer | string
}

/** `address`: we do not connect to this address. `identity`: the peer did not accept our certificate. */
export type UnsentCause = 'address' | 'identity' | 'connection' | 'stream' | 'time' | 'closing'

export type ProviderReply =
  | { kind: 'answer'; status: number; headers: Readonly<Record<string, string | string[] | undefined>>; body: string }
  /** The peer never received the request, or says that it has not processed it. */
  | { kind: 'unsent'; cause: UnsentCause; reason: string }
  /** The request was sent, but no whole answer came back. */
  | { kind: 'lost'; reason: string }

export const unsent = (cause: UnsentCause, reason: string): ProviderReply => ({ kind: 'unsent', cause, reason })
export const lost = (reason: string): ProviderReply => ({ kind: 'lost', reason })

/** The outcome when there is no answer. */
export function interpretMissingReply(reply: Exclude<ProviderReply, { kind: 'answer' }>): ChannelOutcome {
  if (reply.kind === 'lost') return { kind: 'unknown', reason: reply.reason }
  if (reply.cause === 'address') return { kind: 'failed', reason: reply.reason }
  if (reply.cause === 'identity') return { kind: 'misconfigured', reason: reply.reason }
  return { kind: 'retry', reason: reply.reason }
}

/** A provider that asks for a longer pause than this is nevertheless asked again after it. */
const LONGEST_PAUSE_MS = 24 * 3_600_000

/** Parses the Retry-After of an answer: seconds, or a date. */
export function retryAfterMs({ headers }: ProviderReply & { kind: 'answer' }, now: Date): number | undefined {
  const text = String(headers['retry-after'] ?? '').trim()
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now.getTime()
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_PAUSE_MS)
}
