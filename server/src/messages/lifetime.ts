// How long a delivery may wait: for its shard, for a provider, and for the end of a hold.

import type { MessageOptions } from './message.ts'

/** A `ttl` of 0 tells providers not to store the message. It must not expire while it waits in the server. */
const MIN_LIFETIME_SECONDS = 60

export const lifetimeSecondsOf = ({ ttl }: Pick<MessageOptions, 'ttl'>): number => ttl || MIN_LIFETIME_SECONDS

/** The expiry for the provider: the requested `ttl`, without what the server adds for itself. */
export const providerExpiryOf = (expiresAt: Date, options: Pick<MessageOptions, 'ttl'>): Date =>
  new Date(expiresAt.getTime() - (lifetimeSecondsOf(options) - options.ttl) * 1_000)
