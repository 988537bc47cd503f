// What became of one request to a provider, told apart by what matters for another try.

import type { AppId } from '../../../lib/ids.ts'
import type { ChannelOutcome } from '../../channel.ts'

/** `appId`: whose request it is. */
export type ProviderRequest = {
  appId: AppId
  origin: string
  path: string
  headers: Record<string, string>
  body: Buffer | string
}

/** `address`: we do not go there. `identity`: the other side did not take our certificate. */
export type UnsentCause = 'address' | 'identity' | 'connection' | 'stream' | 'time' | 'closing'

export type ProviderReply =
  | { kind: 'answer'; status: number; headers: Readonly<Record<string, string | string[] | undefined>>; body: string }
  /** The other side did not take it up, and says so or never got it. */
  | { kind: 'unsent'; cause: UnsentCause; reason: string }
  /** It was on the wire, and no whole answer came back. */
  | { kind: 'lost'; reason: string }

export const unsent = (cause: UnsentCause, reason: string): ProviderReply => ({ kind: 'unsent', cause, reason })
export const lost = (reason: string): ProviderReply => ({ kind: 'lost', reason })

/** What follows where there is no answer to judge. */
export function interpretMissingReply(reply: Exclude<ProviderReply, { kind: 'answer' }>): ChannelOutcome {
  if (reply.kind === 'lost') return { kind: 'unknown', reason: reply.reason }
  if (reply.cause === 'address') return { kind: 'failed', reason: reply.reason }
  if (reply.cause === 'identity') return { kind: 'misconfigured', reason: reply.reason }
  return { kind: 'retry', reason: reply.reason }
}

/** A provider that asks for a longer pause than this is asked again all the same. */
const LONGEST_PAUSE_MS = 24 * 3_600_000

/** The Retry-After of an answer: seconds, or a date. */
export function retryAfterMs({ headers }: ProviderReply & { kind: 'answer' }, now: Date): number | undefined {
  const text = String(headers['retry-after'] ?? '').trim()
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now.getTime()
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_PAUSE_MS)
}
