// What the page script puts into the page. Also for sites that are written in TypeScript.

interface CarillonOptions {
  appId: string
  /** Where Carillon is served; where the script came from, unless told. */
  baseUrl?: string
  /** The service worker on the site's own origin; `/carillon-worker.js` unless told. */
  workerPath?: string
  /** What a click opens when the message brings no address; the start of the site unless told. */
  url?: string
}

interface CarillonState {
  permission: NotificationPermission
  isSubscribed: boolean
  subscriptionId?: string
  onesignalId?: string
  externalId?: string
}

interface CarillonMessage {
  id: string
  title: string
  body?: string
  url?: string
  /** The button that was clicked. */
  action?: string
  data: Record<string, unknown>
}

interface CarillonApi {
  /** Call it once on every page. Nobody is asked for anything. */
  init(options: CarillonOptions): Promise<CarillonState>
  /**
   * Ask for permission, subscribe, and register the subscription. To be called when the person has clicked something:
   * browsers refuse to ask out of the blue. Throws where permission is not given.
   */
  subscribe(): Promise<CarillonState>
  /** The device gets no more messages. */
  unsubscribe(): Promise<CarillonState>
  /** From now on this device is this person's. `token` proves it to apps that ask for identity verification. */
  login(externalId: string, token?: string): Promise<CarillonState>
  /** From now on it is nobody's, and stays subscribed. */
  logout(): Promise<CarillonState>
  /** An empty value removes a tag. */
  addTags(tags: Record<string, string | number | boolean>): Promise<CarillonState>
  state(): Promise<CarillonState>
  /** `received` when a message is shown, `clicked` when it or one of its buttons is; also the click that opened the page. */
  addEventListener(type: 'received' | 'clicked', listener: (event: CustomEvent<CarillonMessage>) => void): void
  removeEventListener(type: 'received' | 'clicked', listener: (event: CustomEvent<CarillonMessage>) => void): void
}

declare var Carillon: CarillonApi
