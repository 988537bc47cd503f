// The reasons of deliveries that the code distinguishes.

/** The recipient is gone. This was known before sending, or the provider reported it, and its own wording follows. */
export const UNSUBSCRIBED = 'unsubscribed'
/** The subscription was deleted after the message was expanded. */
export const DELETED = 'deleted'
const GONE = 'gone: '
export const goneReason = (word: string) => `${GONE}${word}`
export const isGone = (reason: string) => reason.startsWith(GONE)
/** The SMS provider reports that the recipient replied STOP. */
export const OPTED_OUT = 'opted out'

/** The device never sent a token for the live activity, or has withdrawn it. */
export const NO_ACTIVITY_TOKEN = 'no_activity_token'

/** The user's frequency cap is reached. */
export const CAPPED = 'frequency_cap'

/** The app has no credentials for the provider. */
export const NOT_CONFIGURED = 'not_configured'
/** The server does not support the provider. */
export const NOT_SUPPORTED = 'not_supported'
/** The app has no address to send email from. */
export const NO_FROM_ADDRESS = 'no_from_address'
export const DOMAIN_INACTIVE = 'domain_inactive'

/** Reasons that somebody has to fix in the app's settings. */
const CANNOT_GO: readonly string[] = [NOT_CONFIGURED, NOT_SUPPORTED, NO_FROM_ADDRESS, DOMAIN_INACTIVE]
export const cannotGo = (reason: string) => CANNOT_GO.includes(reason)
