import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  anotherTo,
  aSentEmail,
  emailFactsOf,
  notificationTypesOf,
  type SentEmail,
  writeReference,
} from '../../../test/email-back.ts'
import type { ReferencePurpose } from '../../email/reference.ts'
import { suppressAddresses } from '../../email/suppressions/store.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import { maintainDeliveryMonths } from '../../messages/expand/months.ts'
import { deleteExpiredMessages } from '../../messages/settle/delete-expired.ts'
import { readConfig } from '../../settings/config.ts'
import { sql } from '../../storage/sql.ts'
import { escaped } from './pages.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock, log: createLog('silent') })
  const answer = await app.app('/event_webhooks', { body: { url: 'https://hooks.example/', kinds: ['unsubscribed'] } })
  expect(answer.status).toBe(201)
})
afterAll(() => app.close())

const sent = (more: Partial<Parameters<typeof aSentEmail>[1]> = {}) => aSentEmail(app, { at: clock.now(), ...more })
const old = (purpose: ReferencePurpose = 'unsubscribe') =>
  writeReference(
    {
      appId: app.tenant.id,
      expandAt: new Date('2001-02-03'),
      messageId: newId(),
      subscriptionId: newId(),
      runId: newId(),
    },
    purpose,
  )

const FORM = 'application/x-www-form-urlencoded'
async function ask(path: string, body?: string, type = FORM) {
  const response = await fetch(`${app.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    redirect: 'manual',
    ...(body !== undefined && { body, headers: { 'content-type': type } }),
  })
  return { status: response.status, text: await response.text(), headers: response.headers }
}
const standing = async (email: SentEmail) => ({
  types: await notificationTypesOf(app, email),
  facts: await emailFactsOf(app, email),
})
const eventsOf = ({ message }: SentEmail) =>
  app.db.query(sql`
    select kind, subscription_id from delivery_events where app_id = ${app.tenant.id} and message_id = ${message.id}`)

const SUBSCRIBED = { types: null, facts: {} }
const UNSUBSCRIBED = { types: -2, facts: { unsubscribed: 1 } }
const MULTIPART = '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n'

describe('one click', () => {
  test.each([
    ['a form', 'List-Unsubscribe=One-Click', FORM],
    ['a form with a charset', 'List-Unsubscribe=One-Click', `${FORM}; charset=UTF-8`],
    ['multipart', MULTIPART, 'multipart/form-data; boundary=b'],
    ['nothing', '', FORM],
  ])('as %s unsubscribes at once, without a redirect or a cookie', async (_, body, type) => {
    const email = await sent()
    const answer = await ask(`/e/u/${email.references.unsubscribe}`, body, type)
    expect([answer.status, answer.headers.get('set-cookie'), answer.headers.get('location')]).toEqual([200, null, null])
    expect(await standing(email)).toEqual(UNSUBSCRIBED)
    expect(await eventsOf(email)).toEqual([{ kind: 'unsubscribed', subscriptionId: email.subscriptionId }])
  })

  test('counts once, however often and however many at once', async () => {
    const email = await sent()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask(`/e/u/${email.references.unsubscribe}`, 'List-Unsubscribe=One-Click')),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(await standing(email)).toEqual(UNSUBSCRIBED)
    expect(await eventsOf(email)).toHaveLength(1)
  })

  test('counts when it is asked again after it could not be counted', async () => {
    const email = await sent()
    const click = async () => (await ask(`/e/u/${email.references.unsubscribe}`, 'List-Unsubscribe=One-Click')).status
    await app.db.query({ text: 'alter table delivery_events rename to delivery_events_gone', values: [] })
    try {
      expect(await click()).toBeGreaterThanOrEqual(500)
    } finally {
      await app.db.query({ text: 'alter table delivery_events_gone rename to delivery_events', values: [] })
    }
    expect(await standing(email)).toEqual({ ...UNSUBSCRIBED, facts: {} })
    expect(await click()).toBe(200)
    expect(await standing(email)).toEqual(UNSUBSCRIBED)
    expect(await eventsOf(email)).toHaveLength(1)
  })

  test('counts with each mail that it is asked from', async () => {
    const first = await sent()
    const second = await anotherTo(app, first, clock.now())
    for (const email of [first, second, first])
      await ask(`/e/u/${email.references.unsubscribe}`, 'List-Unsubscribe=One-Click')
    for (const email of [first, second]) expect(await standing(email)).toEqual(UNSUBSCRIBED)
  })

  test('works in capitals, and unsubscribes who cannot be reached for another reason', async () => {
    const email = await sent({ subscription: { notification_types: -10 } })
    await ask(`/e/u/${email.references.unsubscribe.toUpperCase()}`, 'List-Unsubscribe=One-Click')
    expect(await notificationTypesOf(app, email)).toBe(-2)
  })

  test('on an email that is not kept any more, or with a reference that nobody signed, changes nothing', async () => {
    const email = await sent()
    const changed = email.references.unsubscribe.replace(/^./, (letter) => (letter === 'a' ? 'b' : 'a'))
    expect(await ask(`/e/u/${old()}`, '')).toMatchObject({ status: 410, text: expect.stringContaining('too old') })
    expect(await ask(`/e/u/${changed}`, '')).toMatchObject({ status: 404 })
    expect(await ask('/e/u/%2e%2e', '')).toMatchObject({ status: 404 })
    expect(await standing(email)).toEqual(SUBSCRIBED)
  })

  test('works for 60 days after a mail went out, however soon the app forgets its messages', async () => {
    const email = await sent()
    // Delivered as late as anything may be.
    const later = new Date(clock.now().getTime() + (28 + 60) * 86_400_000)
    expect((await app.app('/delivery_settings', { method: 'PUT', body: { retention_days: 1 } })).status).toBe(200)
    const shortest = 90
    const read = (days: number) => readConfig({ DELIVERY_RETENTION_DAYS: String(days) }).config.deliveryRetentionDays
    expect(read(shortest)).toBe(shortest)
    expect(() => read(shortest - 1)).toThrow('DELIVERY_RETENTION_DAYS')
    await app.db.query(sql`
      update messages set state = 'done', completed_at = ${clock.now()} where app_id = ${app.tenant.id}`)
    await deleteExpiredMessages(app.db, later, shortest)
    await maintainDeliveryMonths(app.db, later, shortest)
    expect(await app.db.query(sql`select id from messages where app_id = ${app.tenant.id}`)).toEqual([])
    expect((await ask(`/e/u/${email.references.unsubscribe}`, 'List-Unsubscribe=One-Click')).status).toBe(200)
    expect(await notificationTypesOf(app, email)).toBe(-2)
  })

  test('does not read endless bodies', async () => {
    const email = await sent()
    expect((await ask(`/e/u/${email.references.unsubscribe}`, 'x'.repeat(9_000))).status).toBe(413)
    expect(await standing(email)).toEqual(SUBSCRIBED)
  })
})

describe('the page', () => {
  test('asks, and unsubscribes nobody by being looked at', async () => {
    const email = await sent()
    for (const method of ['GET', 'HEAD'])
      expect((await fetch(`${app.url}/e/u/${email.references.unsubscribe}`, { method })).status).toBe(200)
    const { text, headers } = await ask(`/e/u/${email.references.unsubscribe}`)
    expect(text).toContain('<form method="post">')
    expect(text).toContain('<html lang="en">')
    expect(text).not.toContain('<script')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await standing(email)).toEqual(SUBSCRIBED)
  })

  test('confirms, and lets it be undone', async () => {
    const email = await sent()
    const done = await ask(`/e/u/${email.references.unsubscribe}`, 'unsubscribe=yes')
    expect(done).toMatchObject({ status: 200, text: expect.stringContaining('name="undo"') })
    expect(await standing(email)).toEqual(UNSUBSCRIBED)
    expect((await ask(`/e/u/${email.references.unsubscribe}`)).text).toContain('You are unsubscribed')
    expect(await ask(`/e/u/${email.references.unsubscribe}`, 'undo=yes')).toMatchObject({
      status: 200,
      text: expect.stringContaining('You are subscribed'),
    })
    expect(await notificationTypesOf(app, email)).toBe(1)
  })

  test('does not subscribe whom the app has switched off', async () => {
    const email = await sent({ subscription: { enabled: false } })
    await ask(`/e/u/${email.references.unsubscribe}`, 'undo=yes')
    expect(await notificationTypesOf(app, email)).toBe(-31)
  })

  test('says from whom to whom, and never that there will be email where there will be none', async () => {
    const email = await sent()
    const [{ name } = { name: '' }] = await app.db.query<{ name: string }>(
      sql`select name from apps where id = ${app.tenant.id}`,
    )
    expect((await ask(`/e/u/${email.references.unsubscribe}`)).text).toContain(
      `email from <strong>${escaped(name)}</strong> to <strong>${email.address}</strong>`,
    )
    await suppressAddresses(
      app.db,
      app.tenant.id,
      [{ address: email.address.toLowerCase(), reason: 'complaint' }],
      clock.now(),
    )
    expect((await ask(`/e/u/${email.references.unsubscribe}`)).text).toContain('You are unsubscribed')
    expect((await ask(`/e/u/${email.references.unsubscribe}`, 'undo=yes')).text).toContain('cannot be changed here')
    expect((await ask(`/e/p/${email.references.preferences}`)).text).toContain('value="unsubscribed" checked')
    const saved = await ask(`/e/p/${email.references.preferences}`, 'email=subscribed')
    expect(saved.text).toContain('cannot be changed here')
    expect(saved.text).not.toContain('Your choice is saved')
  })

  test('escapes the address', async () => {
    const email = await sent({ address: "o'brien&b@example.com" })
    const { text } = await ask(`/e/u/${email.references.unsubscribe}`)
    expect(text).toContain('o&#39;brien&amp;b@example.com')
    expect(text).not.toContain("o'brien&b")
  })
})

describe('preferences', () => {
  test('are shown and set by a form that needs no script', async () => {
    const email = await sent()
    const path = `/e/p/${email.references.preferences}`
    expect((await ask(path)).text).toContain('value="subscribed" checked')
    const saved = await ask(path, 'email=unsubscribed')
    expect(saved.text).toContain('value="unsubscribed" checked')
    expect(saved.text).toContain('role="status"')
    expect(await standing(email)).toEqual(UNSUBSCRIBED)
    expect((await ask(path, 'email=subscribed')).text).toContain('value="subscribed" checked')
    expect(await notificationTypesOf(app, email)).toBe(1)
  })

  test('are not changed by what is no choice', async () => {
    const email = await sent()
    for (const body of ['', 'email=', 'email=everything', 'x'])
      expect((await ask(`/e/p/${email.references.preferences}`, body)).status).toBe(400)
    expect((await ask(`/e/p/${old('preferences')}`, 'email=unsubscribed')).status).toBe(410)
    expect((await ask('/e/p/x', 'email=unsubscribed')).status).toBe(404)
    expect((await ask(`/e/p/${old('preferences')}`)).status).toBe(410)
    expect(await standing(email)).toEqual(SUBSCRIBED)
  })
})

describe('with a token', () => {
  const REFUSED = { status: 400, body: { errors: ['token is not one of this message'] } }
  const unsubscribe = async (messageId: string, token: string, appId = app.tenant.id) => {
    const path = `/apps/${appId}/notifications/${messageId}/unsubscribe?token=${encodeURIComponent(token)}`
    const { status, text } = await ask(path, '')
    return { status, body: JSON.parse(text) }
  }

  test('the app unsubscribes who got a message', async () => {
    const email = await sent()
    const done = { status: 202, body: { success: true } }
    expect(await unsubscribe(email.message.id, email.references.unsubscribe)).toEqual(done)
    expect(await unsubscribe(email.message.id.toUpperCase(), email.references.unsubscribe)).toEqual(done)
    expect(await standing(email)).toEqual(UNSUBSCRIBED)
  })

  test('of another message, of another app, or of nobody, nothing happens', async () => {
    const [email, other] = [await sent(), await sent()]
    const stranger = await app.anotherTenant()
    const foreign = writeReference(
      {
        appId: stranger.id,
        expandAt: clock.now(),
        messageId: email.message.id,
        subscriptionId: email.subscriptionId,
        runId: newId(),
      },
      'unsubscribe',
    )
    expect(await unsubscribe(other.message.id, email.references.unsubscribe)).toEqual(REFUSED)
    expect(await unsubscribe(email.message.id, email.references.unsubscribe, stranger.id)).toEqual(REFUSED)
    expect(await unsubscribe(email.message.id, foreign)).toEqual(REFUSED)
    expect(await unsubscribe('x', email.references.unsubscribe)).toEqual(REFUSED)
    expect(await unsubscribe(email.message.id, email.references.unsubscribe, 'x')).toEqual(REFUSED)
    for (const token of ['', 'x', old(), email.references.unsubscribe.slice(1), '\u{1f514}'])
      expect((await unsubscribe(email.message.id, token)).status).toBe(400)
    const missing = await ask(`/apps/${app.tenant.id}/notifications/${email.message.id}/unsubscribe`, '')
    expect(missing.status).toBe(400)
    for (const it of [email, other]) expect(await standing(it)).toEqual(SUBSCRIBED)
  })
})
