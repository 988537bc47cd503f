import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aSentEmail,
  emailFactsOf,
  references,
  type SentEmail,
  standingOf,
  UNTOUCHED,
  writeReference,
} from '../../../test/email-back.ts'
import { startUnreachable } from '../../../test/unreachable.ts'
import type { ReferencePurpose } from '../../email/reference.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock, publicUrl: 'https://bell.example/' })
})
afterAll(() => app.close())

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const sent = (more: Partial<Parameters<typeof aSentEmail>[1]> = {}) => aSentEmail(app, { at: clock.now(), ...more })
const get = (path: string, { agent = FIREFOX, method = 'GET' } = {}) =>
  fetch(`${app.url}${path}`, { method, redirect: 'manual', headers: { 'user-agent': agent } })
const open = ({ references }: Pick<SentEmail, 'references'>, options?: object) =>
  get(`/e/o/${references.open}.gif`, options)
const linkTo = ({ references: own, appId }: SentEmail, url: string) =>
  `/e/c/${own.click}/${references.sign(appId, url)}?u=${encodeURIComponent(url)}`
/** Of a reference that names nothing any more. */
const old = (purpose: ReferencePurpose) =>
  writeReference(
    {
      appId: app.tenant.id,
      expandAt: clock.now(),
      messageId: newId(),
      subscriptionId: newId(),
      runId: newId(),
    },
    purpose,
  )
const told = async (kind: string, email: SentEmail) =>
  app.db.query<{ reason: string | null }>(sql`
    select reason from delivery_events where app_id = ${app.tenant.id} and message_id = ${email.message.id} and kind = ${kind}`)

describe('the pixel', () => {
  test('counts each open, and the first one apart, whoever changes the case of the address', async () => {
    const email = await sent()
    const answer = await open(email)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('image/gif')
    expect(answer.headers.get('cache-control')).toContain('no-store')
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect([bytes.length, bytes.subarray(0, 6).toString()]).toEqual([43, 'GIF89a'])
    expect((await get(`/E/o/${email.references.open}.gif`)).status).toBe(404)
    await get(`/e/o/${email.references.open.toUpperCase()}.GIF`)
    expect(await emailFactsOf(app, email)).toEqual({ opens: 2, opened: 1 })
  })

  test('counts 60 opens at once as 60, of one reader', async () => {
    const email = await sent()
    await Promise.all(Array.from({ length: 60 }, () => open(email)))
    expect(await emailFactsOf(app, email)).toEqual({ opens: 60, opened: 1 })
  })

  test('is the same for whatever it is asked', async () => {
    const email = await sent()
    const changed = `${email.references.open.slice(0, -1)}${email.references.open.endsWith('a') ? 'q' : 'a'}`
    for (const file of [
      'x',
      'x.gif',
      `${changed}.gif`,
      `${old('open')}.gif`,
      `${email.references.open}x.gif`,
      '%F0%9F%94%94',
    ]) {
      const { status, headers } = await get(`/e/o/${file}`)
      expect([file, status, headers.get('content-type')]).toEqual([file, 200, 'image/gif'])
    }
    expect(await emailFactsOf(app, email)).toEqual({})
  })

  test('counts nothing for HEAD', async () => {
    const email = await sent()
    const answer = await open(email, { method: 'HEAD' })
    expect([answer.status, answer.headers.get('content-length')]).toEqual([200, '43'])
    expect(await emailFactsOf(app, email)).toEqual({})
  })

  test('is not refused to the many readers behind the address of one proxy', async () => {
    const emails = await Promise.all(Array.from({ length: 3 }, () => sent()))
    const answers = await Promise.all(Array.from({ length: 150 }, (_, i) => open(emails[i % 3] as SentEmail)))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    for (const email of emails) expect(await emailFactsOf(app, email)).toEqual({ opens: 50, opened: 1 })
  })

  test('of one email is counted a hundred times in a second, and no more', async () => {
    const email = await sent()
    const answers = await Promise.all(Array.from({ length: 130 }, () => open(email)))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect((await emailFactsOf(app, email)).opens).toBe(100)
    clock.advanceLease({ seconds: 1 })
    await open(email)
    expect((await emailFactsOf(app, email)).opens).toBe(101)
  })
})

describe('a link', () => {
  test('leads to where it was signed for, and counts clicks', async () => {
    const email = await sent()
    const url = 'https://shop.example/a?b=1&c=%20x#d'
    for (let i = 0; i < 2; i++) {
      const answer = await get(linkTo(email, url))
      expect([answer.status, answer.headers.get('location')]).toEqual([302, url])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
    expect(await emailFactsOf(app, email)).toEqual({ clicks: 2, clicked: 1 })
  })

  test('leads there also when its email is forgotten, and with letters of any kind', async () => {
    const email = await sent()
    email.references.click = old('click')
    expect((await get(linkTo(email, 'https://shop.example/'))).status).toBe(302)
    const answer = await get(linkTo(email, 'https://bücher.example/straße?q=ü'))
    expect(answer.headers.get('location')).toBe('https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC')
  })

  test('counts nothing for HEAD', async () => {
    const email = await sent()
    const answer = await get(linkTo(email, 'https://shop.example/'), { method: 'HEAD' })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, 'https://shop.example/'])
    expect(await emailFactsOf(app, email)).toEqual({})
  })

  const EVIL = [
    '//evil.example/',
    '/\\evil.example/',
    'javascript:alert(1)',
    'JAVASCRIPT:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'https://shop.example/\r\nSet-Cookie: a=b',
    'https://shop.example/\nLocation: https://evil.example',
    'https://shop.example\t.evil.example/',
    'https:\\\\evil.example/',
    'https:evil.example',
    ' https://evil.example/',
    'ftp://evil.example/',
    'mailto:somebody@example.com',
    '',
    'x',
  ]
  test.each(EVIL)('to %j leads nowhere, signed or not', async (url) => {
    const email = await sent()
    const right = references.sign(email.appId, url)
    for (const signature of [right, references.sign(email.appId, 'https://shop.example/'), 'x', '%0d%0a'])
      for (const u of [encodeURIComponent(url), encodeURIComponent(encodeURIComponent(url))]) {
        const answer = await get(`/e/c/${email.references.click}/${signature}?u=${u}`)
        expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
        expect(answer.headers.get('set-cookie')).toBeNull()
      }
    expect(await emailFactsOf(app, email)).toEqual({})
  })

  test.each([
    'https://evil.example/',
    'https://shop.example@evil.example/',
    'https://shop.example/../../evil',
    'https://shop.example/?next=https://evil.example',
    'https://shop.example',
    'HTTPS://shop.example/',
  ])('with the signature of another does not lead to %s', async (url) => {
    const email = await sent()
    const signature = references.sign(email.appId, 'https://shop.example/')
    const answer = await get(`/e/c/${email.references.click}/${signature}?u=${encodeURIComponent(url)}`)
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
    const twice = `?u=${encodeURIComponent('https://shop.example/')}&u=${encodeURIComponent(url)}`
    expect((await get(`/e/c/${email.references.click}/${signature}${twice}`)).status).toBe(400)
  })

  test('signed for another app, or under a reference that nobody signed, leads nowhere', async () => {
    const email = await sent()
    const url = 'https://shop.example/'
    const foreign = references.sign((await app.anotherTenant()).id, url)
    const wrong = `${email.references.click.slice(1)}a`
    for (const path of [
      `/e/c/${email.references.click}/${foreign}?u=${encodeURIComponent(url)}`,
      `/e/c/${wrong}/${references.sign(email.appId, url)}?u=${encodeURIComponent(url)}`,
      `/e/c/${email.references.click}/${references.sign(email.appId, url)}`,
    ]) {
      const answer = await get(path)
      expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
      expect(await answer.text()).toContain('This link is not valid')
    }
  })
})

describe('a machine', () => {
  const hook = (kinds: string[]) =>
    app
      .app('/event_webhooks', { body: { url: 'https://hooks.example/', kinds } })
      .then(({ status }) => expect(status).toBe(201))
  beforeAll(() => hook(['opened', 'clicked']))
  const machineCounts = async (email: SentEmail) => {
    const events = [...(await told('opened', email)), ...(await told('clicked', email))]
    const facts = await app.db.query<{ state: string; count: number }>(sql`
      select state, sum(count)::bigint as count from message_counts
      where app_id = ${app.tenant.id} and message_id = ${email.message.id} and state like 'machine%' group by state`)
    return (
      events.filter(({ reason }) => reason === 'machine').length +
      facts.reduce((sum, { count }) => sum + Number(count), 0)
    )
  }

  test.each([
    ['Mozilla/5.0', true],
    ['Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)', true],
    ['YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html', true],
    ['Barracuda Sentinel (EE)', true],
    ['', true],
    [FIREFOX, false],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
      false,
    ],
  ])('that says %j is counted; known as one: %s', async (agent, isMachine) => {
    const email = await sent()
    await open(email, { agent })
    expect(await emailFactsOf(app, email)).toEqual({ opens: 1, opened: 1 })
    expect((await machineCounts(email)) > 0).toBe(isMachine)
  })

  test('is what clicks within two seconds of delivery', async () => {
    const [soon, later] = [await sent({ deliveredAt: clock.now() }), await sent({ deliveredAt: clock.now() })]
    clock.advance({ ms: 1_999 })
    await get(linkTo(soon, 'https://shop.example/'))
    clock.advance({ ms: 1 })
    await get(linkTo(later, 'https://shop.example/'))
    for (const email of [soon, later]) expect(await emailFactsOf(app, email)).toEqual({ clicks: 1, clicked: 1 })
    expect([(await machineCounts(soon)) > 0, (await machineCounts(later)) > 0]).toEqual([true, false])
  })
})

describe('the view in the browser', () => {
  const view = async (reference: string) => {
    const answer = await get(`/e/v/${reference}`)
    return { status: answer.status, text: await answer.text(), headers: answer.headers }
  }

  test('shows the content for that person, with its links filled in, and no pixel', async () => {
    const email_body =
      '<h1>Hi {{ first_name }}</h1><a href="[unsubscribe_url]">u</a><a href="%5Bview_message_in_browser_url%5D">v</a><a href="https://shop.example/">s</a><script>alert(1)</script>'
    const email = await sent({ content: { email_body }, properties: { tags: { first_name: '<Ann>' } } })
    const { status, text, headers } = await view(email.references.view)
    expect(status).toBe(200)
    expect(text).toContain('<h1>Hi &lt;Ann&gt;</h1>')
    expect(text).toContain(`href="https://bell.example/e/u/${email.references.unsubscribe}"`)
    expect(text).toContain(`href="https://bell.example/e/v/${email.references.view}"`)
    expect(text).toContain('href="https://shop.example/"')
    expect(text).not.toContain('/e/o/')
    const policy = headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; img-src https: http: data:; style-src 'unsafe-inline'")
    expect(policy).toContain('sandbox')
    expect(policy).not.toContain('script-src')
    expect(policy).not.toContain('allow-scripts')
    expect(await emailFactsOf(app, email)).toEqual(UNTOUCHED.facts)
  })

  test('shows what has no Liquid as it is', async () => {
    const email = await sent({ content: { email_body: '<p>As it is</p>' } })
    expect((await view(email.references.view)).text).toBe('<p>As it is</p>')
  })

  test('says politely that an email is too old, or an address not valid', async () => {
    expect(await view(old('view'))).toMatchObject({ status: 410, text: expect.stringContaining('too old') })
    expect(await view('x')).toMatchObject({ status: 404, text: expect.stringContaining('not valid') })
  })
})

test('pictures and links work while the database is away', async () => {
  const email = await sent()
  const away = await startUnreachable()
  try {
    expect((await fetch(`${away.address}/e/o/${email.references.open}.gif`)).status).toBe(200)
    const link = linkTo(email, 'https://shop.example/')
    expect((await fetch(`${away.address}${link}`, { redirect: 'manual' })).status).toBe(302)
    expect((await fetch(`${away.address}/e/u/${email.references.unsubscribe}`)).status).toBe(503)
  } finally {
    await away.close()
  }
})

describe('the reference in an address', () => {
  const post = (path: string, form: string) =>
    fetch(`${app.url}${path}`, { method: 'POST', body: new URLSearchParams(form) })
  /** What each address answers to a reference, and whether anything came of it. */
  const uses: Record<string, (email: SentEmail, reference: string) => Promise<Response>> = {
    open: (_, reference) => get(`/e/o/${reference}.gif`),
    click: ({ appId }, reference) =>
      get(`/e/c/${reference}/${references.sign(appId, LINK)}?u=${encodeURIComponent(LINK)}`),
    view: (_, reference) => get(`/e/v/${reference}`),
    unsubscribe: (_, reference) => post(`/e/u/${reference}`, 'List-Unsubscribe=One-Click'),
    preferences: (_, reference) => post(`/e/p/${reference}`, 'email=unsubscribed'),
    token: ({ appId, message }, reference) =>
      get(`/apps/${appId}/notifications/${message.id}/unsubscribe?token=${reference}`, { method: 'POST' }),
  }
  const LINK = 'https://shop.example/'

  test.each([
    ['open', ['open']],
    ['click', ['click']],
    ['view', ['view']],
    ['unsubscribe', ['unsubscribe', 'token']],
    ['preferences', ['preferences']],
    ['report', []],
  ] as const)('for %s serves %j and nothing else', async (purpose, served) => {
    for (const [use, ask] of Object.entries(uses)) {
      const email = await sent()
      const { status } = await ask(email, email.references[purpose])
      const answer = { status, changed: !isDeepStrictEqual(await standingOf(app, email), UNTOUCHED) }
      if ((served as readonly string[]).includes(use))
        expect([use, answer]).toEqual([use, { status: SERVED[use], changed: use !== 'view' }])
      // The pixel is the same for whatever it is asked, and counts nothing.
      else expect([use, answer]).toEqual([use, { status: REFUSED[use], changed: false }])
    }
  })
  const SERVED: Record<string, number> = {
    ...{ open: 200, click: 302, view: 200, unsubscribe: 200, preferences: 200, token: 202 },
  }
  const REFUSED: Record<string, number> = {
    ...{ open: 200, click: 400, view: 404, unsubscribe: 404, preferences: 404, token: 400 },
  }
})
