import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aCountedApp, type CountedApp } from '../../test/sending.ts'
import { startWebhookSink, WEBHOOK_ORIGIN } from '../../test/sinks/webhook.ts'
import { anEmail, anId, told } from '../../test/users.ts'
import type { ChannelOutcome } from '../channels/channel.ts'
import { openOutbound } from '../channels/outbound.ts'
import { openWebhooks } from '../channels/webhook/webhook.ts'
import { systemClock, virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { createLog } from '../lib/log.ts'
import { secretBox } from '../lib/secrets.ts'
import { createWorker } from '../queue/work.ts'
import { sql } from '../storage/sql.ts'
import { insertAdministrator } from './notice-store.ts'
import { SEND_EMAIL_NOTICE, SEND_WEBHOOK_NOTICE } from './notify-administrators.ts'
import { emailNoticeHandler, type SendNoticeEmail, type SendWebhook, webhookNoticeHandler } from './send-notice.ts'
import { sealedWebhookSecret } from './webhook-secret.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
const secretKey = 'the secret key of the tests'
const secrets = secretBox(secretKey)
let server: TestApp
let app: CountedApp
beforeAll(async () => {
  server = await testApp({ clock, secretKey })
})
afterAll(() => server.close())
beforeEach(async () => {
  clock.advance({ hours: 1 })
  app = await aCountedApp(server, clock, 1)
})

const add = (body: object) => app.asOrganization('/administrators', { body })
const list = async () => (await app.asOrganization('/administrators')).body.administrators
const notices = async (query = '') => (await app.ask(`/notices${query}`)).body

/** Does what is due, with this at the other end. */
function runNotices(sendWebhook: SendWebhook, sendMail: SendNoticeEmail = async () => ({ kind: 'sent' })) {
  const handlers = {
    [SEND_WEBHOOK_NOTICE]: webhookNoticeHandler({ db: server.db, clock, secrets, sendWebhook }),
    [SEND_EMAIL_NOTICE]: emailNoticeHandler({ db: server.db, clock, sendEmail: sendMail }),
  }
  const worker = createWorker({ db: server.db, clock, log: createLog('silent'), handlers })
  return worker.runDue()
}

/** Nobody else's notices are waiting when the next test looks. */
afterEach(() => runNotices(async () => ({ kind: 'sent' })))

describe('administrators', () => {
  test('are added with an email address, a webhook or both, and listed in that order', async () => {
    const email = anEmail()
    const one = await add({ email: email.toUpperCase() })
    expect(told(one)).toEqual({
      status: 201,
      body: { id: anId(), email, webhook_url: null, created_at: clock.now().toISOString(), webhook_secret: null },
    })
    clock.advance({ seconds: 1 })
    const two = await add({ webhook_url: 'https://example.com/notices' })
    expect(two.body).toMatchObject({ email: null, webhook_secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/) })
    const known = [one, two].map(({ body: { webhook_secret: _, ...rest } }) => rest)
    expect(await list()).toEqual(known)
  })

  test('have their secret sealed', async () => {
    const { body } = await add({ webhook_url: 'https://example.com/notices' })
    const [row] = await server.db.query<{ webhookSecret: string }>(
      sql`select webhook_secret from app_administrators where app_id = ${app.id}`,
    )
    expect(row?.webhookSecret).toMatch(/^v1\./)
    expect(sealedWebhookSecret(secrets, app.id, body.id).open(row?.webhookSecret ?? '')).toBe(body.webhook_secret)
    expect(() => sealedWebhookSecret(secrets, app.id, newId()).open(row?.webhookSecret ?? '')).toThrow()
  })

  test('are removed, and then are not there', async () => {
    const { body } = await add({ email: anEmail() })
    const remove = () => app.asOrganization(`/administrators/${body.id}`, { method: 'DELETE' })
    expect(told(await remove())).toEqual({ status: 200, body: { success: true } })
    expect(told(await remove())).toEqual({ status: 404, body: { errors: ['Administrator not found'] } })
    expect(await list()).toEqual([])
  })

  test('are written down in the audit log, without what is secret', async () => {
    const { body } = await add({ email: 'a@example.com', webhook_url: 'https://example.com/secret-path' })
    clock.advance({ seconds: 1 })
    await app.asOrganization(`/administrators/${body.id}`, { method: 'DELETE' })
    const found = await server.db.query(
      sql`select action, target_id, detail from audit_log
        where app_id = ${app.id} and target_type = 'administrator' order by at`,
    )
    expect(found).toEqual([
      { action: 'administrator.add', targetId: body.id, detail: { email: 'a@example.com', webhook: true } },
      { action: 'administrator.remove', targetId: body.id, detail: {} },
    ])
  })

  test.each([
    [{}, 'An administrator needs an email or a webhook_url'],
    [{ email: null, webhook_url: '' }, 'An administrator needs an email or a webhook_url'],
    [{ email: 'nobody' }, 'email must be an email address'],
    [{ email: 7 }, 'email must be a string or null'],
    [{ webhook_url: 'http://example.com' }, 'webhook_url must be an https address, as https://example.com/notices'],
    [
      { webhook_url: 'https://me:pass@example.com' },
      'webhook_url must be an https address, as https://example.com/notices',
    ],
    [{ webhook_url: 'notices' }, 'webhook_url must be an https address, as https://example.com/notices'],
    [{ webhook_url: `https://example.com/${'x'.repeat(2_048)}` }, 'webhook_url must have at most 2048 characters'],
  ])('%j is refused', async (body, error) => {
    expect(told(await add(body))).toEqual({ status: 400, body: { errors: [error] } })
    expect(await list()).toEqual([])
  })

  test('are there once each, also when added many times at once', async () => {
    const email = anEmail()
    const answers = await Promise.all(Array.from({ length: 8 }, () => add({ email })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
  })

  test('are 50 at most, also when added at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 55 }, () => add({ email: anEmail() })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(50)
    expect(answers.find(({ status }) => status === 409)?.body).toEqual({
      errors: ['An app can have at most 50 administrators'],
    })
  })
})

describe('when the app is disabled', () => {
  test('all administrators are notified: a notice each, and one for the app', async () => {
    const [mail, hook] = [await add({ email: anEmail() }), await add({ webhook_url: 'https://example.com/notices' })]
    await app.take(11)
    const { total_count, notices: found } = await notices()
    expect(total_count).toBe(3)
    const common = {
      id: anId(),
      at: clock.now().toISOString(),
      kind: 'sending.disabled',
      detail: { used: 10, limit: 10 },
      settled_at: null,
      reason: null,
    }
    expect(found[0]).toEqual({ ...common, administrator_id: null, state: 'listed', way: null })
    expect(found).toContainEqual({ ...common, administrator_id: mail.body.id, state: 'waiting', way: 'mail' })
    expect(found).toContainEqual({ ...common, administrator_id: hook.body.id, state: 'waiting', way: 'webhook' })
    expect(await notices('?limit=1&offset=1')).toEqual({ limit: 1, offset: 1, total_count: 3, notices: [found[1]] })
    expect((await app.ask('/notices?limit=51')).status).toBe(400)
  })

  test('the webhook gets one signed notice that says which app and how much', async () => {
    const { body } = await add({ webhook_url: 'https://example.com/notices' })
    await app.take(11)
    const sent: Parameters<SendWebhook>[0][] = []
    await runNotices(async (webhook) => {
      sent.push(webhook)
      return { kind: 'sent' }
    })
    const notice = (await notices()).notices.find((it: { state: string }) => it.state !== 'listed')
    expect(notice).toMatchObject({ state: 'sent', settled_at: clock.now().toISOString() })
    expect(sent).toEqual([
      {
        url: 'https://example.com/notices',
        id: `notice_${notice.id}`,
        secrets: [body.webhook_secret],
        body: JSON.stringify({
          type: 'sending.disabled',
          timestamp: clock.now().toISOString(),
          data: { app_id: app.id, used: 10, limit: 10 },
        }),
      },
    ])
  })

  test('a receiver verifies it with the secret that was shown', async () => {
    const id = newId()
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const sink = await startWebhookSink(secret)
    const outbound = openOutbound({ route: sink.route })
    // The receiver believes no signature that is older than some minutes.
    const webhooks = openWebhooks({ outbound, clock: systemClock() })
    try {
      const webhookSecret = sealedWebhookSecret(secrets, app.id, id).seal(secret)
      const place = { email: null, webhookUrl: `${WEBHOOK_ORIGIN}/notices`, webhookSecret }
      await insertAdministrator(server.db, app.id, { id, ...place, createdAt: clock.now() })
      await app.take(11)
      await runNotices(async (webhook) => (await webhooks.send([webhook]))[0] as ChannelOutcome)
      expect(sink.accepted.map(({ body }) => body)).toMatchObject([{ data: { app_id: app.id } }])
    } finally {
      await webhooks.close()
      await outbound.close()
      await sink.close()
    }
  })

  test('a webhook that does not take it is tried again with the same id; one that refuses it is not', async () => {
    await add({ webhook_url: 'https://example.com/slow' })
    await app.take(11)
    const ids: string[] = []
    const answers: ChannelOutcome[] = [
      { kind: 'retry', reason: 'status 503' },
      { kind: 'unknown', reason: 'timeout' },
      { kind: 'failed', reason: 'status 404' },
    ]
    const states: unknown[] = []
    for (const answer of answers) {
      await runNotices(async ({ id }) => {
        ids.push(id)
        return answer
      })
      const { notices: found } = await notices()
      states.push(found.map(({ state, reason }: { state: string; reason: string }) => `${state} ${reason}`)[1])
      clock.advance({ minutes: 1 })
    }
    expect(await runNotices(() => Promise.reject(new Error('once more')))).toBe(0)
    expect(new Set(ids).size).toBe(1)
    expect(states).toEqual(['waiting status 503', 'waiting timeout', 'failed status 404'])
  })

  test('who has an email address is written to, and who has both gets both, each by itself', async () => {
    const email = anEmail()
    await add({ email, webhook_url: 'https://example.com/notices' })
    await app.take(11)
    const mails: Parameters<SendNoticeEmail>[1][] = []
    const retry: SendWebhook = async () => ({ kind: 'retry', reason: 'status 503' })
    await runNotices(retry, async (appId, mail) => {
      expect(appId).toBe(app.id)
      mails.push(mail)
      return { kind: 'sent' }
    })
    const { notices: found } = await notices()
    const mailed = found.find(({ way }: { way: string }) => way === 'mail')
    expect(found.map(({ way, state }: { way: string; state: string }) => `${way} ${state}`)).toEqual([
      'null listed',
      'mail sent',
      'webhook waiting',
    ])
    expect(mails).toEqual([
      {
        to: email,
        id: mailed.id,
        subject: 'Sending is disabled: Counted',
        text: expect.stringMatching(new RegExp(`/apps/${app.id}/sending/enable[^]*used: 10\\nlimit: 10`)),
      },
    ])
    clock.advance({ minutes: 1 })
    await runNotices(
      async () => ({ kind: 'sent' }),
      () => Promise.reject(new Error('once more')),
    )
    expect((await notices()).notices.map(({ state }: { state: string }) => state)).toEqual(['listed', 'sent', 'sent'])
  })

  test('an administrator who is gone is told nothing', async () => {
    const { body } = await add({ webhook_url: 'https://example.com/notices' })
    await app.take(11)
    await app.asOrganization(`/administrators/${body.id}`, { method: 'DELETE' })
    await runNotices(() => Promise.reject(new Error('nobody is there')))
    expect((await notices()).total_count).toBe(2)
  })
})
