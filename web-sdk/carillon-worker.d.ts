// What the service worker keeps, and what it gets.

/** About this browser and its person; in IndexedDB, by scope. */
interface CarillonKept {
  appId: string
  baseUrl: string
  /** The public key of the app for web push. */
  key: string
  site: { name: string; icon?: string; url: string }
  /** Properties that are given to a new user. */
  user: object
  isSubscribed?: boolean
  endpoint?: string
  subscriptionId?: string
  onesignalId?: string
  externalId?: string
  /** Proof of the external id. */
  token?: string
  /** Set before there was a user. */
  tags?: Record<string, unknown>
  /** When the last session began. */
  sessionMs?: number
  /** One that no page has seen yet. */
  click?: object
}

/** The body of a push. */
interface CarillonPayload {
  custom: {
    /** The id of the message. */
    i: string
    /** Its data. */
    a?: Record<string, unknown>
    /** What a click opens. */
    u?: string
    /** "y" asks to report that it was received. */
    rr?: string
  }
  title?: string
  alert?: string
  icon?: string
  image?: string
  badge?: string
  tag?: string
  vibrate?: string
  /** Buttons: id, text, icon, and what they open. */
  o?: { i: string; n: string; p?: string; u?: string }[]
}
