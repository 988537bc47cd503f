// How long a delivery may wait for its turn, for a provider and for the end of what holds it.

import type { MessageOptions } from './message.ts'

/** A ttl of 0 keeps providers from storing the message; that the server takes a while to come to it does not make it late. */
const MIN_LIFETIME_SECONDS = 60

export const lifetimeSecondsOf = ({ ttl }: Pick<MessageOptions, 'ttl'>): number => ttl || MIN_LIFETIME_SECONDS

/** For the provider: what was asked for, whatever the server allows itself. */
export const providerExpiryOf = (expiresAt: Date, options: Pick<MessageOptions, 'ttl'>): Date =>
  new Date(expiresAt.getTime() - (lifetimeSecondsOf(options) - options.ttl) * 1_000)
