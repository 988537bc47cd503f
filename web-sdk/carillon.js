// The part of the web SDK that runs in a page: it speaks with the person. Everything that is kept, and every request to
// the server but the first, is the service worker's, so that it is all still there when no page is open. What it offers is
// described in carillon.d.ts.

globalThis.Carillon = (() => {
  const script = /** @type {HTMLScriptElement | null} */ (document.currentScript)
  const events = new EventTarget()
  /** @type {Promise<{ registration: ServiceWorkerRegistration, key: string }> | undefined} */
  let started

  /** @param {CarillonOptions} options */
  async function start({ appId, baseUrl, workerPath = '/carillon-worker.js', url = '/' }) {
    if (!isSecureContext) throw failure('web push needs https, or localhost')
    if (!('serviceWorker' in navigator && 'PushManager' in window)) throw failure('this browser has no web push')
    const base = (baseUrl ?? new URL('..', script?.src).href).replace(/\/$/, '')
    const answer = await fetch(`${base}/sync/${encodeURIComponent(appId)}/web`)
    const { config, message } = await answer.json()
    if (!config) throw failure(message ?? `the server answered ${answer.status}`)

    const registration = await navigator.serviceWorker.register(workerPath)
    const { name = location.hostname, defaultIconUrl: icon } = config.siteInfo ?? {}
    const { click } = await ask(registration, 'start', {
      appId,
      baseUrl: base,
      key: config.vapid_public_key,
      site: { name, icon, url: new URL(url, location.href).href },
      user: {
        language: navigator.language.split('-')[0],
        timezone_id: Intl.DateTimeFormat().resolvedOptions().timeZone,
      },
    })
    if (click) tell('clicked', click)
    return { registration, key: config.vapid_public_key }
  }

  async function subscribe() {
    // Before anything else is awaited: asking must follow the click at once.
    const permission = await Notification.requestPermission()
    if (permission !== 'granted') throw failure(`permission for notifications is ${permission}`)
    const { registration, key } = await whenStarted()
    const { pushManager } = registration
    const known = await pushManager.getSubscription()
    // One that was made for another key, of another service say, cannot be sent to with ours.
    if (known && encode(known.options.applicationServerKey) !== key) await known.unsubscribe()
    await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }).catch((error) => {
      throw failure(`the push service of this browser could not be reached (${error.message})`)
    })
    return command('subscribe')
  }

  const whenStarted = () => started ?? Promise.reject(failure('call Carillon.init() first'))

  /** @param {string} name @param {object} [given] */
  const command = async (name, given) => ask((await whenStarted()).registration, name, given)

  /**
   * A question to the worker, and its answer.
   * @param {ServiceWorkerRegistration} registration @param {string} name @param {object} [given]
   */
  async function ask(registration, name, given) {
    const worker = await whenActive(registration)
    const { port1, port2 } = new MessageChannel()
    return new Promise((resolve, reject) => {
      port1.onmessage = ({ data: { error, result } }) =>
        error === undefined ? resolve(result) : reject(failure(error))
      worker.postMessage({ carillon: name, ...given }, [port2])
    })
  }

  /** @param {ServiceWorkerRegistration} registration @returns {Promise<ServiceWorker>} */
  function whenActive(registration) {
    if (registration.active) return Promise.resolve(registration.active)
    const worker = registration.installing ?? registration.waiting
    return new Promise((resolve, reject) => {
      worker?.addEventListener('statechange', () => {
        if (worker.state === 'activated') resolve(worker)
        if (worker.state === 'redundant') reject(failure('the service worker could not be installed'))
      })
    })
  }

  /** @param {string} type @param {CarillonMessage} detail */
  const tell = (type, detail) => events.dispatchEvent(new CustomEvent(type, { detail }))

  /** @param {string} words */
  const failure = (words) => new Error(`Carillon: ${words}`)

  /** As base64url, which is how keys are written. @param {ArrayBuffer | null} bytes */
  const encode = (bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer(0))))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replaceAll('=', '')

  navigator.serviceWorker?.addEventListener('message', ({ data }) => {
    if (data?.carillon) tell(data.carillon, data.message)
  })

  return /** @type {CarillonApi} */ (
    Object.assign(events, {
      /** @param {CarillonOptions} options */
      init(options) {
        started ??= start(options)
        // What failed may be tried again.
        started.catch(() => {
          started = undefined
        })
        return command('state')
      },
      subscribe,
      unsubscribe: () => command('unsubscribe'),
      /** @param {string} externalId @param {string} [token] */
      login: (externalId, token) => command('login', { externalId, token }),
      logout: () => command('logout'),
      /** @param {Record<string, unknown>} tags */
      addTags: (tags) => command('tag', { tags }),
      state: () => command('state'),
    })
  )
})()
