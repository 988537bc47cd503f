import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import { type FakeSender, runEngine, setStage, tally } from '../../../test/engine.ts'
import { anEmailTemplate } from '../../../test/templates.ts'
import { anEmail } from '../../../test/users.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Engine } from '../engine/types.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let headers: Record<string, string>

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
  headers = { authorization: `Key ${stage.tenant.key}` }
})

const LOOPS = ['a', 'b', 'c', 'd', 'e']
/** Would take hours: the renderer ends it at its limit, however fast the machine is. */
const ENDLESS =
  `{% assign list = "${'1,'.repeat(100)}" | split: "," %}` +
  LOOPS.map((name) => `{% for ${name} in list %}`).join('') +
  '{% endfor %}'.repeat(LOOPS.length)

const post = (fields: object) => app.request('/notifications', { body: { app_id: appId, ...fields }, headers })
const view = async (id: string) => (await app.request(`/templates/${id}?app_id=${appId}`, { headers })).body
const update = async (id: string, body: object) =>
  (await app.request(`/templates/${id}?app_id=${appId}`, { method: 'PATCH', body, headers })).body
const resume = (id: string) => app.request(`/templates/${id}/resume?app_id=${appId}`, { method: 'POST', headers })
const notices = async () => (await app.request(`/apps/${appId}/notices`, { headers })).body.notices
const addresses = (count: number) => Array.from({ length: count }, () => anEmail())

async function aTemplate(body: string): Promise<string> {
  const fields = anEmailTemplate({ app_id: appId, email_body: body })
  const answer = await app.request('/templates', { body: fields, headers })
  expect(answer.status).toBe(200)
  return answer.body.id
}

/** What became of a message of this template to so many. */
async function send(templateId: string, count = 1): Promise<Record<string, number>> {
  const answer = await post({ template_id: templateId, email_to: addresses(count) })
  expect([answer.status, answer.body.errors]).toEqual([200, undefined])
  await runEngine(engine)
  return tally(app.db, appId, answer.body.id)
}

/** Direct messages to one person each: the fifth in a row suspends. */
async function suspend(templateId: string) {
  const told = []
  for (let n = 0; n < 5; n++) told.push(await send(templateId))
  expect(told).toEqual([...Array(4).fill({ 'failed render_failed': 1 }), { 'failed template_suspended': 1 }])
}

test('a template that hits its limit five times in a row is suspended, and the administrators are told once', async () => {
  const slow = await aTemplate(ENDLESS)
  const fine = await aTemplate('<p>Hello {{ subscription.email }}</p>')
  // Accepted before, sent after.
  const before = await post({
    template_id: slow,
    email_to: addresses(7),
    send_after: new Date(clock.now().getTime() + 60_000).toISOString(),
  })
  await suspend(slow)
  const since = clock.now()
  const until = new Date(since.getTime() + 86_400_000).toISOString()

  clock.advance({ minutes: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, before.body.id)).toEqual({ 'failed template_suspended': 7 })
  expect(await send(fine)).toEqual({ sent: 1 })
  expect(await post({ template_id: slow, email_to: addresses(1) })).toMatchObject({
    status: 400,
    body: { errors: [expect.stringContaining(`suspended until ${until}`)] },
  })
  expect((await view(slow)).suspended).toEqual({ since: since.toISOString(), until })
  expect(await view(fine)).not.toHaveProperty('suspended')
  expect(await notices()).toMatchObject([{ kind: 'template.suspended', detail: { template_id: slow, until } }])
  expect(sender.calls).toHaveLength(1)
})

test('those of one message who come after the fifth are not tried', async () => {
  const slow = await aTemplate(ENDLESS)
  const told = await send(slow, 60)
  expect(Object.keys(told).sort()).toEqual(['failed render_failed', 'failed template_suspended'])
  expect(Object.values(told).reduce((sum, count) => sum + count, 0)).toBe(60)
  expect(await notices()).toHaveLength(1)
})

test('changing the content lifts the suspension; a new name does not, and the old content is suspended still', async () => {
  const slow = await aTemplate(ENDLESS)
  await suspend(slow)
  expect(await update(slow, { name: 'Another name' })).toHaveProperty('suspended')
  expect(await update(slow, { email_body: '<p>Hello {{ subscription.email }}</p>' })).not.toHaveProperty('suspended')
  expect(await send(slow)).toEqual({ sent: 1 })
  expect(await update(slow, { email_body: ENDLESS })).toHaveProperty('suspended')
})

test('resuming lifts it, and five more hits suspend it again with another notice', async () => {
  const slow = await aTemplate(ENDLESS)
  await suspend(slow)
  const answer = await resume(slow)
  expect(answer.status).toBe(200)
  expect(answer.body).not.toHaveProperty('suspended')
  expect(await view(slow)).not.toHaveProperty('suspended')
  await suspend(slow)
  expect(await notices()).toHaveLength(2)
})

test('it ends by itself after a day', async () => {
  const slow = await aTemplate(ENDLESS)
  await suspend(slow)
  clock.advance({ days: 1 })
  expect(await view(slow)).not.toHaveProperty('suspended')
  expect(await send(slow)).toEqual({ 'failed render_failed': 1 })
})

test('one recipient for whom it was rendered begins the count anew', async () => {
  const template = await aTemplate(`{% if message.custom_data.slow %}${ENDLESS}{% endif %}<p>Hello</p>`)
  const to = async (slow: boolean) => {
    const answer = await post({ template_id: template, email_to: addresses(1), custom_data: { slow } })
    await runEngine(engine)
    return Object.keys(await tally(app.db, appId, answer.body.id))[0]
  }
  const told = []
  for (const slow of [true, true, true, true, false, true]) told.push(await to(slow))
  expect(told).toEqual([...Array(4).fill('failed render_failed'), 'sent', 'failed render_failed'])
  expect(await notices()).toEqual([])
})

test('another app with the same content is not concerned', async () => {
  const slow = await aTemplate(ENDLESS)
  await suspend(slow)
  const other = await app.anotherTenant()
  const authorized = { authorization: `Key ${other.key}` }
  const body = { app_id: other.id, ...anEmailTemplate({ email_body: ENDLESS }) }
  const template = (await app.request('/templates', { body, headers: authorized })).body.id
  const asked = { app_id: other.id, template_id: template, email_to: addresses(1) }
  expect((await app.request('/notifications', { body: asked, headers: authorized })).status).toBe(200)
})
