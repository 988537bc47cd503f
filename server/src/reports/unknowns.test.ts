import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { urlOf } from '../../test/command-line.ts'
import { aStoredMessage, countsOf, deliver, type StoredMessage } from '../../test/stored-messages.ts'
import { NOBODY } from '../../test/users.ts'
import { runCarillon } from '../cli/run.ts'
import { insertWebhook } from '../feedback/webhook-store.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

type Case = { message: StoredMessage; ids: string[] }

async function aMessageInDoubt(state = 'done'): Promise<Case> {
  const message = await aStoredMessage(app, { at: clock.now(), state })
  const ids = Array.from({ length: 5 }, () => newId()).sort()
  await deliver(
    app,
    message,
    ids.map((subscriptionId) => ({ subscriptionId, state: 'unknown' as const, reason: 'interrupted' })),
  )
  await deliver(app, message, [{ subscriptionId: newId() }])
  return { message, ids }
}
const at = ({ message }: Case, path = '') => `/messages/${message.id}/unknowns${path}`

test('are listed page by page', async () => {
  const it = await aMessageInDoubt()
  const first = await app.app(`${at(it)}?limit=3`)
  const idsOf = (body: { deliveries: { subscription_id: string }[] }) => body.deliveries.map((it) => it.subscription_id)
  expect(idsOf(first.body)).toEqual(it.ids.slice(0, 3))
  expect(first.body.deliveries[0]).toMatchObject({ type: 'AndroidPush', reason: 'interrupted', attempts: 1 })
  const second = await app.app(`${at(it)}?limit=3&cursor=${first.body.next_cursor}`)
  expect([idsOf(second.body), second.body.next_cursor]).toEqual([it.ids.slice(3), null])
  expect((await app.app(`/messages/${NOBODY}/unknowns`)).status).toBe(404)
})

test('are sent again, some or all, and counted as waiting', async () => {
  const it = await aMessageInDoubt()
  const [one] = it.ids
  expect((await app.app(at(it, '/resend'), { body: { subscription_ids: [one?.toUpperCase()] } })).body).toEqual({
    resent: 1,
  })
  expect(await countsOf(app, it.message)).toEqual({ unknown: 4, pending: 1, sent: 1 })
  expect((await app.app(at(it, '/resend'), { method: 'POST' })).body).toEqual({ resent: 4 })
  expect(await countsOf(app, it.message)).toEqual({ pending: 5, sent: 1 })
  expect((await app.app(at(it, '/resend'), { method: 'POST' })).body).toEqual({ resent: 0 })
  const jobs = await app.db.query<{ key: string }>(sql`
    select key from jobs where app_id = ${app.tenant.id} and name = 'messages.deliver'`)
  expect(jobs).toEqual([{ key: 'bulk/fcm/0' }])
})

test('are closed as failed', async () => {
  const it = await aMessageInDoubt()
  await insertWebhook(app.db, app.tenant.id, {
    ...{ id: newId(), url: 'https://hook.example/', kinds: ['failed'], secret: '' },
    ...{ createdAt: clock.now(), updatedAt: clock.now() },
  })
  expect((await app.app(at(it, '/close'), { body: { subscription_ids: it.ids.slice(0, 2) } })).body).toEqual({
    closed: 2,
  })
  expect(await countsOf(app, it.message)).toEqual({ unknown: 3, failed: 2, sent: 1 })
  expect((await app.app(at(it, '/close'), { method: 'POST' })).body).toEqual({ closed: 3 })
  const listed = await app.app(`/messages/${it.message.id}/deliveries?state=failed`)
  expect(listed.body.deliveries.map(({ reason }: { reason: string }) => reason)).toEqual(Array(5).fill('closed'))
  const rows = await app.db.query<{ action: string; detail: object }>(sql`
    select action, detail from audit_log where app_id = ${app.tenant.id} and target_id = ${it.message.id} order by id`)
  expect(rows).toHaveLength(2)
  const told = await app.db.query(sql`
    select kind, message_id, subscription_id, reason from delivery_events
    where app_id = ${app.tenant.id} order by subscription_id`)
  expect(told).toEqual(
    it.ids.map((subscriptionId) => ({ kind: 'failed', messageId: it.message.id, subscriptionId, reason: 'closed' })),
  )
})

test('what is wrong is told', async () => {
  const it = await aMessageInDoubt()
  for (const verb of ['/resend', '/close']) {
    for (const subscription_ids of [['x'], [], 'all'])
      expect((await app.app(at(it, verb), { body: { subscription_ids } })).status).toBe(400)
    expect((await app.app(`/messages/${NOBODY}/unknowns${verb}`, { method: 'POST' })).status).toBe(404)
  }
  expect(await countsOf(app, it.message)).toEqual({ unknown: 5, sent: 1 })
})

test('nothing of a canceled message is sent again', async () => {
  const it = await aMessageInDoubt('canceled')
  expect((await app.app(at(it, '/resend'), { method: 'POST' })).body).toEqual({ resent: 0 })
})

test('the command line lists, sends again and closes them', async () => {
  const it = await aMessageInDoubt()
  const env = { DATABASE_URL: urlOf(app.connection) }
  const run = (...args: string[]) => runCarillon(['deliveries', ...args, '--app', app.tenant.id, '--json'], env)
  const { out } = await run('unknown', it.message.id)
  expect(JSON.parse(out).map((it: { subscription_id: string }) => it.subscription_id)).toEqual(it.ids)
  expect(await run('resend', it.message.id, '--subscription', it.ids[0] as string)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/"resent":\s*1/),
  })
  expect(await run('close', it.message.id)).toMatchObject({ code: 0, out: expect.stringMatching(/"closed":\s*4/) })
  expect(await countsOf(app, it.message)).toEqual({ pending: 1, failed: 4, sent: 1 })
  expect((await run('close', NOBODY)).code).not.toBe(0)
  expect((await run('close', 'x')).code).toBe(2)
})
