// The demo page: what a site does with the SDK, and shows what comes of it.

{
  const appId = new URLSearchParams(location.search).get('app_id')

  /** @param {string} id */
  const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id))

  /** @param {CarillonState} state */
  function show({ permission, isSubscribed, subscriptionId, onesignalId, externalId }) {
    const texts = {
      permission,
      'subscription-id': subscriptionId,
      'onesignal-id': onesignalId,
      'external-id': externalId,
    }
    for (const [id, text] of Object.entries(texts)) byId(id).textContent = text ?? '–'
    byId('badge').textContent = isSubscribed ? 'subscribed' : 'not subscribed'
    byId('badge').classList.toggle('on', isSubscribed)
    byId('subscribe').hidden = isSubscribed
    byId('unsubscribe').hidden = !isSubscribed
    byId('logout').hidden = externalId === undefined
    byId('send').hidden = !isSubscribed
    byId('command').textContent = commandFor(subscriptionId)
    for (const id of ['subscription', 'person', 'messages']) byId(id).hidden = false
  }

  /** @param {string | undefined} subscriptionId */
  const commandFor = (subscriptionId) => `curl ${location.origin}/notifications \\
  -H 'Authorization: Key YOUR_APP_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '{"app_id": "${appId}",
       "include_subscription_ids": ["${subscriptionId}"],
       "headings": {"en": "Hello"},
       "contents": {"en": "The bells ring"}}'`

  /** Less than anybody waits for a button. */
  const PUSH_SERVICE_MS = 8000

  /** The person may take their time to answer; the push service may not. */
  async function subscribe() {
    await Notification.requestPermission()
    const subscribed = Carillon.subscribe()
    const { promise: late, reject } = Promise.withResolvers()
    const timer = setTimeout(() => {
      reject(new Error('The push service of this browser has not answered.'))
      // Better late than never.
      subscribed.then(show).then(
        () => hide('problem', 'unreachable'),
        () => {},
      )
    }, PUSH_SERVICE_MS)
    try {
      return await Promise.race([subscribed, late])
    } catch (error) {
      byId('unreachable').hidden = Notification.permission !== 'granted'
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** @param {string[]} ids */
  const hide = (...ids) => {
    for (const id of ids) byId(id).hidden = true
  }

  /** Whatever a button does: once at a time, with what it came to. @param {() => Promise<CarillonState>} work */
  async function run(work) {
    const buttons = document.querySelectorAll('button')
    for (const button of buttons) button.disabled = true
    hide('problem', 'unreachable')
    try {
      show(await work())
    } catch (error) {
      byId('problem').textContent = error instanceof Error ? error.message : String(error)
      byId('problem').hidden = false
      byId('choose').hidden = !byId('subscription').hidden
    } finally {
      for (const button of buttons) button.disabled = false
    }
  }

  /** @param {string} id @param {(fields: FormData) => Promise<CarillonState>} work */
  function onSubmit(id, work) {
    const form = /** @type {HTMLFormElement} */ (byId(id))
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const fields = new FormData(form)
      run(() => work(fields))
    })
  }

  /** @param {CustomEvent<CarillonMessage>} event */
  function write({ type, detail: { title, body, url, action, data } }) {
    const entry = document.createElement('li')
    const heading = document.createElement('strong')
    heading.textContent = body ? `${title}: ${body}` : title
    const more = document.createElement('small')
    const facts = [
      new Date().toLocaleTimeString(),
      action === undefined ? type : `${type}, button ${action}`,
      url ?? '',
      Object.keys(data).length > 0 ? JSON.stringify(data) : '',
    ]
    more.textContent = facts.filter(Boolean).join(' · ')
    entry.append(heading, more)
    byId('log').prepend(entry)
    byId('none').hidden = true
  }

  byId('choose').addEventListener('submit', (event) => {
    event.preventDefault()
    const form = /** @type {HTMLFormElement} */ (event.target)
    location.search = `?app_id=${encodeURIComponent(String(new FormData(form).get('app_id')))}`
  })
  if (appId) {
    byId('app-id').textContent = appId
    Carillon.addEventListener('received', write)
    Carillon.addEventListener('clicked', write)
    byId('subscribe').addEventListener('click', () => run(subscribe))
    byId('unsubscribe').addEventListener('click', () => run(Carillon.unsubscribe))
    byId('logout').addEventListener('click', () => run(Carillon.logout))
    onSubmit('login', (fields) => Carillon.login(String(fields.get('external_id'))))
    onSubmit('tag', (fields) => Carillon.addTags({ [String(fields.get('key'))]: String(fields.get('value')) }))
    run(() => Carillon.init({ appId, workerPath: '/sdk/carillon-worker.js', url: location.href }))
  } else byId('choose').hidden = false
}
