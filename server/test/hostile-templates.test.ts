// Templates that mean harm, through the interface: each is refused when it is saved, or rendered, or ended. None of them reads what is
// not its own, and the server answers all the while.

import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from './app.ts'
import { type Hostile, hostileTemplates, MARKER } from './hostile/shapes.ts'
import { anEmailTemplate, templatesOf } from './templates.ts'
import { anEmail, aUser, type MadeUser } from './users.ts'

const file = join(tmpdir(), `carillon-marker-${randomUUID()}`)
let app: TestApp
let templates: ReturnType<typeof templatesOf>
let user: MadeUser
beforeAll(async () => {
  await writeFile(file, MARKER)
  process.env.MARKER = MARKER
  Object.assign(globalThis, { marker: MARKER })
  app = await testApp()
  templates = templatesOf(app)
  user = await aUser(app, {
    properties: { tags: { first_name: 'Ann', attack: 'x\r\nBcc: all@example.com' } },
    subscriptions: [{ type: 'Email', token: anEmail() }],
  })
  await aUser(app, { properties: { tags: { secret: MARKER } } })
})
afterAll(async () => {
  delete process.env.MARKER
  Reflect.deleteProperty(globalThis, 'marker')
  await app.close()
  await rm(file)
})

const whom = () => ({ alias_label: 'external_id', alias_id: user.externalId })
/** Names of files in the shapes stand for the one that holds the secret. */
const aimed = ({ content }: Hostile): Record<string, unknown> =>
  JSON.parse(JSON.stringify(content).replaceAll('"MARKER\\"', `"${file}\\"`))

const kinds = [...new Set(hostileTemplates.map(({ tries }) => tries))]

describe('templates that try', () => {
  test.each(kinds)('%s', { timeout: 180_000 }, async (kind) => {
    for (const hostile of hostileTemplates.filter(({ tries }) => tries === kind)) {
      const shown = JSON.stringify(hostile.content).slice(0, 120)
      const saved = await templates.create({ name: 'Hostile', ...aimed(hostile) })
      expect([200, 400], `${shown}: ${JSON.stringify(saved.body)}`).toContain(saved.status)
      const answers = [saved]
      if (saved.status === 200) {
        const preview = await templates.preview(saved.body.id, whom())
        expect([200, 400], `${shown}: ${JSON.stringify(preview.body).slice(0, 300)}`).toContain(preview.status)
        answers.push(preview)
        const { rendered = {} } = preview.body
        for (const field of ['email_subject', 'email_preheader', 'email_reply_to_address'])
          expect(rendered[field] ?? '', shown).not.toMatch(/[\r\n\u2028\u2029\u0085]/)
        expect(JSON.stringify(rendered), shown).not.toMatch(/function|\[object|root:x:0/)
      }
      // What a template says of itself may come back; the secret was never in it.
      for (const { body } of answers) expect(JSON.stringify(body), shown).not.toContain(MARKER)
    }
    expect((await app.request('/health')).status).toBe(200)
  })

  test('are 300 and more', () => {
    expect(hostileTemplates.length).toBeGreaterThanOrEqual(300)
  })
})

test('the server answers others while a template runs into its deadline', async () => {
  const order: string[] = []
  const email_body = `{% if ${'a and '.repeat(80_000)}a %}{% endif %}`
  const hostile = templates.create(anEmailTemplate({ email_body })).then(({ status }) => {
    order.push('hostile')
    return status
  })
  for (let n = 0; n < 5; n++) {
    expect((await app.request('/health')).status).toBe(200)
    order.push('health')
  }
  expect(await hostile).toBe(400)
  expect(order).toEqual([...Array(5).fill('health'), 'hostile'])
})

test.each([
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '<svg/onload=alert(1)>',
  '</title><script>alert(1)</script>',
  '&lt;script&gt;',
  '<a href="javascript:alert(1)">x</a>',
  '{{ 7 | times: 7 }}{% raw %}',
])('a tag with %j stays text in the body of a mail', async (value) => {
  const victim = await aUser(app, { properties: { tags: { name: value } } })
  const fields = anEmailTemplate({ email_body: '<p title="{{ name }}">{{ name }}</p><i>{{ user.tags.name }}</i>' })
  const answer = await templates.previewUnsaved({ ...fields, alias_label: 'onesignal_id', alias_id: victim.id })
  const html: string = answer.body.rendered.email_body
  expect(html.match(/<[^>]*>/g)).toHaveLength(4)
  expect(html.match(/"/g)).toHaveLength(2)
  expect(answer.body.rendered.email_text).toContain(value)
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
})
