// The words for why a delivery ended as it did, where somebody must tell them apart.

/** Nobody is there any more: known before sending, or told by the provider, whose own word follows. */
export const UNSUBSCRIBED = 'unsubscribed'
/** The subscription was there when the message was expanded, and was deleted since. */
export const DELETED = 'deleted'
const GONE = 'gone: '
export const goneReason = (word: string) => `${GONE}${word}`
export const isGone = (reason: string) => reason.startsWith(GONE)
/** So a provider of texts calls who has told it to stop. */
export const OPTED_OUT = 'opted out'

/** The person has had enough messages. */
export const CAPPED = 'frequency_cap'
