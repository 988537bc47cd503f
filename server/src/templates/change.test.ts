import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { anEmailTemplate, anSms, aPush, refused, TEMPLATE_NOT_FOUND, templatesOf } from '../../test/templates.ts'
import { aName, anId, NOBODY, told } from '../../test/users.ts'
import { SYSTEM } from '../apps/app.ts'
import { createApp } from '../apps/create.ts'
import { virtualClock } from '../lib/clock.ts'
import { sql } from '../storage/sql.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let app: TestApp
let templates: ReturnType<typeof templatesOf>
beforeAll(async () => {
  app = await testApp({ clock })
  templates = templatesOf(app)
})
afterAll(() => app.close())

const make = async (fields: Record<string, unknown> = aPush()): Promise<string> => {
  const answer = await templates.create(fields)
  expect(answer).toMatchObject({ status: 200 })
  return answer.body.id
}

const audited = (id: string, appId = app.tenant.id) =>
  app.db.query<{ action: string; actorKind: string; actorIp: string; detail: object }>(sql`
    select action, actor_kind, actor_ip, detail from audit_log
    where app_id = ${appId} and target_id = ${id}
    order by at, action`)

describe('create template', () => {
  test('answers 200 with the whole template; what is answered is what is stored', async () => {
    const name = aName()
    const answer = await templates.create(
      aPush({ name, headings: { en: 'Hi', 'zh-Hant': '你好' }, url: 'https://example.com', ttl: 60, isIos: true }),
    )
    expect(answer).toMatchObject({
      status: 200,
      body: {
        id: anId(),
        name,
        created_at: clock.now().toISOString(),
        updated_at: clock.now().toISOString(),
        channel: 'push',
        content: {
          contents: { en: 'Hello' },
          headings: { en: 'Hi', 'zh-Hant': '你好' },
          subtitle: null,
          url: 'https://example.com',
          ttl: 60,
          isIos: true,
          isAndroid: false,
          isEmail: false,
          isSMS: false,
          email_body: null,
        },
      },
    })
    expect(told(await templates.view(answer.body.id))).toEqual(told(answer))
  })

  test('isEmail makes an email, isSMS a text message, neither a push to all platforms', async () => {
    const push = (await templates.create(aPush())).body
    expect(push).toMatchObject({ channel: 'push', content: { isAndroid: true, isIos: true, isEdge: true } })
    const email = (await templates.create(anEmailTemplate())).body
    expect(email).toMatchObject({ channel: 'email', content: { isEmail: true, isAndroid: false, isSMS: false } })
    expect((await templates.create(anSms())).body).toMatchObject({
      channel: 'sms',
      content: { isSMS: true, isIos: false },
    })
    expect((await templates.create(aPush({ isSms: true }))).body).toMatchObject({
      channel: 'sms',
      content: { isSMS: true },
    })
  })

  test('fields of the service and unknown fields are not taken; null is as good as left out', async () => {
    const { body } = await templates.create(
      aPush({ id: NOBODY, channel: 'email', created_at: 'x', colour: 'red', subtitle: null, email_bcc: null }),
    )
    expect(body.id).not.toBe(NOBODY)
    expect(body.channel).toBe('push')
    expect(body.content).not.toHaveProperty('colour')
  })

  test.each([
    [{ name: '' }, 'name must not be empty'],
    [{ name: ' ' }, 'name must not be empty'],
    [{ name: 'x'.repeat(129) }, 'name must have at most 128 characters'],
    [{ name: 5 }, 'name must be a string'],
  ])('%j is refused', async (fields, expected) => {
    expect(told(await templates.create(aPush(fields)))).toEqual(refused(expected))
  })

  test('a name of 128 characters beyond the basic plane is taken', async () => {
    const name = '🔔'.repeat(128)
    expect((await templates.create(aPush({ name }))).body.name).toBe(name)
  })

  test('what is refused leaves nothing behind', async () => {
    const before = (await templates.list()).body.total_count
    expect((await templates.create(aPush({ contents: { en: '{{ x' } }))).status).toBe(400)
    expect((await templates.list()).body.total_count).toBe(before)
  })
})

describe('view template', () => {
  test('one that is not there, or of another app, is a 404; a malformed id is a 400', async () => {
    expect(told(await templates.view(NOBODY))).toEqual(TEMPLATE_NOT_FOUND)
    expect(told(await templates.view('x'))).toEqual(refused('template_id must be a UUID'))
    const id = await make()
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    expect(told(await app.request(`/templates/${id}?app_id=${other.id}`, { headers }))).toEqual(TEMPLATE_NOT_FOUND)
    expect((await templates.view(id.toUpperCase())).body.id).toBe(id)
  })
})

describe('update template', () => {
  test('given fields replace, null takes away, the rest stays; updated_at moves', async () => {
    const id = await make(aPush({ headings: { en: 'Old' }, subtitle: { en: 'Sub' }, ttl: 5 }))
    const before = (await templates.view(id)).body
    clock.advance({ seconds: 1 })
    const name = aName()
    const answer = await templates.update(id, { name, headings: { en: 'New', de: 'Neu' }, subtitle: null })
    expect(told(answer)).toEqual({
      status: 200,
      body: {
        ...before,
        name,
        updated_at: clock.now().toISOString(),
        content: { ...before.content, headings: { en: 'New', de: 'Neu' }, subtitle: null },
      },
    })
    expect(told(await templates.view(id))).toEqual(told(answer))
  })

  test('the result is checked as a whole, and a refused update changes nothing', async () => {
    const id = await make()
    const before = told(await templates.view(id))
    for (const body of [
      { isEmail: true },
      { contents: null },
      { url: 'javascript:alert(1)' },
      { contents: { en: '{% if %}' } },
    ])
      expect((await templates.update(id, body)).status).toBe(400)
    expect(told(await templates.view(id))).toEqual(before)
  })

  test('can make another channel of it', async () => {
    const id = await make()
    const { body } = await templates.update(id, { isEmail: true, email_subject: 'Hi', email_body: '<p>x</p>' })
    expect(body).toMatchObject({ channel: 'email', content: { isEmail: true, isIos: false } })
  })

  test('changes that come at the same time are all kept', async () => {
    const id = await make(aPush({ data: {} }))
    const fields = ['ios_sound', 'thread_id', 'android_group', 'collapse_id', 'adm_sound', 'summary_arg']
    // More than the attempts that a change has against changes of other servers.
    const changes = Array.from({ length: 4 }, () => fields).flat()
    const answers = await Promise.all(changes.map((field) => templates.update(id, { [field]: field })))
    expect(answers.map(({ status }) => status)).toEqual(changes.map(() => 200))
    const { content } = (await templates.view(id)).body
    for (const field of fields) expect(content[field]).toBe(field)
  })

  test('of nothing is a 404', async () => {
    expect(told(await templates.update(NOBODY, { name: 'x' }))).toEqual(TEMPLATE_NOT_FOUND)
    expect(told(await templates.update('x', { name: 'x' }))).toEqual(refused('template_id must be a UUID'))
  })
})

describe('delete template', () => {
  test('answers success; then it is gone, and a second time is a 404', async () => {
    const id = await make()
    expect(told(await templates.remove(id))).toEqual({ status: 200, body: { success: true } })
    expect(told(await templates.view(id))).toEqual(TEMPLATE_NOT_FOUND)
    expect(told(await templates.remove(id))).toEqual(TEMPLATE_NOT_FOUND)
  })

  test('many at once: one of them deletes', async () => {
    const id = await make()
    const answers = await Promise.all(Array.from({ length: 6 }, () => templates.remove(id)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404, 404])
    expect((await audited(id)).map(({ action }) => action)).toEqual(['template.create', 'template.delete'])
  })
})

describe('copy to another app', () => {
  const aSibling = () => createApp({ db: app.db, clock }, app.tenant.organizationId, { name: 'Sibling' }, SYSTEM)

  test('answers the copy, which is a template of the other app', async () => {
    const id = await make(anEmailTemplate({ dynamic_content: '{"a":{"b":"c"}}' }))
    const original = (await templates.view(id)).body
    const target = await aSibling()
    const answer = await templates.copy(id, target.toUpperCase())
    expect(answer).toMatchObject({
      status: 200,
      body: { name: original.name, channel: 'email', content: original.content },
    })
    expect(answer.body.id).not.toBe(id)
    const [row] = await app.db.query<{ appId: string }>(sql`
      select app_id from templates where app_id = ${target} and id = ${answer.body.id}`)
    expect(row?.appId).toBe(target)
    expect(await audited(answer.body.id, target)).toEqual([
      {
        action: 'template.copy',
        actorKind: 'organization',
        actorIp: '127.0.0.1',
        detail: { name: original.name, from_app_id: app.tenant.id, from_template_id: id },
      },
    ])
  })

  test('needs an organization key, and two apps of its organization', async () => {
    const id = await make()
    const target = await aSibling()
    const stranger = await app.anotherTenant()
    expect((await templates.copy(id, target, app.tenant.key)).status).toBe(403)
    expect(told(await templates.copy(id, target, stranger.organizationKey))).toEqual({
      status: 404,
      body: { errors: ['App not found'] },
    })
    for (const elsewhere of [stranger.id, NOBODY])
      expect(told(await templates.copy(id, elsewhere))).toEqual({ status: 404, body: { errors: ['App not found'] } })
    expect(told(await templates.copy(NOBODY, target))).toEqual(TEMPLATE_NOT_FOUND)
    expect(told(await templates.copy(id, 'x'))).toEqual(refused('target_app_id must be a UUID'))
    const rows = await app.db.query(sql`select id from templates where app_id = ${stranger.id}`)
    expect(rows).toEqual([])
  })
})

test('every change leaves a line in the audit log, with who did it', async () => {
  const id = await make(aPush({ name: 'Audited' }))
  clock.advance({ ms: 1 })
  await templates.update(id, { name: 'Renamed', headings: { en: 'x' }, url: null })
  clock.advance({ ms: 1 })
  await templates.remove(id)
  const who = { actorKind: 'key', actorIp: '127.0.0.1' }
  expect(await audited(id)).toEqual([
    { action: 'template.create', ...who, detail: { name: 'Audited' } },
    { action: 'template.update', ...who, detail: { name: 'Renamed', fields: ['headings', 'url', 'name'] } },
    { action: 'template.delete', ...who, detail: { name: 'Renamed' } },
  ])
})
