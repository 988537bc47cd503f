import { generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import {
  ANDROID,
  aDevice,
  anInApp,
  createInApp,
  fetchFor,
  fetchHtml,
  IN_APP_NOT_FOUND,
  IOS,
  report,
  updateInApp,
} from '../../test/in-app.ts'
import { NOBODY, told } from '../../test/users.ts'
import { SYSTEM } from '../apps/app.ts'
import { setApp } from '../apps/create.ts'
import { virtualClock } from '../lib/clock.ts'

let app: TestApp
const clock = virtualClock('2030-05-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const previewOf = (variantId: string, headers: object = ANDROID) =>
  app.request(`/in_app_messages/device_preview?preview_id=${variantId}&app_id=${app.tenant.id}`, {
    headers: { ...headers },
  })

async function htmlOf(contents: object, headers: object = {}): Promise<string> {
  const { id, variants } = await anInApp(app, { contents: { en: contents } })
  const { status, body } = await fetchHtml(app, id, variants.en, headers)
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  await updateInApp(app, id, { state: 'archived' })
  return body.html
}

describe('the page of a variant', () => {
  test('is in the form that SDKs read', async () => {
    const styles = { remove_height_margin: true, remove_width_margin: true }
    const { id, variants } = await anInApp(app, { display_duration: 12, styles })
    expect(told(await fetchHtml(app, id, variants.en, ANDROID))).toEqual({
      status: 200,
      body: { html: expect.stringContaining('<h1>Hello</h1>'), display_duration: 12, styles },
    })
    const plain = await anInApp(app)
    const none = { remove_height_margin: false, remove_width_margin: false }
    expect((await fetchHtml(app, plain.id, plain.variants.en, IOS)).body).toEqual({
      html: expect.any(String),
      styles: none,
    })
  })

  test('says in each language what was given for it', async () => {
    const { id, variants } = await anInApp(app, { contents: { en: { title: 'Hello' }, de: { html: '<p>Hallo</p>' } } })
    expect((await fetchHtml(app, id, variants.de)).body.html).toMatch(/^<script>.*<\/script><p>Hallo<\/p>$/s)
    const changed = (await updateInApp(app, id, { contents: { en: { title: 'Hi' }, de: { title: 'Servus' } } })).body
    expect(changed.variants).toEqual(variants)
    expect((await fetchHtml(app, id, variants.de)).body.html).toContain('<h1>Servus</h1>')
  })

  test('is there while its message is live', async () => {
    const end = new Date(clock.now().getTime() + 60_000).toISOString()
    const { id, variants } = await anInApp(app, { end_time: end })
    const other = await anInApp(app)
    expect((await fetchHtml(app, id, variants.en)).status).toBe(200)
    expect(told(await fetchHtml(app, id, other.variants.en))).toEqual(IN_APP_NOT_FOUND)
    expect(told(await fetchHtml(app, NOBODY, variants.en))).toEqual(IN_APP_NOT_FOUND)
    expect((await fetchHtml(app, id, 'x')).status).toBe(400)
    clock.advance({ minutes: 1 })
    expect(told(await fetchHtml(app, id, variants.en))).toEqual(IN_APP_NOT_FOUND)
    await updateInApp(app, other.id, { state: 'paused' })
    expect(told(await fetchHtml(app, other.id, other.variants.en))).toEqual(IN_APP_NOT_FOUND)
  })

  test('is previewed by the id of the variant, whatever the state of the message', async () => {
    const { variants } = (await createInApp(app)).body
    const { status, body } = await previewOf(variants.en.toUpperCase())
    expect({ status, html: body.html }).toEqual({ status: 200, html: expect.stringContaining('<h1>Hello</h1>') })
    expect(told(await previewOf(NOBODY))).toEqual(IN_APP_NOT_FOUND)
    expect((await previewOf('x')).status).toBe(400)
    expect((await app.request(`/in_app_messages/device_preview?app_id=${app.tenant.id}`)).status).toBe(400)
  })
})

describe('a page made of fields', () => {
  const EVIL = `"><script>alert(1)</script><img src=x onerror='alert(2)'>{{`.slice(0, -2)

  test('holds what was given as text and nothing else', async () => {
    const html = await htmlOf({
      title: `T${EVIL}`,
      body: `B${EVIL}`,
      image_url: 'https://example.com/a.png?x=1&y="><script>',
      image_alt: `A${EVIL}`,
      buttons: [{ id: `I${EVIL}`, text: `X${EVIL}`, name: `N${EVIL}`, add_tags: { [`K${EVIL}`]: `V${EVIL}` } }],
    })
    const body = html.slice(html.indexOf('<body'))
    expect(body.match(/<\w+/g)).toEqual(['<body', '<button', '<img', '<h1', '<p', '<button'])
    expect(body.replaceAll(/"[^"]*"/g, '')).not.toMatch(/<[^>]*\s(onerror|src=x)/)
    // Ours, and no other.
    expect(html.match(/<script/g)).toHaveLength(1)
    expect(html).toContain('<h1>T&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;')
    expect(html).toContain("default-src 'none'")
  })

  test('has its buttons with what they do', async () => {
    const html = await htmlOf({
      body: 'Buy?',
      background_color: '#102030',
      text_color: '#fff',
      buttons: [
        {
          id: 'buy',
          text: 'Buy',
          url: 'https://example.com/?a=1&b=2',
          url_target: 'browser',
          background_color: '#0057ff',
        },
        {
          id: 'ask',
          text: 'Ask',
          prompt: 'push',
          close: false,
          add_tags: { a: 'b' },
          remove_tags: ['c'],
          name: 'asked',
        },
      ],
    })
    expect(actionsIn(html)).toEqual([
      { id: 'close', close: true },
      { id: 'buy', close: true, url: 'https://example.com/?a=1&b=2', url_target: 'browser' },
      { id: 'ask', close: false, name: 'asked', prompts: ['push'], tags: { adds: { a: 'b' }, removes: ['c'] } },
    ])
    expect(html).toContain('<body style="background:#102030;color:#fff">')
    expect(html).toContain('style="background:#0057ff"')
    expect(actionsIn(await htmlOf({ body: 'x', close_button: false }))).toEqual([])
  })

  const actionsIn = (html: string) =>
    [...html.matchAll(/data-action="([^"]*)"/g)].map(([, text = '']) => {
      const entities: Record<string, string> = { quot: '"', amp: '&', lt: '<', gt: '>', '#39': "'", '#123': '{' }
      return JSON.parse(text.replaceAll(/&([a-z0-9#]+);/g, (_, name: string) => entities[name] as string))
    })
})

describe('HTML of an author', () => {
  test.each([
    ['<!DOCTYPE html><html lang="en"><head class="x"><title>A</title></head></html>', '<head class="x"><script>'],
    ['<html><body>A</body></html>', '<html><script>'],
    ['<!doctype html><p>A</p>', '<!doctype html><script>'],
    ['<header>A</header>', '<script>'],
  ])('%s gets the script before all else', async (given, expected) => {
    const html = await htmlOf({ html: given })
    expect(html).toContain(expected)
    expect(html.replace(/<script>.*?<\/script>/s, '')).toBe(given)
  })
})

describe('tags in a page', () => {
  const text = "Hello {{ name | default: 'you' }}, {{ city }}!"
  const aLiquid = (content: object = { title: text }) => anInApp(app, { contents: { en: content } })
  const forDevice = ({ subscriptionId }: { subscriptionId: string }) => ({
    authorization: `Key ${app.tenant.key}`,
    'onesignal-subscription-id': subscriptionId,
  })

  test('are those of the user whose device the header names, as text', async () => {
    const { id, variants, has_liquid } = await aLiquid()
    expect(has_liquid).toBe(true)
    const known = await aDevice(app, { tags: { name: '<b>Ada</b>', city: 'Turin' } })
    const html = (await fetchHtml(app, id, variants.en, forDevice(known))).body.html
    expect(html).toContain('<h1>Hello &lt;b&gt;Ada&lt;/b&gt;, Turin!</h1>')
    const unknown = await aDevice(app)
    expect((await fetchHtml(app, id, variants.en, forDevice(unknown))).body.html).toContain('<h1>Hello you, !</h1>')
    const preview = await previewOf(variants.en, forDevice(known))
    expect(preview.body.html).toContain('Turin!')
  })

  test('are left to the page where nobody says whose it is, or nobody proves it', async () => {
    const { id, variants } = await aLiquid({ html: `<p>${text}</p>` })
    const known = await aDevice(app, { tags: { name: 'Ada', city: 'Turin' } })
    const [plain, unproven, nobody, wrong] = await Promise.all([
      fetchHtml(app, id, variants.en, IOS),
      fetchHtml(app, id, variants.en, { ...ANDROID, 'onesignal-subscription-id': known.subscriptionId }),
      fetchHtml(app, id, variants.en, forDevice({ subscriptionId: NOBODY })),
      fetchHtml(app, id, variants.en, forDevice({ subscriptionId: 'x' })),
    ])
    for (const { status, body } of [plain, unproven, nobody, wrong])
      expect({ status, html: body.html }).toEqual({ status: 200, html: expect.stringContaining(`<p>${text}</p>`) })
  })

  test('of a page of fields stand in its texts alone', async () => {
    const device = await aDevice(app, { tags: { x: 'y' } })
    const { id, variants } = await aLiquid({
      title: '{{ x }}',
      body: '{ {{x}} } & {',
      image_url: 'https://example.com/a.png',
      image_alt: '{{ x }}',
      buttons: [{ id: 'a', text: '{{ x }}', name: '{{ x }}' }],
    })
    const html = (await fetchHtml(app, id, variants.en, forDevice(device))).body.html
    expect(html).toContain('<h1>y</h1>')
    expect(html).toContain('<p>&#123; y } &amp; &#123;</p>')
    expect(html).toContain('alt="&#123;&#123; x }}"')
    expect(html).toMatch(/&quot;&#123;&#123; x }}&quot;[^>]*>y<\/button>/)
  })
})

describe('where the app demands proof of identity', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let proving: TestApp
  beforeAll(async () => {
    proving = await testApp({ clock })
    const pem = publicKey.export({ type: 'spki', format: 'pem' }) as string
    await setApp(
      { db: proving.db, clock },
      proving.tenant.id,
      { identityRequired: true, identityPublicKey: pem },
      SYSTEM,
    )
  })
  afterAll(() => proving.close())

  function tokenFor(external_id: string): string {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: proving.tenant.id, exp: clock.now().getTime() / 1000 + 3_600, identity: { external_id } }
    const data = `${part({ alg: 'ES256' })}.${part(claims)}`
    const signature = sign('sha256', Buffer.from(data), { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return `${data}.${signature.toString('base64url')}`
  }
  const as = (externalId: string) => ({ ...ANDROID, authorization: `Bearer ${tokenFor(externalId)}` })

  test('SDKs list with a token, for their own user alone', async () => {
    const { id } = await anInApp(proving)
    const [device, other] = [await aDevice(proving), await aDevice(proving)]
    const byName = (name: string, headers: object) =>
      proving.app(`/users/by/external_id/${name}/subscriptions/${device.subscriptionId}/iams`, {
        headers: { ...headers },
      })
    const mine = await byName(device.externalId, as(device.externalId))
    expect(mine.body.in_app_messages.map((it: { id: string }) => it.id)).toEqual([id])
    expect((await fetchFor(proving, device, as(device.externalId))).status).toBe(200)
    expect((await byName(device.externalId, ANDROID)).status).toBe(401)
    expect((await fetchFor(proving, device, ANDROID)).status).toBe(401)
    expect((await fetchFor(proving, device, as(other.externalId))).status).toBe(404)
    expect((await byName(device.externalId, as(other.externalId))).status).toBe(403)
    expect((await byName(other.externalId, as(other.externalId))).status).toBe(404)
  })

  test('they fetch pages and report without one, as they do; and nobody learns of tags that way', async () => {
    const { id, variants } = await anInApp(proving, { contents: { en: { title: 'Hello {{ name }}' } } })
    const [device, other] = [await aDevice(proving, { tags: { name: 'Ada' } }), await aDevice(proving)]
    const page = async (headers: object) => {
      const named = { ...headers, 'onesignal-subscription-id': device.subscriptionId }
      return (await fetchHtml(proving, id, variants.en, named)).body.html
    }
    expect(await page(ANDROID)).toContain('<h1>Hello {{ name }}</h1>')
    expect(await page(as(other.externalId))).toContain('<h1>Hello {{ name }}</h1>')
    expect(await page(as(device.externalId))).toContain('<h1>Hello Ada</h1>')
    const seen = { player_id: device.subscriptionId }
    expect((await report(proving, id, 'impression', seen, ANDROID)).status).toBe(200)
    expect((await report(proving, id, 'impression', seen, as(device.externalId))).status).toBe(200)
    expect((await report(proving, id, 'impression', seen, as(other.externalId))).status).toBe(404)
    const bad = { ...ANDROID, authorization: `Bearer ${tokenFor('x')}x` }
    expect((await report(proving, id, 'impression', seen, bad)).status).toBe(401)
  })
})
