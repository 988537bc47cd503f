import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../../test/app.ts'
import { sql } from '../../../storage/sql.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp({ publicUrl: 'https://bell.example/' })
})
afterAll(() => app.close())

const put = (body: unknown) => app.app('/email/event_sources', { method: 'PUT', body })
const view = () => app.app('/email/event_sources')
const publicKey = (namedCurve: string) =>
  generateKeyPairSync('ec', { namedCurve }).publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
const MASK = '********'
const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:mail'
const NONE = { ses: null, mailgun: null, sendgrid: null, postmark: null }
const urlOf = (source: string) => `https://bell.example/apps/${app.tenant.id}/email/events/${source}`
const stored = () =>
  app.db.query<{ source: string; settings: object; secret: string | null }>(sql`
    select source, settings, secret from email_event_sources where app_id = ${app.tenant.id} order by source`)

test('sources are set one by one, shown without their secrets, kept sealed, and taken away', async () => {
  expect(await view()).toMatchObject({ status: 200, body: NONE })
  const key = publicKey('P-256')
  expect((await put({ ses: { topic_arn: TOPIC }, mailgun: { signing_key: 'key-0123456789' } })).status).toBe(200)
  const set = await put({ sendgrid: { public_key: key }, postmark: { username: 'us', password: 'a long password' } })
  expect(set.body).toEqual({
    ses: { topic_arn: TOPIC, url: urlOf('ses') },
    mailgun: { signing_key: MASK, url: urlOf('mailgun') },
    sendgrid: { public_key: key, url: urlOf('sendgrid') },
    postmark: { username: 'us', password: MASK, path_secret: null, url: urlOf('postmark') },
  })
  expect((await view()).body).toEqual(set.body)
  expect(JSON.stringify(await stored())).not.toMatch(/key-0123456789|a long password/)
  expect((await put({ mailgun: null, sendgrid: null, ses: null, postmark: null })).body).toEqual(NONE)
  expect(await stored()).toEqual([])
})

test('the mask leaves a secret as it is', async () => {
  await put({ postmark: { username: 'us', password: 'a long password', path_secret: 'sixteen-letters-at-least' } })
  const [before] = await stored()
  const { body } = await put({ postmark: { username: 'them', password: MASK, path_secret: MASK } })
  expect(body.postmark).toMatchObject({ username: 'them', password: MASK, path_secret: MASK })
  const [after] = await stored()
  expect(after?.settings).toEqual({ username: 'them' })
  expect(after?.secret).not.toBe(before?.secret)
  await put({ postmark: null })
})

test.each([
  [{ ses: { topic_arn: 'mail' } }, 'ses.topic_arn must be the ARN of a topic'],
  [{ ses: { topic_arn: `${TOPIC}\n` } }, 'ses.topic_arn must be'],
  [{ ses: {} }, 'topic_arn'],
  [{ ses: 7 }, 'ses'],
  [{ mailgun: { signing_key: MASK } }, 'mailgun.signing_key must be'],
  [{ mailgun: { signing_key: 'short' } }, 'mailgun.signing_key must be'],
  [{ sendgrid: { public_key: 'x' } }, 'sendgrid.public_key must be'],
  [{ sendgrid: { public_key: publicKey('P-384') } }, 'sendgrid.public_key must be'],
  [{ postmark: {} }, 'postmark needs username and password, or path_secret'],
  [{ postmark: { username: 'us' } }, 'must be given together'],
  [{ postmark: { username: 'u:s', password: 'a long password' } }, 'must not hold a colon'],
  [{ postmark: { username: 'us', password: 'short' } }, 'at least 12 characters'],
  [{ postmark: { path_secret: 'a/b' } }, '16 to 128'],
  [{ mailgun: { signing_key: 'good-enough' }, ses: { topic_arn: 'x' } }, 'ses.topic_arn must be'],
])('%j is refused, and changes nothing', async (body, words) => {
  const answer = await put(body)
  expect(answer.status).toBe(400)
  expect(answer.body.errors.join(' ')).toContain(words)
  expect(await stored()).toEqual([])
})

test('changes are in the audit log, without secrets', async () => {
  await put({ mailgun: { signing_key: 'key-0123456789' } })
  await put({ mailgun: null })
  const entries = await app.db.query<{ detail: object; actorKind: string }>(sql`
    select detail, actor_kind from audit_log
    where app_id = ${app.tenant.id} and action = 'email_event_sources.update' order by at desc, id limit 2`)
  const entry = { detail: { fields: ['mailgun'] }, actorKind: 'key' }
  expect(entries).toEqual([entry, entry])
})
