import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  anEmailUser,
  anSmsUser,
  aPushUser,
  aToken,
  mailing,
  messagesOf,
  NOBODY_SUBSCRIBED,
  refused,
  saying,
} from '../../../test/messages.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { anEmailTemplate, anSms, aPush, templatesOf } from '../../../test/templates.ts'
import { aName, anEmail, anId, aPhone, aUser, NOBODY, told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'

const NOW = '2030-01-01T09:00:00.000Z'
let app: TestApp
let messages: ReturnType<typeof messagesOf>
let templates: ReturnType<typeof templatesOf>
let push: Awaited<ReturnType<typeof aPushUser>>
beforeAll(async () => {
  app = await testApp({ clock: virtualClock(NOW) })
  messages = messagesOf(app)
  templates = templatesOf(app)
  push = await aPushUser(app)
})
afterAll(() => app.close())

/** Answers this, and stores nothing. */
async function expectRefused(fields: Record<string, unknown>, ...errors: unknown[]) {
  const before = await messages.count()
  expect(told(await messages.send(fields))).toEqual(refused(...errors))
  expect(await messages.count()).toBe(before)
}

const everybody = { included_segments: ['Subscribed Users'] }
const STAGE = { start: '2031-01-01T00:00:00Z', end: '2031-01-02T00:00:00Z', quota: 10 }
const warming = (email_warm_up: object) => mailing({ kind: 'warmup', email_warm_up })
const rowOf = async (fields: Record<string, unknown>) => messages.row(await messages.sent(fields))

const NO_TARGETING = 'You must include which players, segments, or tags you wish to send this notification to.'
const ONE_CHANNEL =
  'Platforms You may only send to one delivery channel at a time. Make sure you are only including one of push platforms, Email, or SMS.'
const NO_ENGLISH = 'Message Notifications must have English language content'

describe('create message', () => {
  test('to a subscription stores the message and asks for its expansion', async () => {
    const { subscriptionIds } = push
    const answer = await messages.send(saying({ include_subscription_ids: subscriptionIds }))
    const warnings = [expect.stringContaining('FCM')]
    expect(told(answer)).toEqual({ status: 200, body: { id: anId(), external_id: null, recipients: 1, warnings } })
    expect(await messages.row(answer.body.id)).toMatchObject({
      channel: 'push',
      kind: 1,
      lane: 'direct',
      state: 'scheduled',
      content: { contents: { en: 'Hello' } },
      audience: { kind: 'subscriptions', field: 'include_subscription_ids', given: [], ids: subscriptionIds },
      options: { ttl: 259_200, priority: 10 },
      sendAfter: new Date(NOW),
    })
    expect(await messages.jobs()).toContainEqual({ name: 'messages.expand', key: 'direct', runAt: new Date(NOW) })
  })

  test('to segments stores them by id, with a job of its own', async () => {
    const id = await messages.sent(saying(everybody))
    expect(await messages.row(id)).toMatchObject({
      lane: 'bulk',
      audience: { kind: 'segments', included: [{ id: anId(), name: 'Subscribed Users' }], excluded: [] },
    })
    expect(await messages.jobs()).toContainEqual({ name: 'messages.expand-bulk', key: id, runAt: new Date(NOW) })
  })

  test('for later has its job at its time, direct or not', async () => {
    const send_after = '2030-01-02 09:00:00 GMT+0100'
    const at = new Date('2030-01-02T08:00:00Z')
    for (const [name, targets] of [
      ['messages.expand-bulk', everybody],
      ['messages.expand', { include_subscription_ids: push.subscriptionIds }],
    ] as const) {
      const id = await messages.sent(saying({ ...targets, send_after }))
      expect(await messages.row(id)).toMatchObject({ sendAfter: at })
      expect(await messages.jobs()).toContainEqual({ name, key: id, runAt: at })
    }
  })

  test('for a time in the past is due now', async () => {
    expect(await rowOf(saying({ ...everybody, send_after: '2020-01-01T00:00:00Z' }))).toMatchObject({
      sendAfter: new Date(NOW),
    })
  })

  test('many at once are all stored, each answered with its own', async () => {
    const users = await Promise.all(Array.from({ length: 20 }, () => aPushUser(app)))
    const answers = await Promise.all(
      users.map(({ externalId }, i) =>
        messages.send(saying({ name: `${i}`, include_aliases: { external_id: [externalId] }, target_channel: 'push' })),
      ),
    )
    expect(answers.map(({ body }) => body.recipients)).toEqual(users.map(() => 1))
    for (const [i, { body }] of answers.entries())
      expect(await messages.row(body.id)).toMatchObject({
        name: `${i}`,
        audience: { kind: 'aliases', aliases: { external_id: [users[i]?.externalId] } },
      })
  })

  test('also under the legacy base address, and with the channel in the query', async () => {
    for (const path of ['/api/v1/notifications', '/notifications?c=push'])
      expect((await app.request(path, { body: { app_id: app.tenant.id, ...saying(everybody) } })).status).toBe(200)
  })

  test('needs an app_id', async () => {
    for (const [app_id, error] of [
      [undefined, 'app_id is required'],
      ['nonsense', 'app_id must be a UUID'],
    ])
      expect(told(await app.request('/notifications', { body: { app_id, ...saying(everybody) } }))).toEqual(
        refused(error),
      )
  })
})

describe('recipients', () => {
  test.each([
    {},
    { included_segments: [] },
    { include_aliases: {}, target_channel: 'push' },
    { include_aliases: { external_id: [] }, target_channel: 'push' },
    { include_subscription_ids: null, filters: [] },
    { excluded_segments: ['Inactive Users'] },
  ])('%j names nobody', async (targets) => {
    await expectRefused(saying(targets), NO_TARGETING)
  })

  test('are named in exactly one way; empty lists do not count', async () => {
    await expectRefused(
      saying({ ...everybody, include_subscription_ids: push.subscriptionIds }),
      'Only one way of naming recipients can be used: include_subscription_ids and included_segments are given',
    )
    expect(await messages.sent(saying({ ...everybody, include_subscription_ids: [], filters: null }))).toEqual(anId())
  })

  test.each([
    [{ excluded_segments: ['Inactive Users'] }, 'excluded_segments cannot be combined with include_subscription_ids'],
  ])('%j cannot stand beside named ones', async (more, error) => {
    await expectRefused(saying({ include_subscription_ids: push.subscriptionIds, ...more }), error)
  })

  test('an id that is none is told in the words of the interface', async () => {
    await expectRefused(
      saying({ include_subscription_ids: [...push.subscriptionIds, 'nonsense'] }),
      'Incorrect subscription_id format in include_subscription_ids (not a valid UUID): nonsense',
    )
    await expectRefused(
      saying({ include_player_ids: ['nonsense'] }),
      'Incorrect player_id format in include_player_ids (not a valid UUID): nonsense',
    )
  })

  test('ids count once, in any case', async () => {
    const [id] = push.subscriptionIds as [string]
    const answer = await messages.send(saying({ include_subscription_ids: [id, id.toUpperCase()] }))
    expect(answer.body.recipients).toBe(1)
    expect(await messages.row(answer.body.id)).toMatchObject({ audience: { ids: [id] } })
  })

  test('nobody subscribed: nothing is stored, and the answer has no id', async () => {
    const gone = await aPushUser(app, { notification_types: -2 })
    const disabled = await aPushUser(app, { enabled: false })
    const mail = await anEmailUser(app)
    const before = await messages.count()
    for (const targets of [
      { include_subscription_ids: [NOBODY] },
      { include_subscription_ids: gone.subscriptionIds },
      { include_player_ids: disabled.subscriptionIds },
      // An email address cannot be pushed to.
      { include_subscription_ids: mail.subscriptionIds },
      { include_aliases: { external_id: ['nobody at all', mail.externalId] }, target_channel: 'push' },
      { include_external_user_ids: [gone.externalId] },
    ])
      expect(told(await messages.send(saying(targets)))).toEqual(NOBODY_SUBSCRIBED)
    expect(await messages.count()).toBe(before)
  })

  test('who is there but not subscribed is reported, who is not there is not', async () => {
    const gone = await aUser(app, {
      identity: { crm: aName() },
      subscriptions: [
        { type: 'AndroidPush', token: aToken(), notification_types: -2 },
        { type: 'iOSPush', token: aToken(), enabled: false },
        { type: 'Email', token: anEmail(), enabled: false },
      ],
    })
    const [goneId] = gone.subscriptionIds as [string]
    const [id] = push.subscriptionIds as [string]
    const byId = await messages.send(saying({ include_subscription_ids: [goneId, id, NOBODY] }))
    expect(byId.body).toMatchObject({ recipients: 1, errors: { invalid_player_ids: [goneId] } })
    const byAlias = await messages.send(
      saying({
        include_aliases: { external_id: ['nobody', push.externalId, gone.externalId], onesignal_id: [gone.id] },
        target_channel: 'push',
      }),
    )
    // One entry for each subscription.
    expect(byAlias.body).toMatchObject({
      recipients: 1,
      errors: {
        invalid_aliases: { external_id: [gone.externalId, gone.externalId], onesignal_id: [gone.id, gone.id] },
      },
    })
    const legacy = await messages.send(saying({ include_external_user_ids: [gone.externalId, push.externalId] }))
    expect(legacy.body.errors).toEqual({ invalid_external_user_ids: [gone.externalId, gone.externalId] })
  })

  test('a user named by two aliases is one, and each subscription of the channel counts', async () => {
    const user = await aUser(app, {
      identity: { crm: aName() },
      subscriptions: [
        { type: 'AndroidPush', token: aToken() },
        { type: 'iOSPush', token: aToken() },
        { type: 'Email', token: anEmail() },
      ],
    })
    const aliases = { external_id: [user.externalId], onesignal_id: [user.id.toUpperCase()] }
    const recipients = async (fields: Record<string, unknown>) =>
      (await messages.send({ include_aliases: aliases, ...fields })).body.recipients
    expect(await recipients(saying({ target_channel: 'push' }))).toBe(2)
    expect(await recipients(saying({ target_channel: 'push', isIos: true }))).toBe(1)
    expect(await recipients(mailing({ target_channel: 'email' }))).toBe(1)
  })

  test('include_aliases needs a target_channel and ids that are ids', async () => {
    await expectRefused(
      saying({ include_aliases: { external_id: ['a'] } }),
      'target_channel is required with include_aliases: push, email or sms',
    )
    await expectRefused(
      saying({ include_aliases: { onesignal_id: ['a'] }, target_channel: 'push' }),
      'include_aliases.onesignal_id: "a" is not a valid UUID',
    )
  })

  test('segments by name, none of which may be unknown', async () => {
    const name = aName('segment')
    const id = await aSegment(app, [tagIs('plan', 'gold')], { name })
    const fields = { included_segments: [name, name, 'Active Users'], excluded_segments: ['Inactive Users'] }
    expect(await rowOf(saying(fields))).toMatchObject({
      audience: {
        included: [{ id, name }, { name: 'Active Users' }],
        excluded: [{ name: 'Inactive Users' }],
      },
    })
    await expectRefused(saying({ included_segments: [name, 'Nobody'] }), 'Segment "Nobody" was not found')
    await expectRefused(saying({ ...everybody, excluded_segments: ['Nobody'] }), 'Segment "Nobody" was not found')
  })

  test('filters, as in segments', async () => {
    const filters = [tagIs('plan', 'gold'), { operator: 'OR' }, { field: 'country', relation: '=', value: 'FR' }]
    expect(await rowOf(saying({ filters }))).toMatchObject({ lane: 'bulk', audience: { kind: 'filters', filters } })
    await expectRefused(saying({ filters: [{ operator: 'OR' }] }), expect.stringMatching(/^filters\[0\]/))
  })

  test('email addresses and phone numbers that nobody has become subscriptions', async () => {
    const known = anEmail()
    await aUser(app, { subscriptions: [{ type: 'Email', token: known }] })
    const gone = anEmail()
    await aUser(app, { subscriptions: [{ type: 'Email', token: gone, enabled: false }] })
    const fresh = anEmail()
    const answer = await messages.send(mailing({ email_to: [known.toUpperCase(), fresh, gone, fresh] }))
    expect(answer.body).toMatchObject({ recipients: 2, errors: { invalid_email_tokens: [gone] } })
    const row = await messages.row(answer.body.id)
    expect(row).toMatchObject({ channel: 'email', audience: { given: [known.toUpperCase(), fresh, gone] } })
    const { ids } = row.audience as { ids: string[] }
    const made = await app.app(`/subscriptions/${ids[1]}/user/identity`)
    expect(made.status).toBe(200)
    // The next message finds it.
    expect((await rowOf(mailing({ include_email_tokens: [fresh] }))).audience).toMatchObject({ ids: [ids[1]] })

    const phone = aPhone()
    expect(await rowOf(saying({ include_phone_numbers: [phone] }))).toMatchObject({
      channel: 'sms',
      audience: { field: 'include_phone_numbers', given: [phone], ids: [anId()] },
    })
  })

  test('two messages to the same new address at once make it one subscription', async () => {
    const address = anEmail()
    const answers = await Promise.all(Array.from({ length: 8 }, () => messages.send(mailing({ email_to: [address] }))))
    const ids = await Promise.all(answers.map(async ({ body }) => (await messages.row(body.id)).audience))
    expect(new Set(ids.map((it) => (it as { ids: string[] }).ids[0])).size).toBe(1)
  })

  test.each([
    ['include_ios_tokens', 'iOSPush'],
    ['include_android_reg_ids', 'AndroidPush'],
    ['include_chrome_web_reg_ids', 'ChromePush'],
    ['include_chrome_reg_ids', 'ChromeExtensionPush'],
    ['include_amazon_reg_ids', 'FireOSPush'],
    ['include_wp_wns_uris', 'WindowsPush'],
  ])('%s become players of the type %s', async (field, type) => {
    const token = aToken()
    const row = await rowOf(saying({ [field]: [token] }))
    const { ids } = row.audience as { ids: string[] }
    const [found] = await app.db.query<{ type: string; token: string }>({
      text: 'select type, token from subscriptions where id = $1',
      values: [ids[0]],
    })
    expect(found).toEqual({ type, token })
  })

  test.each([
    [mailing({ email_to: [anEmail(), 'nonsense'] }), 'email_to[1]: "nonsense" is not a valid email address'],
    [
      saying({ include_phone_numbers: ['12'] }),
      'include_phone_numbers[0]: "12" is not a phone number in E.164 form, such as +15558675309',
    ],
    [saying({ include_ios_tokens: [''] }), 'include_ios_tokens[0] must have between 1 and 4096 characters'],
  ])('an address that cannot be one is refused and nobody is made: %j', async (fields, error) => {
    const count = async () => (await app.db.query({ text: 'select 1 from subscriptions', values: [] })).length
    const before = await count()
    await expectRefused(fields, error)
    expect(await count()).toBe(before)
  })

  test.each([
    ['include_subscription_ids', { n: 20_000 }, 200],
    ['include_subscription_ids', { n: 20_001 }, 400],
    ['include_aliases', { n: 20_000 }, 200],
    ['include_aliases', { n: 20_001 }, 400],
  ])('%s: %j answers %i', async (field, { n }, status) => {
    const values = (name: string) =>
      Array.from({ length: n }, (_, i) => (i === 7 ? name : `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`))
    const targets =
      field === 'include_aliases'
        ? {
            include_aliases: { external_id: values(push.externalId).slice(0, 9), crm: values('x').slice(9) },
            target_channel: 'push',
          }
        : { include_subscription_ids: values(push.subscriptionIds[0] as string) }
    const answer = await messages.send(saying(targets))
    expect(answer.status).toBe(status)
    if (status === 200) {
      expect(answer.body.recipients).toBe(1)
      expect(await messages.row(answer.body.id)).toMatchObject({ lane: 'bulk' })
    }
  })

  test.each([
    [100, 'direct'],
    [101, 'bulk'],
  ])('%i that are named go by the lane %s', async (n, lane) => {
    const ids = Array.from({ length: n - 1 }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`)
    const row = await rowOf(saying({ include_subscription_ids: [...push.subscriptionIds, ...ids] }))
    expect(row).toMatchObject({ lane })
  })
})

describe('the channel', () => {
  test('is push unless something says otherwise', async () => {
    const mail = await anEmailUser(app)
    const sms = await anSmsUser(app)
    const cases: [Record<string, unknown>, string][] = [
      [saying(everybody), 'push'],
      [saying({ ...everybody, target_channel: 'sms' }), 'sms'],
      [saying({ ...everybody, isSms: true }), 'sms'],
      [saying({ ...everybody, isSMS: true, sms_from: '+15558675309' }), 'sms'],
      [mailing(everybody), 'email'],
      [mailing({ ...everybody, isEmail: true }), 'email'],
      [mailing({ ...everybody, target_channel: 'email' }), 'email'],
      [mailing({ include_subscription_ids: mail.subscriptionIds }), 'email'],
      [saying({ include_external_user_ids: [sms.externalId], channel_for_external_user_ids: 'sms' }), 'sms'],
      [saying({ include_external_user_ids: [push.externalId] }), 'push'],
    ]
    for (const [fields, channel] of cases) {
      const row = await rowOf(fields)
      expect(row).toMatchObject({ channel })
      const { isEmail, isSMS } = row.content as { isEmail?: boolean; isSMS?: boolean }
      expect([isEmail, isSMS]).toEqual([channel === 'email' ? true : undefined, channel === 'sms' ? true : undefined])
    }
  })

  test.each([
    mailing({ contents: { en: 'Hello' }, isEmail: true, isSMS: true }),
    saying({ isIos: true, isSMS: true }),
    mailing({ target_channel: 'push', isEmail: true }),
    saying({ target_channel: 'email', isAndroid: true }),
  ])('is one alone: %j', async (fields) => {
    await expectRefused({ ...everybody, ...fields }, ONE_CHANNEL)
  })

  test('of an address is its own', async () => {
    await expectRefused(saying({ email_to: [anEmail()], target_channel: 'sms' }), ONE_CHANNEL)
    await expectRefused(saying({ include_phone_numbers: [aPhone()], isIos: true }), ONE_CHANNEL)
  })

  test('sms must be said', async () => {
    await expectRefused(saying({ ...everybody, sms_from: '+15558675309' }), 'sms_from needs target_channel sms')
  })
})

describe('platforms', () => {
  const platformsOf = async (flags: object) =>
    ((await rowOf(saying({ ...everybody, ...flags }))).options as { platforms?: string[] }).platforms

  test('are all unless one is named, which turns off the others', async () => {
    expect(await platformsOf({})).toBeUndefined()
    expect(await platformsOf({ isIos: true })).toEqual(['iOSPush'])
    expect(await platformsOf({ isIos: true, isAndroid: true, isHuawei: false })).toEqual(['AndroidPush', 'iOSPush'])
    expect(await platformsOf({ isAnyWeb: true })).toEqual([
      'ChromePush',
      'FirefoxPush',
      'SafariPush',
      'SafariLegacyPush',
    ])
    expect(await platformsOf({ isChromeWeb: true, isFirefox: true })).toEqual(['ChromePush', 'FirefoxPush'])
    expect(await platformsOf({ isAdm: true, isWP_WNS: true, isChrome: true })).toEqual([
      'FireOSPush',
      'WindowsPush',
      'ChromeExtensionPush',
    ])
  })

  test('said no to are left out where none is named', async () => {
    const left = await platformsOf({ isIos: false })
    expect(left).toContain('AndroidPush')
    expect(left).not.toContain('iOSPush')
  })

  test('count in who can be reached', async () => {
    const targets = { include_subscription_ids: push.subscriptionIds }
    expect(told(await messages.send(saying({ ...targets, isIos: true })))).toEqual(NOBODY_SUBSCRIBED)
    expect((await messages.send(saying({ ...targets, isAndroid: true }))).body.recipients).toBe(1)
  })
})

describe('content', () => {
  test.each([
    [{}, NO_ENGLISH],
    [{ contents: { fr: 'Bonjour' } }, NO_ENGLISH],
    [{ contents: { en: '' } }, NO_ENGLISH],
    [{ target_channel: 'sms' }, NO_ENGLISH],
    [{ email_subject: 'Hello' }, 'email_body is required for an email'],
    [{ email_body: 'Hello' }, 'email_subject is required for an email'],
    [saying({ url: 'https://example.com', web_url: 'https://example.com' }), 'url cannot be combined with web_url'],
    [saying({ url: 'https://example.com', app_url: 'app://x' }), 'url cannot be combined with app_url'],
    [saying({ url: 'javascript:alert(1)' }), 'url must be an address such as https://example.com'],
    [saying({ include_unsubscribed: true }), 'include_unsubscribed is for email alone, and target_channel is push'],
    [mailing({ kind: 'warmup' }), 'kind warmup and email_warm_up go together'],
    [mailing({ email_warm_up: { strategy: 'recommended' } }), 'kind warmup and email_warm_up go together'],
    [warming({ strategy: 'custom' }), 'email_warm_up.stages must have at least one stage'],
    [warming({ stages: [{ ...STAGE, end: STAGE.start }] }), 'email_warm_up.stages[0].end must be after its start'],
    [
      warming({ stages: [STAGE, STAGE] }),
      'email_warm_up.stages[1].start must not be before the end of the stage before it',
    ],
    [
      warming({ stages: [{ ...STAGE, start: 'soon' }] }),
      'email_warm_up.stages[0].start is not understood; write it like 2030-09-24T14:00:00Z',
    ],
    [warming({ stages: [{ ...STAGE, start: '2001-01-01', end: '2001-01-02' }] }), 'email_warm_up.stages are all over'],
    [warming({ stages: [{ ...STAGE, quota: 0 }] }), expect.stringMatching(/quota/)],
    [warming({ stages: [{ start: STAGE.start, end: STAGE.end }] }), expect.stringMatching(/quota/)],
    [
      { ...warming({ stages: [STAGE] }), send_after: '2030-09-24T14:00:00Z' },
      'kind warmup cannot be combined with send_after: its stages say when',
    ],
    [
      { ...warming({ stages: [STAGE] }), delayed_option: 'timezone' },
      'kind warmup cannot be combined with delayed_option: its stages say when',
    ],
    [
      saying({ kind: 'warmup', email_warm_up: { stages: [STAGE] } }),
      'kind warmup is for email alone, and target_channel is push',
    ],
    [saying({ contents: { en: 'Hello {{ name' } }), expect.stringMatching(/^contents\.en: line 1/)],
    [saying({ contents: { en: '{% for a in b %}{% endfor %}' } }), expect.stringMatching(/^contents\.en/)],
  ])('%j is refused', async (fields, error) => {
    await expectRefused({ ...everybody, ...fields }, error)
  })

  test('may be silent: content_available needs no text', async () => {
    expect(await rowOf({ ...everybody, content_available: true })).toMatchObject({
      content: { content_available: true },
    })
  })

  test.each([
    ['data', 2_048, { ...saying(), data: (n: number) => ({ a: 'x'.repeat(n - 8) }) }],
    ['custom_data', 2_048, { ...saying(), custom_data: (n: number) => ({ a: 'x'.repeat(n - 8) }) }],
    ['custom_data of an email', 10_240, { ...mailing(), custom_data: (n: number) => ({ a: 'x'.repeat(n - 8) }) }],
    ['name', 128, { ...saying(), name: (n: number) => '😀'.repeat(n) }],
    ['collapse_id', 64, { ...saying(), collapse_id: (n: number) => 'x'.repeat(n) }],
    ['ttl', 2_419_200, { ...saying(), ttl: (n: number) => n }],
    ['buttons', 3, { ...saying(), buttons: (n: number) => Array.from({ length: n }, () => ({ id: 'a', text: 'b' })) }],
    ['email_bcc', 5, { ...mailing(), email_bcc: (n: number) => Array.from({ length: n }, () => 'a@example.com') }],
    [
      'filters',
      200,
      {
        ...saying(),
        included_segments: null,
        filters: (n: number) => Array.from({ length: n }, () => tagIs('a', 'b')),
      },
    ],
  ])('%s has at most %i', async (_, most, fields) => {
    const made = (n: number) =>
      Object.fromEntries(Object.entries(fields).map(([name, it]) => [name, typeof it === 'function' ? it(n) : it]))
    for (const n of [most - 1, most]) expect((await messages.send({ ...everybody, ...made(n) })).status).toBe(200)
    const before = await messages.count()
    expect((await messages.send({ ...everybody, ...made(most + 1) })).status).toBe(400)
    expect(await messages.count()).toBe(before)
  })

  test('what Liquid and MJML say is kept with what they became', async () => {
    const row = await rowOf(
      mailing({ ...everybody, email_body: '<mjml><mj-body><mj-section></mj-section></mj-body></mjml>' }),
    )
    expect(row.emailHtml).toMatch(/<!doctype html>/i)
    expect(await rowOf(saying({ ...everybody, contents: { en: 'Hello {{ first_name }}' } }))).toMatchObject({
      content: { contents: { en: 'Hello {{ first_name }}' } },
    })
  })

  test('an answer never tells of fields that are not known, and takes none', async () => {
    const row = await rowOf(saying({ ...everybody, id: NOBODY, state: 'done', unknown_field: 1, recipients: 5 }))
    expect(row.content).toEqual({ contents: { en: 'Hello' } })
    expect(row.state).toBe('scheduled')
  })
})

describe('a template', () => {
  const made = async (fields: Record<string, unknown>) => (await templates.create(fields)).body.id as string

  test('is what the message says, with the request on top, as it was then', async () => {
    const template_id = await made(
      aPush({
        contents: { en: 'From the template', fr: 'Du modèle' },
        headings: { en: 'Title' },
        url: 'https://a.example',
        ttl: 60,
      }),
    )
    const row = await rowOf({
      ...everybody,
      template_id: template_id.toUpperCase(),
      headings: { en: 'Own' },
      web_url: 'https://b.example',
    })
    expect(row).toMatchObject({
      templateId: template_id,
      content: {
        contents: { en: 'From the template', fr: 'Du modèle' },
        headings: { en: 'Own' },
        web_url: 'https://b.example',
      },
      options: { ttl: 60 },
    })
    expect(row.content).not.toHaveProperty('url')
    await templates.update(template_id, { contents: { en: 'Changed' } })
    expect(row).toMatchObject({ content: { contents: { en: 'From the template' } } })
    await templates.remove(template_id)
    await expectRefused({ ...everybody, template_id }, `template_id names no template of this app: ${template_id}`)
  })

  test('decides the channel, and must be of the one that is asked for', async () => {
    const email = await made(anEmailTemplate({ dynamic_content: '{"a":{}}', name: 'A mail' }))
    expect(await rowOf({ ...everybody, template_id: email })).toMatchObject({
      channel: 'email',
      content: { isEmail: true, email_subject: 'Hello' },
      options: { template: { name: 'A mail', dynamicContent: '{"a":{}}' } },
    })
    const sms = await made(anSms())
    expect(await rowOf({ include_phone_numbers: [aPhone()], template_id: sms })).toMatchObject({ channel: 'sms' })
    await expectRefused(
      { include_phone_numbers: [aPhone()], template_id: email },
      'template_id names a template for email, and the message is for sms',
    )
  })

  test('names platforms unless the request does', async () => {
    const template_id = await made(aPush({ isIos: true }))
    expect(await rowOf({ ...everybody, template_id })).toMatchObject({ options: { platforms: ['iOSPush'] } })
    expect(await rowOf({ ...everybody, template_id, isAndroid: true })).toMatchObject({
      options: { platforms: ['AndroidPush'] },
    })
  })

  test('keeps what its MJML became, unless the request brings a body', async () => {
    const template_id = await made(
      anEmailTemplate({ email_body: '<mjml><mj-body><mj-section></mj-section></mj-body></mjml>' }),
    )
    expect((await rowOf({ ...everybody, template_id })).emailHtml).toMatch(/<!doctype html>/i)
    const own = await rowOf({ ...everybody, template_id, email_body: '<p>Own</p>' })
    expect(own).toMatchObject({ emailHtml: null, content: { email_body: '<p>Own</p>' } })
  })

  test('of another app is not there', async () => {
    const stranger = await app.anotherTenant()
    const template = await app.request('/templates', {
      headers: { authorization: `Key ${stranger.key}` },
      body: { app_id: stranger.id, ...aPush() },
    })
    const template_id = template.body.id
    await expectRefused({ ...everybody, template_id }, `template_id names no template of this app: ${template_id}`)
    await expectRefused({ ...everybody, template_id: 'nonsense' }, 'template_id must be a UUID')
  })
})

describe('options', () => {
  const optionsOf = async (fields: Record<string, unknown>) => (await rowOf({ ...everybody, ...fields })).options

  test('are kept', async () => {
    expect(
      await optionsOf(
        saying({
          ttl: 0,
          priority: 5,
          throttle_rate_per_minute: 600,
          enable_frequency_cap: false,
          at_least_once: true,
          is_test: true,
          custom_data: { a: { b: [1] } },
        }),
      ),
    ).toEqual({
      ttl: 0,
      priority: 5,
      throttlePerMinute: 600,
      frequencyCap: false,
      atLeastOnce: true,
      isTest: true,
      customData: { a: { b: [1] } },
    })
    expect(await optionsOf(mailing({ include_unsubscribed: true }))).toMatchObject({ includeUnsubscribed: true })
  })

  test('that say what is so anyway are left out', async () => {
    const fields = {
      enable_frequency_cap: true,
      at_least_once: false,
      is_test: false,
      delayed_option: 'immediate',
    }
    expect(await optionsOf(saying(fields))).toEqual({ ttl: 259_200, priority: 10 })
  })

  test('no throttle is kept: it lifts the one of the app', async () => {
    expect(await optionsOf(saying({ throttle_rate_per_minute: 0 }))).toMatchObject({ throttlePerMinute: 0 })
  })

  test.each(['', ' ', 'soon'])('send_after: %j is refused', async (send_after) => {
    await expectRefused(
      saying({ ...everybody, send_after }),
      'send_after is not understood; write it like 2030-09-24T14:00:00Z or 2030-09-24 14:00:00 GMT-0700',
    )
  })

  test('send_after: null is as good as none', async () => {
    expect((await rowOf(saying({ ...everybody, send_after: null }))).sendAfter).toEqual(new Date(NOW))
  })

  test('each at their own time', async () => {
    expect(await optionsOf(saying({ delayed_option: 'last-active' }))).toMatchObject({ delayedOption: 'last-active' })
    expect(await optionsOf(saying({ delayed_option: 'timezone', delivery_time_of_day: '9:45:30 pm' }))).toMatchObject({
      delayedOption: 'timezone',
      timeOfDay: 78_330,
      timeOfDayGiven: '9:45:30 pm',
    })
  })

  test.each([
    [saying({ send_after: 'soon' }), expect.stringMatching(/^send_after is not understood/)],
    [
      saying({ delayed_option: 'timezone', throttle_rate_per_minute: 5 }),
      'delayed_option cannot be combined with throttle_rate_per_minute',
    ],
    [
      saying({ delayed_option: 'timezone', target_channel: 'sms' }),
      'delayed_option cannot be combined with target_channel sms',
    ],
    [saying({ delivery_time_of_day: '9:00AM' }), 'delivery_time_of_day needs delayed_option timezone'],
    [
      saying({ delayed_option: 'last-active', delivery_time_of_day: '9:00AM' }),
      'delivery_time_of_day cannot be combined with delayed_option last-active',
    ],
    [
      saying({ delayed_option: 'timezone', delivery_time_of_day: 'noon' }),
      'delivery_time_of_day must be a time such as 9:00AM, 21:45 or 09:45:30',
    ],
    [
      mailing({ throttle_rate_per_minute: 5 }),
      'throttle_rate_per_minute is for push alone, and target_channel is email',
    ],
    ...['-1', 'abc', 1.5, -1, '1e3', ' 5'].map((rate) => [
      saying({ throttle_rate_per_minute: rate }),
      'throttle_rate_per_minute must be a whole number of messages, or 0 for no limit',
    ]),
    [saying({ idempotency_key: 'nonsense' }), 'idempotency_key must be a UUID'],
    [saying({ external_id: 'nonsense' }), 'external_id must be a UUID'],
  ] as [Record<string, unknown>, unknown][])('%j is refused', async (fields, error) => {
    await expectRefused({ ...everybody, ...fields }, error)
  })

  test('a text is never taken for a number, but for the throttle, which the official client sends as one', async () => {
    expect(await optionsOf(saying({ throttle_rate_per_minute: '60' }))).toMatchObject({ throttlePerMinute: 60 })
    expect((await messages.send(saying({ ...everybody, ttl: '60' }))).status).toBe(400)
    expect((await messages.send(saying({ ...everybody, is_test: 'true' }))).status).toBe(400)
  })
})
