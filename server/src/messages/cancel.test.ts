import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aPushUser, counted, messagesOf, NOT_FOUND, saying } from '../../test/messages.ts'
import { putUnderWay } from '../../test/stored-messages.ts'
import { NOBODY, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'

const NOW = '2030-01-01T09:00:00.000Z'
let app: TestApp
let messages: ReturnType<typeof messagesOf>
beforeAll(async () => {
  app = await testApp({ clock: virtualClock(NOW) })
  messages = messagesOf(app)
})
afterAll(() => app.close())

const CANCELED = { status: 200, body: { success: true } }
const TOO_LATE = {
  status: 400,
  body: { errors: ['Notification cannot be canceled: it has already been sent to all recipients.'] },
}

const aMessage = (fields: object = {}) => messages.sent(saying({ included_segments: ['Subscribed Users'], ...fields }))

/** As the engine leaves a message whose deliveries are written. */
const putInto = (id: string, state: string) =>
  app.db.query({
    text: `update messages set state = $3, expand_at = queued_at, completed_at = case when $3 = 'done' then queued_at end
      where app_id = $1 and id = $2`,
    values: [app.tenant.id, id, state],
  })

describe('cancel message', () => {
  test('stops a scheduled message, which stays readable and says so', async () => {
    const id = await aMessage({ send_after: '2030-01-02T09:00:00Z' })
    expect((await messages.view(id)).body).toMatchObject({ canceled: false })
    expect(told(await messages.cancel(id))).toEqual(CANCELED)
    expect((await messages.view(id)).body).toMatchObject({
      id,
      canceled: true,
      remaining: 0,
      contents: { en: 'Hello' },
    })
    expect(await messages.row(id)).toMatchObject({ state: 'canceled' })
    expect(await messages.jobs()).toContainEqual({ name: 'messages.close', key: id, runAt: new Date(NOW) })
  })

  test('stops a message of which deliveries are being written', async () => {
    const id = await aMessage()
    await putInto(id, 'expanding')
    expect(told(await messages.cancel(id))).toEqual(CANCELED)
  })

  test('stops a message that is being sent while something of it waits', async () => {
    const id = await aMessage()
    await putInto(id, 'sending')
    // In two parts, of which one alone is below zero: their sum counts.
    await counted(app, id, [
      { state: 'pending', count: -2, part: 0 },
      { state: 'pending', count: 3, part: 1 },
      { state: 'sent', count: 5 },
    ])
    expect(told(await messages.cancel(id))).toEqual(CANCELED)
    expect((await messages.view(id)).body).toMatchObject({ canceled: true, successful: 5 })
  })

  test('fails when all of it is on its way or there', async () => {
    const id = await aMessage()
    await putInto(id, 'sending')
    await counted(app, id, [
      { state: 'pending', count: 2 },
      { state: 'sent', count: 5 },
    ])
    await putUnderWay(app, { id, expandAt: new Date(NOW) }, [newId(), newId()])
    expect(told(await messages.cancel(id))).toEqual(TOO_LATE)
    expect(await messages.row(id)).toMatchObject({ state: 'sending' })
  })

  test('fails when the message has reached all recipients', async () => {
    const id = await aMessage()
    await putInto(id, 'done')
    await counted(app, id, [{ state: 'sent', count: 1 }])
    expect(told(await messages.cancel(id))).toEqual(TOO_LATE)
    expect((await messages.view(id)).body).toMatchObject({ canceled: false })
  })

  test('says the same again to who asks again', async () => {
    const id = await aMessage()
    expect(told(await messages.cancel(id))).toEqual(CANCELED)
    expect(told(await messages.cancel(id))).toEqual(CANCELED)
  })

  test('works for a direct message that nobody has begun to send', async () => {
    const { subscriptionIds } = await aPushUser(app)
    const id = await messages.sent(saying({ include_subscription_ids: subscriptionIds }))
    expect(told(await messages.cancel(id))).toEqual(CANCELED)
  })

  test('takes the id in any case', async () => {
    const id = await aMessage()
    expect(told(await messages.cancel(id.toUpperCase()))).toEqual(CANCELED)
    expect(await messages.row(id)).toMatchObject({ state: 'canceled' })
  })

  test.each([NOBODY, 'nonsense', `${NOBODY}0`, '%20', "' or 1=1"])('answers 404 for the id %j', async (id) => {
    expect(told(await messages.cancel(encodeURI(id)))).toEqual(NOT_FOUND)
  })

  test('answers 404 for a message of another app', async () => {
    const id = await aMessage()
    const stranger = await app.anotherTenant()
    const headers = { authorization: `Key ${stranger.key}` }
    const path = `/notifications/${id}?app_id=${stranger.id}`
    expect(told(await app.request(path, { method: 'DELETE', headers }))).toEqual(NOT_FOUND)
    expect(await messages.row(id)).toMatchObject({ state: 'scheduled' })
  })

  test('answers 404 for the hidden message of a journey', async () => {
    const id = await aMessage()
    await app.db.query({ text: 'update messages set is_listed = false where id = $1', values: [id] })
    expect(told(await messages.cancel(id))).toEqual(NOT_FOUND)
    expect((await messages.view(id)).status).toBe(200)
  })

  test.each([
    ['missing', '', 'app_id is required'],
    ['empty', '?app_id=', 'app_id is required'],
    ['malformed', '?app_id=nonsense', 'app_id must be a UUID'],
  ])('answers 400 where app_id is %s', async (_, query, error) => {
    const id = await aMessage()
    const answer = await app.request(`/notifications/${id}${query}`, { method: 'DELETE' })
    expect(told(answer)).toEqual({ status: 400, body: { errors: [error] } })
    expect(await messages.row(id)).toMatchObject({ state: 'scheduled' })
  })

  test('many at once are all told the same, and leave one job', async () => {
    const id = await aMessage()
    const answers = await Promise.all(Array.from({ length: 10 }, () => messages.cancel(id)))
    expect(answers.map(told)).toEqual(Array.from({ length: 10 }, () => CANCELED))
    expect((await messages.jobs()).filter(({ name, key }) => name === 'messages.close' && key === id)).toHaveLength(1)
  })

  test('also under the legacy base address', async () => {
    const id = await aMessage()
    const answer = await app.request(`/api/v1/notifications/${id}?app_id=${app.tenant.id}`, { method: 'DELETE' })
    expect(told(answer)).toEqual(CANCELED)
  })
})
