// The contract of all channels. A channel takes addresses with finished content and reports the outcome of each. What
// follows from an outcome (a retry, an unsubscribed address, a row in the ledger) is up to the caller.

import type { AppId } from '../lib/ids.ts'

export type ChannelOutcome =
  /** The provider accepted the message. `id` is the provider's own, and later receipts refer to it. */
  | { kind: 'sent'; id?: string }
  /**
   * Refused for now, or never handed over: a retry cannot reach anybody twice. `pausesProvider` means that the provider
   * asks for a pause for the whole app, not for this address alone. `wasNotAttempted` means that the provider was never
   * asked, so this does not count as an attempt.
   */
  | { kind: 'retry'; reason: string; afterMs?: number; pausesProvider?: boolean; wasNotAttempted?: true }
  /** Refused permanently, though the address may be valid. */
  | { kind: 'failed'; reason: string }
  /** The address no longer exists. If the provider gives `since`, registrations newer than that are not affected. */
  | { kind: 'gone'; reason: string; since?: Date }
  /**
   * The provider refuses the app's credentials or settings: no message of this channel can be sent until they are
   * fixed.
   */
  | { kind: 'misconfigured'; reason: string }
  /** The request was written, but no complete answer arrived: the message may or may not have been delivered. */
  | { kind: 'unknown'; reason: string }

/** The app whose messages these are, and their lane. Resources that apps share are divided by it. */
export type TrafficSource = { appId: AppId; lane: 'direct' | 'bulk' }

export type Channel<Item> = {
  /**
   * Returns one outcome for each item, in their order. Never rejects. Reasons are short texts of our own, without
   * secrets or addresses.
   */
  send(items: readonly Item[]): Promise<ChannelOutcome[]>
  /** Waits for what is in flight, then closes the connections. */
  close(): Promise<void>
}

/** How a provider is reached. Tests and staging redirect it. */
export type ProviderRoute = {
  /** Certificate authorities to trust besides the usual ones, in PEM. */
  ca?: string | undefined
  /**
   * Connections for this origin go to this host and port instead; name and certificate stay those of the origin.
   * `https://*` stands for all other origins of that scheme.
   */
  connect?: Readonly<Record<string, { host: string; port: number }>> | undefined
}
