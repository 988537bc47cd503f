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

/** The app has no account with the service. */
export const NOT_CONFIGURED = 'not_configured'
/** The server does not speak to the service. */
export const NOT_SUPPORTED = 'not_supported'
/** The app has nobody whom its mail could come from. */
export const NO_FROM_ADDRESS = 'no_from_address'
export const DOMAIN_INACTIVE = 'domain_inactive'

/** Reasons for which a delivery could not go, whatever rules say: somebody has to set up something. */
const CANNOT_GO: readonly string[] = [NOT_CONFIGURED, NOT_SUPPORTED, NO_FROM_ADDRESS, DOMAIN_INACTIVE]
export const cannotGo = (reason: string) => CANNOT_GO.includes(reason)
