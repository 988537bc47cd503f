import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aPushUser, messagesOf, NOBODY_SUBSCRIBED, saying } from '../../../test/messages.ts'
import { anId } from '../../../test/users.ts'
import { warnUnknownFields } from './warn-unknown-fields.ts'

let app: TestApp
let messages: ReturnType<typeof messagesOf>
let to: object
beforeAll(async () => {
  app = await testApp()
  messages = messagesOf(app)
  to = { include_subscription_ids: (await aPushUser(app, { type: 'ChromePush' })).subscriptionIds }
})
afterAll(() => app.close())

describe('unknown fields of Create message', () => {
  test('are named beside the usual answer, with what was probably meant', async () => {
    const { status, body } = await messages.send(saying({ ...to, headingss: { en: 'Hi' }, included_segment: ['All'] }))
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        id: anId(),
        external_id: null,
        recipients: 1,
        warnings: [
          'unknown field headingss; did you mean headings?',
          'unknown field included_segment; did you mean included_segments?',
        ],
      },
    })
    expect((await messages.view(body.id)).body.headings).toBeNull()
  })

  test('are named by a replay and by a message to nobody too', async () => {
    const fields = saying({ ...to, idempotency_key: randomUUID(), made_by: 'us' })
    const first = await messages.send(fields)
    expect(first.body.warnings).toEqual(['unknown field made_by'])
    expect((await messages.send(fields)).body).toEqual(first.body)
    const nobody = saying({ include_aliases: { external_id: ['nobody'] }, target_channel: 'push', made_by: 'us' })
    expect((await messages.send(nobody)).body).toEqual({
      ...NOBODY_SUBSCRIBED.body,
      warnings: ['unknown field made_by'],
    })
  })

  test('are named beside what else is warned of', async () => {
    const { subscriptionIds } = await aPushUser(app)
    const { body } = await messages.send(saying({ include_subscription_ids: subscriptionIds, made_by: 'us' }))
    expect(body.warnings).toEqual([
      'unknown field made_by',
      expect.stringMatching(/^Android devices cannot be reached/),
    ])
  })

  test('are not missed where there are none, or where they are null', async () => {
    expect((await messages.send(saying({ ...to, url: null, made_by: null }))).body).not.toHaveProperty('warnings')
  })

  test('do not change what is refused', async () => {
    const { status, body } = await messages.send({ content: { en: 'Hi' }, ...to })
    expect({ status, keys: Object.keys(body) }).toEqual({ status: 400, keys: ['errors'] })
  })

  test('are named up to ten, and the rest counted', () => {
    const named = Array.from({ length: 10 }, (_, i) => `unknown field zzzz_${i}`)
    const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`zzzz_${i}`, 1]))
    expect(warnUnknownFields(fields(10))).toEqual(named)
    expect(warnUnknownFields(fields(11))).toEqual([...named, '1 more unknown field'])
    expect(warnUnknownFields(fields(1_900))).toEqual([...named, '1890 more unknown fields'])
  })

  test.each([
    ['', '""'],
    ['<script>', '"<script>"'],
    ['a\u001b[31m\nb\u2028c\u202e', '"a\uFFFD[31m\uFFFDb\uFFFDc\uFFFD"'],
    ['\u{1F514}'.repeat(70), `"${'\u{1F514}'.repeat(64)}…"`],
    ['x'.repeat(5_000), `"${'x'.repeat(64)}…"`],
    ['constructor', 'constructor'],
    ['toString', 'toString'],
  ])('%j is shown without harm', (name, shown) => {
    expect(warnUnknownFields({ [name]: 1 })).toEqual([`unknown field ${shown}`])
  })
})
