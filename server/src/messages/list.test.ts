import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { counted, messagesOf, refused, saying } from '../../test/messages.ts'
import { aPush, templatesOf } from '../../test/templates.ts'
import { NOBODY, told } from '../../test/users.ts'
import { type VirtualClock, virtualClock } from '../lib/clock.ts'

let clock: VirtualClock
let app: TestApp
let messages: ReturnType<typeof messagesOf>
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00.000Z')
  app = await testApp({ clock })
  messages = messagesOf(app)
})
afterAll(() => app.close())

const everybody = saying({ included_segments: ['Subscribed Users'] })

/** An app of its own, so that pages are exact. */
async function anApp() {
  const tenant = await app.anotherTenant()
  const headers = { authorization: `Key ${tenant.key}` }
  const ask = (query: string) => app.request(`/notifications?app_id=${tenant.id}${query}`, { headers })
  return {
    ask,
    async page(query = '') {
      const answer = await ask(query)
      expect(answer.status).toBe(200)
      const { notifications, ...rest } = answer.body
      return { ...rest, ids: notifications.map(({ id }: { id: string }) => id) }
    },
    async make(fields: Record<string, unknown> = {}): Promise<string> {
      const answer = await app.request('/notifications', {
        headers,
        body: { app_id: tenant.id, ...everybody, ...fields },
      })
      clock.advance({ seconds: 1 })
      return answer.body.id
    },
    set: (id: string, change: string) =>
      app.db.query({ text: `update messages set ${change} where id = $1`, values: [id] }),
    template: async () =>
      (await app.request('/templates', { headers, body: { app_id: tenant.id, ...aPush() } })).body.id as string,
  }
}

describe('view messages', () => {
  test('answers them newest first, as each is viewed', async () => {
    const id = await messages.sent(everybody)
    await counted(app, id, [{ state: 'sent', count: 3 }])
    clock.advance({ seconds: 1 })
    const newer = await messages.sent(everybody)
    const { body } = await messages.list()
    expect(body).toMatchObject({ total_count: 2, offset: 0, limit: 50 })
    expect(body.notifications).toEqual([(await messages.view(newer)).body, (await messages.view(id)).body])
    expect(body.notifications[1]).toMatchObject({ id, successful: 3 })
    expect(body).not.toHaveProperty('next_time_offset')
  })

  test('pages by limit and offset until all are read, each once', async () => {
    const { make, page } = await anApp()
    const ids: string[] = []
    for (let n = 0; n < 7; n++) ids.unshift(await make())
    expect(await page('&limit=3')).toEqual({ total_count: 7, offset: 0, limit: 3, ids: ids.slice(0, 3) })
    expect(await page('&limit=3&offset=3')).toMatchObject({ ids: ids.slice(3, 6) })
    expect(await page('&limit=3&offset=6')).toMatchObject({ ids: ids.slice(6) })
    expect(await page('&offset=7')).toMatchObject({ total_count: 7, ids: [] })
  })

  test('an app without messages has an empty page', async () => {
    const { page } = await anApp()
    expect(await page()).toEqual({ total_count: 0, offset: 0, limit: 50, ids: [] })
  })

  test('by kind and by template, counted within them; those of journeys are not listed', async () => {
    const { make, page, set, template } = await anApp()
    const ofApi = await make()
    const ofDashboard = await make()
    const automated = await make()
    await set(ofDashboard, 'kind = 0')
    await set(automated, 'kind = 3')
    const hidden = await make()
    await set(hidden, 'is_listed = false')
    const template_id = await template()
    const templated = await make({ contents: null, template_id })
    expect(await page()).toMatchObject({ total_count: 4, ids: [templated, automated, ofDashboard, ofApi] })
    expect(await page('&kind=0')).toMatchObject({ total_count: 1, ids: [ofDashboard] })
    expect(await page('&kind=1')).toMatchObject({ total_count: 2, ids: [templated, ofApi] })
    expect(await page('&kind=3')).toMatchObject({ total_count: 1, ids: [automated] })
    expect(await page(`&template_id=${template_id.toUpperCase()}`)).toMatchObject({ total_count: 1, ids: [templated] })
    expect(await page(`&template_id=${NOBODY}`)).toMatchObject({ total_count: 0, ids: [] })
  })

  test('does not repeat the names of thousands of recipients', async () => {
    const tenant = messagesOf(app)
    const { body } = await app.app('/users', { body: { subscriptions: [{ type: 'AndroidPush', token: 'listed' }] } })
    const ids = [
      body.subscriptions[0].id,
      ...Array.from({ length: 100 }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`),
    ]
    const many = await tenant.sent(saying({ include_subscription_ids: ids }))
    clock.advance({ seconds: 1 })
    const few = await tenant.sent(saying({ include_subscription_ids: ids.slice(0, 2) }))
    const { notifications } = (await tenant.list()).body
    expect(notifications[0]).toMatchObject({ id: few, include_subscription_ids: ids.slice(0, 2) })
    expect(notifications[1]).toMatchObject({ id: many, include_subscription_ids: null })
    expect((await tenant.view(many)).body.include_subscription_ids).toEqual(ids)
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=51', 'limit'],
    ['limit=x', 'limit'],
    ['limit=1.5', 'limit'],
    ['offset=-1', 'offset'],
    ['offset=2147483648', 'offset'],
    ['kind=2', 'kind'],
    ['kind=x', 'kind'],
  ])('%s is refused', async (query, field) => {
    const answer = await messages.list(`&${query}`)
    expect(answer.status).toBe(400)
    for (const error of answer.body.errors) expect(error).toContain(field)
  })

  test.each(['limit=1', 'limit=50', 'offset=0', 'offset=2147483647', 'kind=0'])('%s is taken', async (query) => {
    expect((await messages.list(`&${query}`)).status).toBe(200)
  })

  test('a template_id that is none is refused', async () => {
    expect(told(await messages.list('&template_id=x'))).toEqual(refused('template_id must be a UUID'))
  })
})

describe('time_offset', () => {
  test('leads through all messages in the order of their time, from a moment on that is left out', async () => {
    const { make, page } = await anApp()
    const at = (day: number) => `2031-01-0${day}T00:00:00.000Z`
    const third = await make({ send_after: at(3) })
    const first = await make({ send_after: at(1) })
    const second = await make({ send_after: at(2) })
    // At the same moment, in the order of their ids.
    const [fourth, fifth] = [await make({ send_after: at(4) }), await make({ send_after: at(4) })].sort()
    expect(await page(`&time_offset=${at(1)}`)).toMatchObject({
      total_count: 5,
      offset: 0,
      time_offset: at(1),
      ids: [second, third, fourth, fifth],
    })
    const pages: string[][] = []
    let next = '2030-12-31T00:00:00Z'
    do {
      const { ids, next_time_offset } = await page(`&limit=2&time_offset=${encodeURIComponent(next)}`)
      pages.push(ids)
      next = next_time_offset
    } while (pages.at(-1)?.length)
    expect(pages).toEqual([[first, second], [third, fourth], [fifth], []])
    // The last place leads to whatever comes later.
    const later = await make({ send_after: at(5) })
    expect(await page(`&time_offset=${encodeURIComponent(next)}`)).toMatchObject({ ids: [later] })
  })

  test('takes the cursor of the published documentation: a moment and an id, in Base64', async () => {
    const { make, page } = await anApp()
    const id = await make({ send_after: '2031-01-01T00:00:00.123Z' })
    const cursor = (time: string, it: string) => encodeURIComponent(Buffer.from(`${time}#${it}`).toString('base64'))
    expect(await page(`&time_offset=${cursor('2031-01-01T00:00:00.123000Z', NOBODY)}`)).toMatchObject({
      ids: [id],
    })
    expect(await page(`&time_offset=${cursor('2031-01-01T00:00:00.123000Z', id)}`)).toMatchObject({ ids: [] })
  })

  test('goes with the filters, not with an offset', async () => {
    const { make, page, ask, set } = await anApp()
    const [one, two] = [await make(), await make()]
    await set(one, 'kind = 3')
    expect(await page('&time_offset=2020-01-01&kind=1')).toMatchObject({ total_count: 1, ids: [two] })
    expect(await page('&time_offset=2020-01-01&offset=0')).toMatchObject({ ids: [one, two] })
    expect(told(await ask('&time_offset=2020-01-01&offset=1'))).toEqual(
      refused('time_offset cannot be combined with offset'),
    )
  })

  test.each(['', 'x', 'soon', 'MjAyNg==', encodeURIComponent(Buffer.from(`2026-01-01#x`).toString('base64')), '%00'])(
    '%j is refused',
    async (given) => {
      const answer = await messages.list(`&time_offset=${given}`)
      expect(answer.status).toBe(400)
      expect(answer.body.errors).toHaveLength(1)
    },
  )
})

test('templates that are gone are still named by their messages', async () => {
  const template = (await templatesOf(app).create(aPush())).body.id
  const id = await messages.sent({ included_segments: ['Subscribed Users'], template_id: template })
  await templatesOf(app).remove(template)
  expect((await messages.view(id)).body.template_id).toBe(template)
})
