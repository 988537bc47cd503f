import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { type HttpSink, startHttpSink } from '../../../test/sinks/http.ts'
import { anId, NOBODY, problem, told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { certificateFor } from '../../sink/certificate.ts'
import { sql } from '../../storage/sql.ts'

const HOST = 'https://hook.example'
const clock = virtualClock('2030-03-15T09:00:00Z')
let app: TestApp
let sink: HttpSink
let status = 200

beforeAll(async () => {
  const tls = certificateFor('hook.example')
  sink = await startHttpSink(() => ({ status, body: 'thanks' }), { tls })
  const outbound = { route: { ca: tls.cert, connect: { [HOST]: { host: '127.0.0.1', port: sink.port } } } }
  app = await testApp({ clock, providers: { outbound } })
})
afterAll(async () => {
  await app.close()
  await sink.stop()
})

const all = (request: object = {}) => app.app('/journey_webhooks', request)
const one = (id: string, request: object = {}) => app.app(`/journey_webhooks/${id}`, request)
const make = async (fields: object = {}) => {
  const { status, body } = await all({ body: { name: 'Shop', url: `${HOST}/shop`, ...fields } })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body
}
const NOT_FOUND = problem(404, 'journey-webhook-not-found', 'Journey webhook not found')

describe('journey webhooks', () => {
  test('are created with a secret that is shown once, viewed and listed', async () => {
    const { secret, ...made } = await make()
    expect(secret).toMatch(/^whsec_/)
    expect(made).toEqual({
      id: anId(),
      name: 'Shop',
      url: `${HOST}/shop`,
      created_at: clock.now().toISOString(),
      updated_at: clock.now().toISOString(),
    })
    expect(told(await one(made.id.toUpperCase()))).toEqual({ status: 200, body: made })
    expect((await all()).body.journey_webhooks).toContainEqual(made)
    const [row] = await app.db.query<{ secret: string }>(sql`
      select secret from journey_webhooks where app_id = ${app.tenant.id} and id = ${made.id}`)
    expect(row?.secret).not.toContain(secret)
  })

  test('are updated: what is left out stays', async () => {
    const { secret, ...made } = await make()
    clock.advance({ seconds: 1 })
    const { body } = await one(made.id, { method: 'PATCH', body: { name: 'New' } })
    expect(body).toEqual({ ...made, name: 'New', updated_at: clock.now().toISOString() })
    expect((await one(made.id, { method: 'PATCH', body: { url: `${HOST}/new` } })).body).toMatchObject({
      name: 'New',
      url: `${HOST}/new`,
    })
  })

  test('are deleted, once', async () => {
    const { id } = await make()
    expect(told(await one(id, { method: 'DELETE' }))).toEqual({ status: 200, body: { success: true } })
    expect(told(await one(id, { method: 'DELETE' }))).toEqual(NOT_FOUND)
    expect(told(await one(id))).toEqual(NOT_FOUND)
  })

  test.each([NOBODY, 'x'])('%s is a 404', async (id) => {
    expect(told(await one(id))).toEqual(NOT_FOUND)
    expect(told(await one(id, { method: 'PATCH', body: { name: 'x' } }))).toEqual(NOT_FOUND)
    for (const path of ['rotate', 'test'])
      expect(told(await one(`${id}/${path}`, { method: 'POST' }))).toEqual(NOT_FOUND)
  })

  test.each([
    { name: '' },
    { name: ' ' },
    { name: 'x'.repeat(129) },
    { name: 5 },
    { url: 'http://example.com/' },
    { url: 'https://me:secret@example.com/' },
    { url: 'somewhere' },
    { url: `https://example.com/${'x'.repeat(2048)}` },
  ])('%j is refused', async (fields) => {
    const answer = await all({ body: { name: 'Shop', url: HOST, ...fields } })
    expect(answer.status).toBe(400)
    expect(answer.body.errors[0].code).toBe('request-0')
    const { id, secret, ...made } = await make()
    expect((await one(id, { method: 'PATCH', body: fields })).status).toBe(400)
    expect((await one(id)).body).toEqual({ id, ...made })
  })

  test('an app has 100 at most, however many are asked for at once', async () => {
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    const body = { name: 'Shop', url: HOST }
    const ask = () => app.request(`/apps/${other.id}/journey_webhooks`, { headers, body })
    const answers = await Promise.all(Array.from({ length: 105 }, ask))
    expect(answers.filter((it) => it.status === 201)).toHaveLength(100)
    const refused = answers.find((it) => it.status !== 201)
    expect(refused && told(refused)).toEqual(
      problem(409, 'journey-webhook-limit', 'An app can have at most 100 journey webhooks'),
    )
  })

  test('can be tried: a signed request is sent, and what came of it is answered', async () => {
    const { id } = await make()
    sink.received.length = 0
    expect(told(await one(`${id}/test`, { method: 'POST' }))).toEqual({
      status: 200,
      body: { success: true, reason: null },
    })
    const [request] = sink.received
    expect(request?.path).toBe('/shop')
    expect(JSON.parse(String(request?.body))).toMatchObject({ type: 'test', data: { webhook_id: id } })
    status = 500
    expect((await one(`${id}/test`, { method: 'POST' })).body).toEqual({ success: false, reason: 'status 500' })
    status = 200
  })

  test('get a new secret; for a day requests are signed with the old one too', async () => {
    const { id, secret: old } = await make()
    const signatures = async () => {
      sink.received.length = 0
      await one(`${id}/test`, { method: 'POST' })
      const { headers, body } = sink.received[0] as (typeof sink.received)[number]
      const at = new Date(Number(headers['webhook-timestamp']) * 1000)
      const by = (secret: string) => new Webhook(secret).sign(String(headers['webhook-id']), at, String(body))
      return { sent: String(headers['webhook-signature']).split(' '), by }
    }
    const before = await signatures()
    expect(before.sent).toEqual([before.by(old)])
    const { status, body } = await one(`${id}/rotate`, { method: 'POST' })
    expect(status).toBe(200)
    expect(body.secret).not.toBe(old)
    const meanwhile = await signatures()
    expect(meanwhile.sent).toEqual([meanwhile.by(body.secret), meanwhile.by(old)])
    clock.advance({ days: 1 })
    const after = await signatures()
    expect(after.sent).toEqual([after.by(body.secret)])
  })

  test('leave lines in the audit log, without secrets', async () => {
    const { id, secret } = await make()
    clock.advance({ ms: 1 })
    await one(id, { method: 'PATCH', body: { name: 'New' } })
    clock.advance({ ms: 1 })
    await one(`${id}/rotate`, { method: 'POST' })
    clock.advance({ ms: 1 })
    await one(id, { method: 'DELETE' })
    const lines = await app.db.query<{ action: string; detail: object }>(sql`
      select action, detail from audit_log
      where app_id = ${app.tenant.id} and target_type = 'journey_webhook' and target_id = ${id} order by at, id`)
    expect(lines).toEqual([
      { action: 'journey_webhook.create', detail: { name: 'Shop' } },
      { action: 'journey_webhook.update', detail: { name: 'New', fields: ['name'] } },
      { action: 'journey_webhook.rotate', detail: { name: 'New' } },
      { action: 'journey_webhook.delete', detail: { name: 'New' } },
    ])
    expect(JSON.stringify(lines)).not.toContain(secret)
  })
})
