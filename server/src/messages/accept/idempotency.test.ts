import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type TestApp, testApp } from '../../../test/app.ts'
import { aPushUser, mailing, messagesOf, NOBODY_SUBSCRIBED, refused, saying } from '../../../test/messages.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { aPush, templatesOf } from '../../../test/templates.ts'
import { aName, anEmail, anId, told } from '../../../test/users.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { deleteExpiredMessageKeys } from './idempotency.ts'

const NOW = '2030-01-01T09:00:00.000Z'
let clock: VirtualClock
let app: TestApp
let other: TestApp
let messages: ReturnType<typeof messagesOf>
beforeAll(async () => {
  clock = virtualClock(NOW)
  app = await testApp({ clock })
  other = await testApp({ clock, beside: app })
  messages = messagesOf(app)
})
afterAll(async () => {
  await other.close()
  await app.close()
})

const everybody = saying({ included_segments: ['Subscribed Users'] })
const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'

async function toSomebody() {
  const user = await aPushUser(app)
  return { user, fields: saying({ include_aliases: { external_id: [user.externalId] }, target_channel: 'push' }) }
}

describe.each(['idempotency_key', 'external_id'])('a message with %s', (name) => {
  test('is taken once; a retry gets the first answer and says so', async () => {
    const gone = await aPushUser(app, { enabled: false })
    const { user } = await toSomebody()
    const key = randomUUID()
    const fields = saying({
      include_aliases: { external_id: [user.externalId, gone.externalId] },
      target_channel: 'push',
      [name]: key,
    })
    const first = await messages.send(fields)
    expect(told(first)).toEqual({
      status: 200,
      body: {
        id: anId(),
        external_id: key,
        recipients: 1,
        errors: { invalid_aliases: { external_id: [gone.externalId] } },
      },
    })
    expect(isReplay(first)).toBe(false)
    const before = await messages.count()
    const again = await messages.send(fields)
    expect(told(again)).toEqual(told(first))
    expect(isReplay(again)).toBe(true)
    // The order of fields and the case of the key are no part of the request.
    const { contents, ...rest } = fields as { contents: object }
    const turned = await messages.send({ ...rest, contents, [name]: key.toUpperCase() })
    expect(told(turned)).toEqual(told(first))
    expect(await messages.count()).toBe(before)
  })

  test('cannot be another one', async () => {
    const { fields } = await toSomebody()
    const key = randomUUID()
    const first = await messages.send({ ...fields, [name]: key })
    const error = refused(`${name} was used for another request`)
    expect(told(await messages.send({ ...fields, contents: { en: 'Other' }, [name]: key }))).toEqual(error)
    expect(told(await messages.send({ ...everybody, [name]: key }))).toEqual(error)
    expect((await messages.send({ ...fields, [name]: key })).body.id).toBe(first.body.id)
  })

  test('is answered the same when those who were named have unsubscribed since', async () => {
    const { user, fields } = await toSomebody()
    const request = { ...fields, [name]: randomUUID() }
    const first = await messages.send(request)
    const path = `/subscriptions/${user.subscriptionIds[0]}`
    await app.app(path, { method: 'PATCH', body: { subscription: { enabled: false } } })
    const again = await messages.send(request)
    expect(told(again)).toEqual(told(first))
    expect(isReplay(again)).toBe(true)
  })

  test('that reached nobody, or was refused, is not remembered', async () => {
    const key = randomUUID()
    const fields = { include_aliases: { external_id: ['nobody at all'] }, target_channel: 'push', [name]: key }
    expect(told(await messages.send(saying(fields)))).toEqual(NOBODY_SUBSCRIBED)
    expect((await messages.send({ ...fields })).status).toBe(400)
    const answer = await messages.send({ ...everybody, [name]: key })
    expect([answer.status, isReplay(answer)]).toEqual([200, false])
  })

  test('keeps its key for 30 days', async () => {
    const { fields } = await toSomebody()
    const request = { ...fields, [name]: randomUUID() }
    const first = await messages.send(request)
    clock.advance({ days: 30, ms: -1 })
    expect((await messages.send(request)).body.id).toBe(first.body.id)
    clock.advance({ ms: 1 })
    const second = await messages.send(request)
    expect([second.status, isReplay(second)]).toEqual([200, false])
    expect(second.body.id).not.toBe(first.body.id)
    // The key is the new message's now.
    expect((await messages.send(request)).body.id).toBe(second.body.id)
  })
})

describe('keys', () => {
  test('of the two names are apart', async () => {
    const key = randomUUID()
    const ids = [
      await messages.sent({ ...everybody, idempotency_key: key }),
      await messages.sent({ ...everybody, external_id: key }),
      await messages.sent({ ...everybody, idempotency_key: key }),
    ]
    expect(ids[0]).not.toBe(ids[1])
    expect(ids[2]).toBe(ids[0])
  })

  test('of both names in one request are both taken, or neither', async () => {
    const [mine, theirs, fresh] = [randomUUID(), randomUUID(), randomUUID()]
    const first = await messages.send({ ...everybody, idempotency_key: mine, external_id: theirs })
    expect(first.body.external_id).toBe(mine)
    // The official client makes a new key for each call; the legacy one still tells that it is a retry.
    const again = await messages.send({ ...everybody, idempotency_key: fresh, external_id: theirs })
    expect([again.body.id, isReplay(again)]).toEqual([first.body.id, true])
    // So `fresh` was not taken.
    const second = await messages.send(saying({ included_segments: ['Active Users'], idempotency_key: fresh }))
    expect([second.status, isReplay(second)]).toEqual([200, false])
  })

  test('of apps are apart', async () => {
    const key = randomUUID()
    const id = await messages.sent({ ...everybody, idempotency_key: key })
    const stranger = await app.anotherTenant()
    const answer = await app.request('/notifications', {
      headers: { authorization: `Key ${stranger.key}` },
      body: { app_id: stranger.id, ...everybody, idempotency_key: key },
    })
    expect(answer.status).toBe(200)
    expect(answer.body.id).not.toBe(id)
  })

  test('are found before what the request names: template, segment and address may be gone', async () => {
    const name = aName('segment')
    const segment = await aSegment(app, [tagIs('plan', 'gold')], { name })
    const template = (await templatesOf(app).create(aPush())).body.id
    const requests = [
      saying({ included_segments: [name], idempotency_key: randomUUID() }),
      { included_segments: ['Subscribed Users'], template_id: template, idempotency_key: randomUUID() },
      mailing({ email_to: [anEmail()], idempotency_key: randomUUID() }),
    ]
    const firsts = []
    for (const request of requests) firsts.push(told(await messages.send(request)))
    await app.app(`/segments/${segment}`, { method: 'DELETE' })
    await templatesOf(app).remove(template)
    for (const [i, request] of requests.entries()) {
      const again = await messages.send(request)
      expect(told(again)).toEqual(firsts[i])
      expect(isReplay(again)).toBe(true)
    }
  })

  test('are forgotten when they no longer count, and not before', async () => {
    const old = randomUUID()
    await messages.sent({ ...everybody, idempotency_key: old })
    clock.advance({ days: 29 })
    const young = randomUUID()
    await messages.sent({ ...everybody, idempotency_key: young })
    clock.advance({ days: 1 })
    await deleteExpiredMessageKeys(app.db, clock.now())
    const rows = await app.db.query<{ key: string }>({ text: 'select key from message_keys', values: [] })
    const keys = rows.map(({ key }) => key)
    expect(keys).toContain(young)
    expect(keys).not.toContain(old)
  })
})

describe('at once, over two servers', () => {
  /** Each is sent to both servers several times, all together. */
  const race = (requests: Record<string, unknown>[], each = 6) =>
    Promise.all(
      requests.map((body) =>
        Promise.all(
          Array.from({ length: each }, (_, i) =>
            (i % 2 ? other : app).request('/notifications', { body: { app_id: app.tenant.id, ...body } }),
          ),
        ),
      ),
    )

  test('one key is one message, and all are told its id', async () => {
    const { fields } = await toSomebody()
    const before = await messages.count()
    const requests = Array.from({ length: 10 }, (_, i) => ({
      ...(i % 2 ? fields : everybody),
      idempotency_key: randomUUID(),
    }))
    for (const answers of await race(requests)) {
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
      expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
    }
    expect(await messages.count()).toBe(before + requests.length)
  })

  test('one key with two requests is one of them, and the other is refused', async () => {
    for (let n = 0; n < 5; n++) {
      const key = randomUUID()
      const before = await messages.count()
      const [left = [], right = []] = await race([
        { ...everybody, idempotency_key: key },
        { ...everybody, contents: { en: 'Other' }, idempotency_key: key },
      ])
      const [won, lost] = left[0]?.status === 200 ? [left, right] : [right, left]
      expect(new Set(won.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1)
      expect(lost.map(told)).toEqual(lost.map(() => refused('idempotency_key was used for another request')))
      expect(await messages.count()).toBe(before + 1)
    }
  })

  test('two names taken crosswise leave every key with one message', async () => {
    for (let n = 0; n < 5; n++) {
      const [a, b] = [randomUUID(), randomUUID()]
      const answers = (
        await race([
          { ...everybody, idempotency_key: a, external_id: b },
          { ...everybody, idempotency_key: a },
          { ...everybody, external_id: b },
        ])
      ).flat()
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      const ids = new Set(answers.map(({ body }) => body.id))
      const taken = await app.db.query<{ messageId: string }>({
        text: 'select message_id from message_keys where key = any($1::uuid[])',
        values: [[a, b]],
      })
      expect(taken).toHaveLength(2)
      expect([...ids].sort()).toEqual([...new Set(taken.map(({ messageId }) => messageId))].sort())
      for (const id of ids) expect(await messages.row(id)).toBeDefined()
    }
  })
})
