// The service worker of the web SDK: shows what is pushed, tells the server what became of it, and registers this browser.
// A site has it on its own origin by one line: importScripts('https://carillon.example/sdk/carillon-worker.js')

{
  const worker = /** @type {ServiceWorkerGlobalScope & typeof globalThis} */ (/** @type {unknown} */ (self))
  const SDK_VERSION = '0.1.0'
  const SESSION_MS = 30 * 60_000
  const ATTEMPTS = 3

  // --- What is kept

  const database = () =>
    done(Object.assign(indexedDB.open('carillon', 1), { onupgradeneeded: makeStore })).then(({ result }) => result)

  /** @this {IDBOpenDBRequest} */
  function makeStore() {
    this.result.createObjectStore('state')
  }

  /** @template {IDBRequest} Request @param {Request} request @returns {Promise<Request>} */
  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request)
      request.onerror = () => reject(request.error)
    })

  /** @param {'readonly' | 'readwrite'} mode @param {(store: IDBObjectStore) => IDBRequest} ask */
  async function inStore(mode, ask) {
    const db = await database()
    try {
      return (await done(ask(db.transaction('state', mode).objectStore('state')))).result
    } finally {
      db.close()
    }
  }

  const { scope } = worker.registration
  /** @returns {Promise<CarillonKept>} */
  const readState = async () => (await inStore('readonly', (store) => store.get(scope))) ?? {}
  /** @param {CarillonKept} state */
  const writeState = (state) => inStore('readwrite', (store) => store.put(state, scope))

  /** @param {CarillonKept} state @param {string[]} names */
  function forget(state, ...names) {
    for (const name of names) Reflect.deleteProperty(state, name)
  }

  let last = Promise.resolve()
  /**
   * One change after the other, whichever page it comes from; what was reached is kept, even if the rest fails.
   * @template Result @param {(state: CarillonKept) => Promise<Result>} make @returns {Promise<Result>}
   */
  function change(make) {
    const result = last.then(async () => {
      const state = await readState()
      try {
        return await make(state)
      } finally {
        await writeState(state)
      }
    })
    last = result.then(
      () => {},
      () => {},
    )
    return result
  }

  // --- The server

  class Refused extends Error {
    /** @param {number} status @param {string} words */
    constructor(status, words) {
      super(words)
      this.status = status
    }
  }

  /** @param {unknown} error */
  const isMissing = (error) => error instanceof Refused && error.status === 404

  /**
   * @param {CarillonKept} state @param {string} method @param {string} path @param {object} [body] @param {boolean} [isSession]
   */
  async function call(state, method, path, body, isSession = false) {
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt === ATTEMPTS
      const response = await fetch(state.baseUrl + path, {
        method,
        headers: {
          accept: 'application/vnd.onesignal.v1+json',
          'sdk-version': `onesignal/web/carillon-${SDK_VERSION}`,
          ...(body && { 'content-type': 'application/json' }),
          ...(state.token && { authorization: `Bearer ${state.token}` }),
          ...(isSession && state.subscriptionId && { 'onesignal-subscription-id': state.subscriptionId }),
        },
        ...(body && { body: JSON.stringify(body) }),
      }).catch((error) => {
        if (isLast) throw error
      })
      if (response) {
        const answer = await response.json().catch(() => ({}))
        if (response.ok) return answer
        const mayPass = response.status === 429 || response.status >= 500
        if (isLast || !mayPass) {
          const [error] = answer.errors ?? []
          throw new Refused(response.status, error?.title ?? error ?? `the server answered ${response.status}`)
        }
      }
      const seconds = Number(response?.headers.get('retry-after')) || attempt
      await new Promise((resolve) => setTimeout(resolve, Math.min(seconds, 30) * 1000))
    }
  }

  /** @param {CarillonKept} state @param {string} path */
  const inApp = ({ appId }, path) => `/apps/${appId}${path}`
  /** @param {CarillonKept} state */
  const userPath = (state) => inApp(state, `/users/by/onesignal_id/${state.onesignalId}`)
  /** @param {CarillonKept} state */
  const subscriptionPath = (state) => inApp(state, `/subscriptions/${state.subscriptionId}`)

  // --- This browser

  const { userAgent } = worker.navigator
  const [type, deviceType] = userAgent.includes('Firefox/')
    ? ['FirefoxPush', 8]
    : userAgent.includes('Safari/') && !/Chrom(e|ium)\//.test(userAgent)
      ? ['SafariPush', 17]
      : ['ChromePush', 5]

  /** Lost subscriptions are made anew: the person has never taken the permission back. @param {CarillonKept} state */
  async function browserSubscription({ key }) {
    const { pushManager } = worker.registration
    const known = await pushManager.getSubscription()
    if (known || Notification.permission !== 'granted') return known
    return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  }

  /** The subscription of this browser, on the server as it is here. @param {CarillonKept} state */
  async function register(state) {
    const found = await browserSubscription(state)
    if (!found) return leave(state, Notification.permission === 'denied' ? -21 : -22)
    const { endpoint, keys = {} } = found.toJSON()
    const subscription = {
      token: endpoint,
      web_auth: keys.auth,
      web_p256: keys.p256dh,
      enabled: true,
      notification_types: 1,
      sdk: SDK_VERSION,
      device_model: worker.navigator.platform,
      device_os: /(?:Firefox|Version|Chrome)\/([\d.]+)/.exec(userAgent)?.[1],
    }
    const isKnown = state.isSubscribed && state.endpoint === endpoint
    if (!(await isUpdated(state, subscription, isKnown))) await makeSubscription(state, { type, ...subscription })
    state.endpoint = endpoint
    state.isSubscribed = true
  }

  /** @param {CarillonKept} state @param {object} subscription @param {boolean | undefined} isKnown */
  async function isUpdated(state, subscription, isKnown) {
    if (!state.subscriptionId) return false
    if (isKnown) return true
    try {
      await call(state, 'PATCH', subscriptionPath(state), { subscription })
      return true
    } catch (error) {
      if (!isMissing(error)) throw error
      forget(state, 'subscriptionId')
      return false
    }
  }

  /** For the user that this browser has already, if the server still knows them. @param {CarillonKept} state @param {object} subscription */
  async function makeSubscription(state, subscription) {
    try {
      if (!state.onesignalId) return await makeUser(state, [subscription])
      const made = await call(state, 'POST', `${userPath(state)}/subscriptions`, { subscription })
      state.subscriptionId = made.subscription?.id
    } catch (error) {
      if (!isMissing(error) || !state.onesignalId) throw error
      await makeUser(state, [subscription])
    }
  }

  /** A new user, or the one who has this external id. @param {CarillonKept} state @param {object[]} subscriptions */
  async function makeUser(state, subscriptions) {
    const { identity, subscriptions: made = [] } = await call(state, 'POST', inApp(state, '/users'), {
      ...(state.externalId && { identity: { external_id: state.externalId } }),
      properties: { ...state.user, ...(state.tags && { tags: state.tags }) },
      ...(subscriptions.length > 0 && { subscriptions }),
    })
    state.onesignalId = identity.onesignal_id
    if (subscriptions.length > 0) state.subscriptionId = made[0].id
    forget(state, 'tags')
  }

  /** @param {CarillonKept} state @param {number} reason in the numbers of notification_types */
  async function leave(state, reason) {
    state.isSubscribed = false
    if (!state.subscriptionId) return
    await call(state, 'PATCH', subscriptionPath(state), {
      subscription: { enabled: false, notification_types: reason },
    }).catch((error) => {
      if (!isMissing(error)) throw error
    })
  }

  // --- What pages ask for

  /** @type {Record<string, (state: CarillonKept, given: any) => Promise<unknown>>} */
  const commands = {
    async start(state, { carillon: _, ...given }) {
      // Another app knows nothing of what this one gave.
      if (state.appId !== given.appId) forget(state, ...Object.keys(state))
      Object.assign(state, given)
      if (state.isSubscribed) await register(state).then(() => countSession(state))
      const { click } = state
      forget(state, 'click')
      return { click }
    },

    subscribe: register,

    async unsubscribe(state) {
      await leave(state, -2)
      await (await worker.registration.pushManager.getSubscription())?.unsubscribe()
    },

    async login(state, { externalId, token }) {
      const before = { externalId: state.externalId, token: state.token }
      Object.assign(state, { externalId, token })
      try {
        await becomePerson(state, before.externalId)
      } catch (error) {
        Object.assign(state, before)
        throw error
      }
    },

    async logout(state) {
      const { subscriptionId, externalId, isSubscribed } = state
      if (!externalId) return
      if (subscriptionId)
        await call(state, 'DELETE', subscriptionPath(state)).catch((error) => {
          if (!isMissing(error)) throw error
        })
      forget(state, 'externalId', 'token', 'onesignalId', 'subscriptionId')
      if (!isSubscribed) return
      await register(state).catch((error) => {
        // An app that asks for proof has no subscriptions of nobody; the next login makes one.
        if (!(error instanceof Refused && error.status === 401)) throw error
        state.isSubscribed = false
      })
    },

    async tag(state, { tags }) {
      if (state.onesignalId) await call(state, 'PATCH', userPath(state), { properties: { tags } })
      else state.tags = { ...state.tags, ...tags }
    },

    async state() {},
  }

  /** @param {CarillonKept} state @param {string | undefined} before who it was */
  async function becomePerson(state, before) {
    if (state.onesignalId && before === state.externalId) return
    // Who was nobody becomes this person, with all that is known of them; unless the person is there already.
    if (state.onesignalId && !before && (await isNamed(state))) return
    await makeUser(state, state.subscriptionId ? [{ id: state.subscriptionId }] : [])
    // An app that asks for proof has not taken the subscription before.
    if (!state.subscriptionId && (await worker.registration.pushManager.getSubscription())) await register(state)
  }

  /** @param {CarillonKept} state */
  async function isNamed(state) {
    try {
      await call(state, 'PATCH', `${userPath(state)}/identity`, { identity: { external_id: state.externalId } })
      return true
    } catch (error) {
      if (error instanceof Refused && (error.status === 409 || error.status === 404)) return false
      throw error
    }
  }

  /** @param {CarillonKept} state */
  async function countSession(state) {
    const now = Date.now()
    if (!state.isSubscribed || now - (state.sessionMs ?? 0) < SESSION_MS) return
    state.sessionMs = now
    await call(state, 'PATCH', userPath(state), { deltas: { session_count: 1 } }, true).catch((error) => {
      if (!isMissing(error)) throw error
      // Deleted on the server. The browser is still subscribed, as somebody new.
      forget(state, 'onesignalId', 'subscriptionId')
      return register(state)
    })
  }

  /** @param {CarillonKept} state */
  const shown = ({ isSubscribed = false, subscriptionId, onesignalId, externalId }) => ({
    permission: Notification.permission,
    isSubscribed,
    subscriptionId,
    onesignalId,
    externalId,
  })

  worker.addEventListener('message', (event) => {
    const command = commands[event.data?.carillon]
    const [port] = event.ports
    if (!command || !port) return
    event.waitUntil(
      change(async (state) => (await command(state, event.data)) ?? shown(state)).then(
        (result) => port.postMessage({ result }),
        (error) => port.postMessage({ error: error.message }),
      ),
    )
  })

  worker.addEventListener('pushsubscriptionchange', (event) => {
    const extendable = /** @type {ExtendableEvent} */ (event)
    extendable.waitUntil(change(async (state) => (state.isSubscribed ? register(state) : undefined)))
  })

  // --- Messages

  /** @param {PushMessageData | null} data @returns {CarillonPayload | undefined} */
  function readPayload(data) {
    try {
      const payload = data?.json()
      return typeof payload?.custom?.i === 'string' ? payload : undefined
    } catch {
      return undefined
    }
  }

  worker.addEventListener('push', (event) => {
    const payload = readPayload(event.data)
    // Not from us: another script of this worker may know what to do with it.
    if (payload) event.waitUntil(show(payload))
  })

  /** @param {CarillonPayload} payload */
  async function show({ custom, title, alert, icon, image, badge, tag, vibrate, o: buttons = [] }) {
    // A message is shown even where nothing is kept any more.
    const state = await readState().catch(() => /** @type {CarillonKept} */ ({}))
    const message = {
      id: custom.i,
      title: title ?? state.site?.name ?? worker.location.hostname,
      body: alert,
      url: custom.u,
      data: custom.a ?? {},
    }
    const urls = Object.fromEntries(buttons.map(({ i, u }) => [i, u]))
    /** @type {NotificationOptions & Record<string, unknown>} */
    const options = {
      body: alert ?? '',
      icon: icon ?? state.site?.icon ?? undefined,
      image,
      badge,
      // The same message twice is still one.
      tag: tag || custom.i,
      renotify: Boolean(tag),
      actions: buttons.map(({ i, n, p }) => ({ action: i, title: n, ...(p && { icon: p }) })),
      data: { carillon: message, urls, home: state.site?.url },
    }
    if (vibrate !== undefined) options.vibrate = (vibrate.match(/\d+/g) ?? []).map(Number)
    await worker.registration.showNotification(message.title, options)
    await tellPages('received', message)
    if (custom.rr === 'y') await report(state, message.id, '/report_received', {})
  }

  worker.addEventListener('notificationclick', (event) => {
    const { carillon: message, urls, home } = event.notification.data ?? {}
    if (!message) return
    event.notification.close()
    event.waitUntil(clicked({ ...message, action: event.action || undefined }, urls[event.action] ?? message.url, home))
  })

  /** @param {{ id: string }} message @param {string | undefined} url @param {string | undefined} home */
  async function clicked(message, url, home) {
    const pages = await openPages()
    // At once: browsers let a click open something for a short while only. Where they do not, the rest goes on.
    if (!url?.includes('_osp=do_not_open')) await open(pages, url, home).catch(() => {})
    const told = { ...message, url }
    if (pages.length > 0) await tellPages('clicked', told)
    else
      await change(async (state) => {
        state.click = told
      })
    await report(await readState(), message.id, '', { opened: true })
  }

  /** @param {readonly WindowClient[]} pages @param {string | undefined} url @param {string | undefined} home */
  async function open(pages, url, home) {
    const target = new URL(url ?? home ?? '/', scope).href
    const page = pages.find((it) => it.url === target) ?? (url === undefined ? pages[0] : undefined)
    return page ? page.focus() : worker.clients.openWindow(target)
  }

  const openPages = () => worker.clients.matchAll({ type: 'window', includeUncontrolled: true })

  /** @param {string} type @param {object} message */
  async function tellPages(type, message) {
    for (const page of await openPages()) page.postMessage({ carillon: type, message })
  }

  /**
   * Never fails: what cannot be reported is not worth a second notification.
   * @param {CarillonKept} state @param {string} id @param {string} path @param {object} more
   */
  async function report(state, id, path, more) {
    const { appId: app_id, subscriptionId: player_id } = state
    if (!player_id) return
    const body = { app_id, player_id, device_type: deviceType, ...more }
    await call(state, 'PUT', `/notifications/${encodeURIComponent(id)}${path}`, body).catch(() => {})
  }
}
