import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { anEmailTemplate, anSms, aPush, refused, templatesOf } from '../../test/templates.ts'
import { aName, anId, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'

const clock = virtualClock('2030-01-01T09:00:00.123Z')
let app: TestApp
let templates: ReturnType<typeof templatesOf>
beforeAll(async () => {
  app = await testApp({ clock })
  templates = templatesOf(app)
})
afterAll(() => app.close())

type Summary = { id: string; name: string }
const ids = (list: Summary[]) => list.map(({ id }) => id)

/** Of an app of its own, so that counts are exact. */
async function anApp() {
  const tenant = await app.anotherTenant()
  const headers = { authorization: `Key ${tenant.key}` }
  return {
    tenant,
    async make(body: object): Promise<string> {
      const answer = await app.request('/templates', { headers, body: { app_id: tenant.id, ...body } })
      expect(answer.status).toBe(200)
      return answer.body.id
    },
    async page(query = '') {
      const answer = await app.request(`/templates?app_id=${tenant.id}${query}`, { headers })
      expect(answer.status).toBe(200)
      return answer.body as { limit: number; offset: number; templates: Summary[]; total_count: number }
    },
  }
}

describe('view templates', () => {
  test('answers limit, offset, total_count and summaries: id, name and ISO 8601 times, and nothing of the content', async () => {
    const { make, page } = await anApp()
    const name = aName()
    const id = await make(aPush({ name }))
    expect(await page()).toEqual({
      limit: 50,
      offset: 0,
      total_count: 1,
      templates: [{ id, name, created_at: '2030-01-01T09:00:00.123Z', updated_at: '2030-01-01T09:00:00.123Z' }],
    })
    expect(id).toEqual(anId())
  })

  test('an app without templates has an empty page', async () => {
    const { page } = await anApp()
    expect(await page()).toEqual({ limit: 50, offset: 0, total_count: 0, templates: [] })
  })

  test('125 templates are read at the offsets 0, 50 and 100, each once; beyond them a page is empty', async () => {
    const { make, page } = await anApp()
    const made: string[] = []
    for (let n = 0; n < 125; n += 25)
      made.push(...(await Promise.all(Array.from({ length: 25 }, (_, i) => make(aPush({ name: `t${n + i}` }))))))
    const pages = [await page(), await page('&offset=50'), await page('&offset=100')]
    expect(pages.map((it) => it.templates.length)).toEqual([50, 50, 25])
    expect(pages.map((it) => [it.limit, it.offset, it.total_count])).toEqual([
      [50, 0, 125],
      [50, 50, 125],
      [50, 100, 125],
    ])
    const seen = pages.flatMap((it) => ids(it.templates))
    expect(new Set(seen)).toEqual(new Set(made))
    expect(seen).toHaveLength(125)
    expect(await page('&offset=125')).toEqual({ limit: 50, offset: 125, total_count: 125, templates: [] })
    // The same moment for all of them: the order is the same every time nevertheless.
    expect(ids((await page('&limit=7&offset=48')).templates)).toEqual(seen.slice(48, 55))
  })

  test('what is made while somebody pages comes last: nothing that was there is lost or seen twice', async () => {
    const { make, page } = await anApp()
    const before: string[] = []
    for (let n = 0; n < 9; n++) {
      clock.advance({ ms: 1 })
      before.push(await make(aPush()))
    }
    const seen: string[] = []
    for (let offset = 0; offset < 12; offset += 3) {
      seen.push(...ids((await page(`&limit=3&offset=${offset}`)).templates))
      clock.advance({ ms: 1 })
      await make(aPush())
    }
    expect(seen.slice(0, 9)).toEqual(before)
    expect(new Set(seen).size).toBe(seen.length)
  })

  test('channel chooses, and total_count counts within it', async () => {
    const { make, page } = await anApp()
    const push = [await make(aPush()), await make(aPush())]
    const email = await make(anEmailTemplate())
    const sms = [await make(anSms()), await make(anSms()), await make(anSms())]
    const of = async (channel: string) => {
      const { templates, total_count } = await page(`&channel=${channel}&limit=2`)
      return [new Set(ids(templates)), total_count] as const
    }
    expect(await of('email')).toEqual([new Set([email]), 1])
    expect(await of('push')).toEqual([new Set(push), 2])
    expect((await of('sms'))[1]).toBe(3)
    const both = [
      ...(await page('&channel=sms&limit=2')).templates,
      ...(await page('&channel=sms&limit=2&offset=2')).templates,
    ]
    expect(new Set(ids(both))).toEqual(new Set(sms))
    expect((await page()).total_count).toBe(6)
  })

  test.each([
    ['&limit=1', 200],
    ['&limit=50&offset=2147483647', 200],
    ['&limit=51', 'limit must be at most 50'],
    ['&limit=0', 'limit must be at least 1'],
    ['&limit=-1', 'limit must be at least 1'],
    ['&limit=ten', 'limit must be an integer'],
    ['&limit=', 'limit must be an integer'],
    ['&limit=1.5', 'limit must be an integer'],
    ['&offset=-1', 'offset must be at least 0'],
    ['&offset=99999999999', 'offset must be at most 2147483647'],
    ['&channel=fax', 'channel must be "push", "email" or "sms"'],
    ['&channel=', 'channel must be "push", "email" or "sms"'],
  ])('%s: %s', async (query, expected) => {
    const answer = await templates.list(query)
    if (expected === 200) expect(answer.status).toBe(200)
    else expect(told(answer)).toEqual(refused(expected))
  })

  test('app_id is required and must be an id; the templates of another app are not seen', async () => {
    const { make, tenant } = await anApp()
    await make(aPush())
    expect(told(await app.request('/templates'))).toEqual(refused('app_id is required'))
    expect(told(await app.request('/templates?app_id=x'))).toEqual(refused('app_id must be a UUID'))
    expect(told(await app.request(`/templates?app_id=${tenant.id}`))).toEqual({
      status: 404,
      body: { errors: ['App not found'] },
    })
    expect((await templates.list()).body.total_count).toBe(0)
  })
})
