// Bodies that no client would send: each is taken or refused with a reason, and none is an error of the server's.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CreateMessageBody } from '../src/messages/schema.ts'
import { type TestApp, testApp } from './app.ts'
import { aPushUser, messagesOf, saying } from './messages.ts'

let app: TestApp
let messages: ReturnType<typeof messagesOf>
let ids: string[]
beforeAll(async () => {
  app = await testApp()
  messages = messagesOf(app)
  ids = (await aPushUser(app)).subscriptionIds
})
afterAll(() => app.close())

const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) })

const VALUES: unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  9_007_199_254_740_992,
  '',
  ' ',
  'x',
  '\u202e',
  '0',
  '-1',
  '2030-01-01',
  'x'.repeat(5_000),
  '😀'.repeat(200),
  '{{',
  '{% if %}',
  '{{ user.tags }}',
  'javascript:alert(1)',
  'https://',
  "'; drop table messages; --",
  '00000000-0000-0000-0000-000000000000',
  [],
  [null],
  [[]],
  [''],
  ['x'],
  [1],
  [{}],
  [{ operator: 'OR' }],
  [{ field: 'tag' }],
  ['00000000-0000-0000-0000-000000000000'],
  {},
  { en: 1 },
  { en: null },
  { en: '' },
  { en: 'x', xx: 'y' },
  { '': '' },
  { '': [''] },
  { external_id: 'x' },
  { external_id: [null] },
  { onesignal_id: ['x'] },
  { constructor: ['x'], toString: ['y'] },
  deep(20),
]

const FIELDS = Object.keys(CreateMessageBody.properties).filter((name) => name !== 'app_id')

describe('every field with every kind of value', () => {
  test.each(FIELDS)('%s', { timeout: 60_000 }, async (field) => {
    // Where the field names recipients, it does so alone.
    const target = /^include|^email_to|^filters/.test(field) ? {} : { include_subscription_ids: ids }
    const answers = await Promise.all(
      VALUES.map(async (value) => ({ value, answer: await messages.send({ ...saying(target), [field]: value }) })),
    )
    for (const { value, answer } of answers) {
      const shown = `${field}: ${JSON.stringify(value)?.slice(0, 80)}: ${answer.status} ${JSON.stringify(answer.body)}`
      expect([200, 400], shown).toContain(answer.status)
      if (answer.status === 400) {
        expect(answer.body.errors.length, shown).toBeGreaterThan(0)
        for (const error of answer.body.errors) expect(typeof error, shown).toBe('string')
      } else expect(typeof answer.body.id, shown).toBe('string')
    }
  })
})

describe('bodies', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', '{'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a text', '"x"'],
    ['a number', '1'],
    ['half a pair', '{"app_id":"APP","contents":{"en":"\\ud800"},"included_segments":["Subscribed Users"]}'],
    ['U+0000', '{"app_id":"APP","contents":{"en":"a\\u0000"},"included_segments":["Subscribed Users"]}'],
    ['U+0000 in a name', '{"app_id":"APP","contents":{"en":"a"},"data":{"\\u0000":1},"included_segments":["x"]}'],
    ['__proto__', '{"app_id":"APP","contents":{"en":"a"},"data":{"__proto__":1},"included_segments":["x"]}'],
    ['an app that is no text', '{"app_id":{},"contents":{"en":"a"}}'],
    ['nested without end', `{"app_id":"APP","data":${'['.repeat(5_000)}${']'.repeat(5_000)}}`],
  ])('%s', async (_, raw) => {
    const answer = await app.request('/notifications', { raw: raw.replace('APP', app.tenant.id) })
    expect(answer.status).toBe(400)
    expect(answer.body.errors.length).toBeGreaterThan(0)
  })

  test('of 5 MB are read, and larger ones are not', async () => {
    const body = (bytes: number) => {
      const given = { app_id: app.tenant.id, ...saying({ include_subscription_ids: ids }), unknown: '' }
      given.unknown = 'x'.repeat(bytes - JSON.stringify(given).length)
      return JSON.stringify(given)
    }
    expect((await app.request('/notifications', { raw: body(5 * 1_048_576) })).status).toBe(200)
    expect((await app.request('/notifications', { raw: body(5 * 1_048_576 + 1) })).status).toBe(413)
  })
})

test('queries of lists and views', async () => {
  const given = ['%00', '%ff', '[]', '1e9', '-', '9'.repeat(400), "'", '%F0%9F%98%80', 'null']
  for (const name of ['limit', 'offset', 'kind', 'template_id', 'time_offset'])
    for (const value of given) {
      const answer = await messages.list(`&${name}=${value}`)
      expect([200, 400], `${name}=${value}`).toContain(answer.status)
    }
  for (const id of given) {
    expect([400, 404], id).toContain((await messages.view(id)).status)
    expect([400, 404], id).toContain((await messages.cancel(id)).status)
  }
})
