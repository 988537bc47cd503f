// The contract of all channels. A channel takes addresses with finished content and reports the outcome of each. What follows from
// an outcome (a retry, an unsubscribed address, a row in the ledger) is up to the caller.

import type { AppId } from '../lib/ids.ts'

export type ChannelOutcome =
  /** The provider accepted it. `id` is the provider's own, for later receipts. */
  | { kind: 'sent'; id?: string }
  /**
   * Refused for now, or never handed over: a retry cannot reach anybody twice. `pausesProvider` means that the provider asks for
   * a pause for the whole app, not for this address alone; `wasNotAttempted` that the provider was never asked, so that this does
   * not count as an attempt.
   */
  | { kind: 'retry'; reason: string; afterMs?: number; pausesProvider?: boolean; wasNotAttempted?: true }
  /** Refused permanently, though the address may be valid. */
  | { kind: 'failed'; reason: string }
  /** The address no longer exists. Where the provider gives `since`, a registration newer than that is not affected. */
  | { kind: 'gone'; reason: string; since?: Date }
  /** The provider refuses the app's credentials or settings: no message of this channel can be sent until they are fixed. */
  | { kind: 'misconfigured'; reason: string }
  /** The request was written without a complete answer: the message may or may not have arrived. */
  | { kind: 'unknown'; reason: string }

/** Whose messages they are, and in which lane. Resources that apps share are divided by it. */
export type TrafficSource = { appId: AppId; lane: 'direct' | 'bulk' }

export type Channel<Item> = {
  /** One outcome for each item, in their order. Never rejects. Reasons are short words of ours, without secrets or addresses. */
  send(items: readonly Item[]): Promise<ChannelOutcome[]>
  /** Waits for what is under way, and lets the connections go. */
  close(): Promise<void>
}

/** Where a provider is reached; tests and staging lead it elsewhere. */
export type ProviderRoute = {
  /** Certificates to believe beside the usual ones, in PEM. */
  ca?: string | undefined
  /**
   * Connections for this origin go to this host and port instead; name and certificate stay those of the origin. `https://*`
   * is for every other origin of that scheme.
   */
  connect?: Readonly<Record<string, { host: string; port: number }>> | undefined
}
