// What every way of reaching people has in common. A channel is given addresses and finished content, and says of each what
// became of it. What follows from that (another try, an unsubscribed address, a row in the ledger) is for the caller.

import type { AppId } from '../lib/ids.ts'

export type ChannelOutcome =
  /** The provider took it. `id` is the provider's own, for receipts that come later. */
  | { kind: 'sent'; id?: string }
  /**
   * Refused for now, or never handed over: it may be tried again without reaching anybody twice. `all` says that the
   * provider asks for a pause for everything of this app, not for this one address; `free` that it was not even offered, so
   * that this was no attempt.
   */
  | { kind: 'retry'; reason: string; afterMs?: number; pausesProvider?: boolean; wasNotAttempted?: true }
  /** Refused for good; the address may be right all the same. */
  | { kind: 'failed'; reason: string }
  /** The address leads nowhere any more. `since`, where the provider says it: a newer registration is not meant. */
  | { kind: 'gone'; reason: string; since?: Date }
  /** The provider refuses the app's credentials or settings: no message of this channel can go out until they are mended. */
  | { kind: 'misconfigured'; reason: string }
  /** All of it was written and no whole answer came back: it may or may not arrive. */
  | { kind: 'unknown'; reason: string }

/** Whose messages they are, and whether many wait with them: what apps have in common is divided by it. */
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
