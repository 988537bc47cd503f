// What a person sees and does in a real browser, on a site with our SDK: from the permission to what follows from a click, with
// nothing in between that is not the browser's own or ours. The click itself is a test's: Chromium has no way to press a
// notification, so the site's worker dispatches the event (site.ts). Firefox has one, and its own tests press (firefox.test.ts).

import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SYSTEM } from '../../src/apps/app.ts'
import { setApp } from '../../src/apps/create.ts'
import { signJwt } from '../../src/channels/push/jwt.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { type TestApp, testApp } from '../app.ts'
import { anId, aUser, view } from '../users.ts'
import type { TestBrowser } from './browser.ts'
import { counted, type Fields, sendTo } from './send.ts'
import { type Site, startSite } from './site.ts'
import { until } from './until.ts'

const SITE = {
  site_name: 'Our shop',
  chrome_web_origin: 'https://example.com',
  safari_site_origin: 'https://example.com',
  safari_apns_p12: '',
  chrome_web_default_notification_icon: 'https://example.com/icon.png',
}

export type BrowserSuite<Browser extends TestBrowser> = {
  browser(): Browser
  siteUrl(): string
  visit(path?: string): Promise<unknown>
  /** Sent by us, and shown. */
  show(content: Fields & { title: string }): Promise<{ id: string }>
  /** What the page was told of a message. */
  told(id: string): Promise<{ type: string }[]>
  /** The subscription of this browser, as the server has it. */
  subscription(): Promise<{ id: string; token: string; enabled: boolean }>
  /** Settles when the browser has reported the click, and the server has counted it. */
  clickCounted(id: string): Promise<unknown>
}

export function describeBrowser<Browser extends TestBrowser>(
  name: string,
  program: string | undefined,
  start: () => Promise<Browser>,
  /** What only this browser lets a test do. */
  more?: (suite: BrowserSuite<Browser>) => void,
) {
  if (program === undefined && !process.env.CI) {
    test(name, ({ skip }) => skip(`needs ${name} on this machine`))
    return
  }

  describe(name, () => {
    let app: TestApp
    let site: Site
    let browser: Browser
    beforeAll(async () => {
      browser = await start()
      app = await testApp({ role: 'all', providers: { route: browser.route } })
      await configure(`/apps/${app.tenant.id}`, SITE)
      // One person who is sent to all the time has more than most.
      await configure(`/apps/${app.tenant.id}/delivery_settings`, { limit_factor: 100 })
      site = await startSite(app.url)
    })
    afterAll(async () => {
      await browser?.close()
      await site?.close()
      await app?.close()
    })

    const configure = async (path: string, body: object) => {
      const headers = { authorization: `Key ${app.tenant.organizationKey}` }
      expect(await app.request(path, { method: 'PUT', headers, body })).toMatchObject({ status: 200 })
    }
    const init = () => browser.run(`Carillon.init({ appId: '${app.tenant.id}' })`)
    /** The page as the person finds it; it keeps what the SDK tells it. */
    async function visit(path = '') {
      await browser.go(site.url + path)
      await browser.run(`(() => {
        window.told = []
        for (const type of ['received', 'clicked'])
          Carillon.addEventListener(type, ({ detail }) => told.push({ type, ...detail }))
      })()`)
      return init()
    }
    const subscribed = async () => {
      await visit()
      return browser.run('Carillon.subscribe()')
    }
    const state = () => browser.run('Carillon.state()')
    const told = (id: string) => browser.run(`told.filter((it) => it.id === '${id}')`)
    const send = async (content: Fields) => sendTo(app, app.tenant, (await state()).subscriptionId, content)
    const has = (id: string, count: Parameters<typeof counted>[3]) => counted(app, app.tenant, id, count)
    const notifications = () =>
      browser.run(`navigator.serviceWorker.getRegistration()
        .then((it) => it.getNotifications())
        .then((all) => all.map(({ title, body, icon, tag, actions, data }) =>
          ({ id: data.carillon.id, title, body, icon, tag, actions })))`)
    const clickOn = (id: string, action = '') =>
      browser.run(`navigator.serviceWorker.getRegistration()
        .then((it) => it.active.postMessage({ clickOn: '${id}', action: '${action}' }))`)
    /** Asked for once the page knows of it: to ask Chromium while it is busy showing one makes it forget that one. */
    const shown = async (id: string) => {
      await until(async () => (await told(id))[0])
      return (await notifications()).find((it: { id: string }) => it.id === id)
    }
    const subscription = async () => {
      const { onesignalId, subscriptionId } = await state()
      const { subscriptions } = await view(app, { path: `/users/by/onesignal_id/${onesignalId}` })
      return subscriptions.find(({ id }: { id: string }) => id === subscriptionId)
    }

    test('asks for nothing until the page does', async () => {
      expect(await visit()).toEqual({ permission: 'granted', isSubscribed: false })
    })

    test('subscribes with the key of the app, and is a subscription on the server', async () => {
      const found = await subscribed()
      expect(found).toEqual({
        permission: 'granted',
        isSubscribed: true,
        subscriptionId: anId(),
        onesignalId: anId(),
      })
      expect(await subscription()).toMatchObject({
        id: found.subscriptionId,
        type: browser.type,
        token: expect.stringMatching(/^https:\/\//),
        enabled: true,
        notification_types: 1,
        web_auth: expect.stringMatching(/^[\w-]{22}$/),
        web_p256: expect.stringMatching(/^[\w-]{87}$/),
      })
      expect(await subscribed()).toEqual(found)
    })

    test('shows what we encrypted, tells the page, and reports that it was received', async () => {
      const { id } = await send({
        title: 'Bells',
        body: 'Sie läuten 🔔',
        url: `${site.url}bells`,
        chrome_web_icon: `${site.url}icon.png`,
        data: { order: 7 },
        web_push_topic: 'news',
        web_buttons: [
          { id: 'yes', text: 'Yes', url: `${site.url}yes` },
          { id: 'no', text: 'No' },
        ],
      })
      const notification = await shown(id)
      expect(notification).toMatchObject({ body: 'Sie läuten 🔔', icon: `${site.url}icon.png`, tag: 'news' })
      if (notification.actions)
        expect(notification.actions).toMatchObject([
          { action: 'yes', title: 'Yes' },
          { action: 'no', title: 'No' },
        ])
      expect(await has(id, 'received')).toMatchObject({ successful: 1, received: 1, converted: 0 })
      const message = { id, title: 'Bells', body: 'Sie läuten 🔔', url: `${site.url}bells`, data: { order: 7 } }
      expect(await told(id)).toEqual([{ type: 'received', ...message }])

      await clickOn(id, 'yes')
      expect(await has(id, 'converted')).toMatchObject({ successful: 1, received: 1, converted: 1 })
      expect((await told(id)).at(-1)).toEqual({ type: 'clicked', ...message, url: `${site.url}yes`, action: 'yes' })
      expect(await notifications()).toEqual([])
    })

    test('shows a message that brings nothing but text under the name and with the picture of the site', async () => {
      const { id } = await send({ body: 'Only this' })
      const icon = SITE.chrome_web_default_notification_icon
      expect(await shown(id)).toMatchObject({ title: 'Our shop', body: 'Only this', icon, tag: id })
      await clickOn(id)
      await has(id, 'converted')
    })

    test('shows the largest message that fits', async () => {
      const body = 'x'.repeat(3_700)
      const { id } = await send({ title: 'Large', body })
      expect(await shown(id)).toMatchObject({ body })
      await clickOn(id)
      await has(id, 'converted')
    })

    test('shows nothing of a message that somebody changed on its way', async () => {
      const before = browser.wasReadable?.().length
      browser.corruptNext()
      const forged = await send({ title: 'Forged' })
      await has(forged.id, 'successful')
      const { id } = await send({ title: 'Genuine' })
      await shown(id)
      expect((await notifications()).map(({ title }: { title: string }) => title)).toEqual(['Genuine'])
      if (browser.wasReadable) expect(browser.wasReadable().slice(before)).toEqual([false, true])
      await clickOn(id)
      await has(id, 'converted')
    })

    test('becomes somebody, has tags, and is nobody again', async () => {
      const nobody = await state()
      const name = `person-${newId()}`
      const somebody = await browser.run(`Carillon.login('${name}')`)
      expect(somebody).toEqual({ ...nobody, onesignalId: somebody.onesignalId, externalId: name })
      // The same one would tell that nobody had this name before.
      expect(somebody.onesignalId).not.toBe(nobody.onesignalId)
      await browser.run(`Carillon.addTags({ plan: 'gold' })`)
      const path = `/users/by/external_id/${name}`
      expect(await view(app, { path })).toMatchObject({
        identity: { onesignal_id: somebody.onesignalId },
        properties: { tags: { plan: 'gold' } },
        subscriptions: [{ id: nobody.subscriptionId }],
      })

      const after = await browser.run('Carillon.logout()')
      expect(after.onesignalId).not.toBe(somebody.onesignalId)
      expect(after).toMatchObject({ isSubscribed: true })
      expect((await view(app, { path })).subscriptions).toEqual([])
      expect(await subscription()).toMatchObject({ id: after.subscriptionId, enabled: true })
    })

    test('becomes a person whom the server knows already, and takes its subscription along', async () => {
      const { id, externalId, path } = await aUser(app)
      const before = await state()
      const after = await browser.run(`Carillon.login('${externalId}')`)
      expect(after).toEqual({ ...before, onesignalId: id, externalId })
      expect((await view(app, { path })).subscriptions).toMatchObject([{ id: before.subscriptionId }])
      const another = await aUser(app)
      expect(await browser.run(`Carillon.login('${another.externalId}')`)).toMatchObject({ onesignalId: another.id })
      expect((await view(app, { path })).subscriptions).toEqual([])
      await browser.run('Carillon.logout()')
    })

    test('gets a new subscription for one that was lost, and stays who it was', async () => {
      const before = { ...(await state()), token: (await subscription()).token }
      await browser.run(`navigator.serviceWorker.getRegistration()
        .then((it) => it.pushManager.getSubscription())
        .then((it) => it.unsubscribe())`)
      const lost = await send({ title: 'Lost' })
      await has(lost.id, 'failed')
      await until(async () => ((await subscription()).notification_types === -10 ? true : undefined))
      await visit()
      const { token } = await subscription()
      expect(token).not.toBe(before.token)
      expect({ ...(await state()), token: before.token }).toEqual(before)
      const { id } = await send({ title: 'Found' })
      expect(await shown(id)).toMatchObject({ title: 'Found' })
    })

    test('unsubscribes here and on the server, and subscribes again as the same', async () => {
      const before = await state()
      expect(await browser.run('Carillon.unsubscribe()')).toEqual({ ...before, isSubscribed: false })
      expect(await subscription()).toMatchObject({ enabled: false, notification_types: -2 })
      expect(await send({ title: 'Nobody hears' })).toMatchObject({ id: '' })
      // What the person has ended is not begun again by a visit.
      expect(await visit()).toMatchObject({ isSubscribed: false })
      expect(await subscribed()).toEqual(before)
      expect(await subscription()).toMatchObject({ enabled: true, notification_types: 1 })
      const { id } = await send({ title: 'Again' })
      expect(await shown(id)).toMatchObject({ title: 'Again' })
    })

    more?.({
      browser: () => browser,
      siteUrl: () => site.url,
      visit,
      async show(content) {
        const sent = await send(content)
        await shown(sent.id)
        return sent
      },
      told,
      subscription,
      clickCounted: (id) => has(id, 'converted'),
    })

    test('proves who it is to an app that asks for it, and begins anew there', async () => {
      const another = await app.anotherTenant()
      const { id: appId } = another
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const identityPublicKey = publicKey.export({ type: 'spki', format: 'pem' }).toString()
      const ctx = { db: app.db, clock: systemClock() }
      await setApp(ctx, appId, { identityPublicKey, identityRequired: true }, SYSTEM)
      const claims = { iss: appId, exp: Math.floor(ctx.clock.now().getTime() / 1000) + 600 }
      const token = signJwt({ alg: 'ES256' }, { ...claims, identity: { external_id: 'anna' } }, privateKey)

      await browser.go(site.url)
      expect(await browser.run(`Carillon.init({ appId: '${appId}' })`)).toMatchObject({ isSubscribed: false })
      await expect(browser.run('Carillon.subscribe()')).rejects.toThrow("requires 'Authorization'")
      await expect(browser.run(`Carillon.login('bert', '${token}')`)).rejects.toThrow('Carillon:')
      const somebody = await browser.run(`Carillon.login('anna', '${token}')`)
      expect(somebody).toMatchObject({ isSubscribed: true, externalId: 'anna', subscriptionId: anId() })
      const { id } = await sendTo(app, another, somebody.subscriptionId, { title: 'Proven' })
      await counted(app, another, id, 'successful')
      expect(await browser.run('Carillon.logout()')).toEqual({ permission: 'granted', isSubscribed: false })
    })

    test('can be tried on the demo page, with an app that is not set up for the web', async () => {
      const another = await app.anotherTenant()
      const text = (id: string) => browser.run(`document.getElementById('${id}').textContent`)
      await browser.go(`${app.url.replace('127.0.0.1', 'localhost')}/demo?app_id=${another.id}`)
      await until(async () => ((await text('badge')) === 'not subscribed' ? true : undefined))
      await browser.run(`document.getElementById('subscribe').click()`)
      await until(async () => ((await text('badge')) === 'subscribed' ? true : undefined))
      const title = 'On the demo page'
      const { id } = await sendTo(app, another, await text('subscription-id'), { title })
      await until(async () => ((await text('log')).includes(title) ? true : undefined))
      await counted(app, another, id, 'received')
    })

    test('says what is wrong with an app id', async () => {
      await browser.go(site.url)
      await expect(browser.run(`Carillon.init({ appId: '${newId()}' })`)).rejects.toThrow('App not found')
    })
  })
}
