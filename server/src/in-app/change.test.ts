import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import {
  anInApp,
  createInApp,
  deleteInApp,
  IN_APP_NOT_FOUND,
  refused,
  someContents,
  updateInApp,
  viewInApp,
} from '../../test/in-app.ts'
import { aSegment, tagIs } from '../../test/segments.ts'
import { aName, anId, NOBODY, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'

let app: TestApp
const clock = virtualClock('2030-05-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const none = { total: 0, unique: 0 }

describe('a new in-app message', () => {
  test('is a draft for everybody, in the centre, shown once', async () => {
    const name = aName('in-app')
    const { status, body } = await createInApp(app, { name })
    expect({ status, body }).toEqual({
      status: 201,
      body: {
        id: anId(),
        name,
        state: 'draft',
        is_active: false,
        contents: { en: { title: 'Hello' } },
        variants: { en: anId() },
        has_liquid: false,
        display_location: 'center',
        display_duration: null,
        styles: { remove_height_margin: false, remove_width_margin: false },
        triggers: [],
        audience: 'segments',
        included_segments: [],
        excluded_segments: [],
        missing_segments: [],
        platforms: [],
        redisplay: null,
        start_time: null,
        end_time: null,
        created_at: '2030-05-01T09:00:00.000Z',
        updated_at: '2030-05-01T09:00:00.000Z',
        stats: {
          impressions: none,
          clicks: none,
          page_impressions: none,
          variants: [{ id: body.variants.en, language: 'en', impressions: none, clicks: none }],
          buttons: [],
          pages: [],
        },
      },
    })
    expect(await viewInApp(app, body.id)).toEqual(body)
  })

  test('is kept as it was given, with segments by name or id and ids for its triggers', async () => {
    const filters = [tagIs('plan', 'gold')]
    const byId = await aSegment(app, filters)
    const name = aName('segment')
    const byName = await aSegment(app, filters, { name })
    const button = {
      id: 'buy',
      text: 'Buy',
      name: 'bought',
      url: 'myapp://shop',
      url_target: 'browser',
      prompt: 'push',
      add_tags: { seen: 'yes' },
      remove_tags: ['new'],
      close: false,
      background_color: '#0057ff',
      text_color: '#fff',
    }
    const contents = {
      en: { title: 'A', body: 'B', image_url: 'https://example.com/a.png', image_alt: 'C', buttons: [button] },
      de: { html: '<p>Hallo</p>' },
    }
    const settings = {
      contents,
      display_location: 'bottom',
      display_duration: 12.5,
      styles: { remove_height_margin: true, remove_width_margin: false },
      audience: 'granted',
      platforms: ['ios', 'web'],
      redisplay: { limit: 3, delay: 60 },
      start_time: '2030-05-02T00:00:00.000Z',
      end_time: '2030-05-03T00:00:00.000Z',
    }
    const triggers = [
      [
        { property: 'level', operator: 'greater', value: 3 },
        { kind: 'session_time', operator: 'greater', value: 30 },
      ],
      [
        { kind: 'time_since_last_in_app', value: 60 },
        { property: 'vip', operator: 'exists' },
      ],
    ]
    const message = await anInApp(app, {
      ...settings,
      triggers,
      included_segments: [byId.toUpperCase(), name, 'Subscribed Users', name],
      excluded_segments: [byId],
    })
    expect(message).toMatchObject({ ...settings, state: 'live', is_active: true, has_liquid: false })
    expect(message.triggers).toEqual([
      [
        { id: anId(), kind: 'custom', property: 'level', operator: 'greater', value: 3 },
        { id: anId(), kind: 'session_time', operator: 'greater', value: 30 },
      ],
      [
        { id: anId(), kind: 'min_time_since', operator: 'greater_or_equal', value: 60 },
        { id: anId(), kind: 'custom', property: 'vip', operator: 'exists' },
      ],
    ])
    expect(message.included_segments).toEqual([byId, byName, anId()])
    expect(message.excluded_segments).toEqual([byId])
  })

  test('can be sent back as it was answered', async () => {
    const message = await anInApp(app, { included_segments: ['Active Users'], end_time: '2031-01-01T00:00:00Z' })
    const { status, body } = await updateInApp(app, message.id, message)
    expect(status).toBe(200)
    expect(body).toEqual(message)
  })
})

describe('what is refused', () => {
  const en = (content: object) => ({ contents: { en: content } })
  const trigger = (it: unknown) => ({ triggers: [[it]] })

  test.each<[string, object, RegExp]>([
    ['no name', { name: undefined }, /^name is required/],
    ['a name of spaces', { name: '  ' }, /^name must not be empty/],
    ['a name of 129 characters', { name: 'x'.repeat(129) }, /^name must have at most 128 characters/],
    ['a name with U+0000', { name: 'a\0' }, /name/],
    ['no contents', { contents: undefined }, /^contents is required/],
    ['no English', { contents: { de: { title: 'a' } } }, /^contents must have English content/],
    [
      'an unknown language',
      { contents: { ...someContents, xx: { title: 'a' } } },
      /^contents\.xx is not one of the languages/,
    ],
    ['nothing to show', en({ image_alt: 'a' }), /^contents\.en must have html, a title, a body or an image_url/],
    ['empty HTML', en({ html: ' ' }), /^contents\.en\.html must not be empty/],
    ['HTML beside fields', en({ html: '<p>', title: 'a' }), /^contents\.en can have html or other fields, not both/],
    [
      'a picture that is none',
      en({ image_url: 'javascript:alert(1)' }),
      /^contents\.en\.image_url must be an https address/,
    ],
    ['a picture over http', en({ image_url: 'http://example.com/a.png' }), /^contents\.en\.image_url must be an https/],
    ['a colour that is none', en({ title: 'a', background_color: 'red;x' }), /^contents\.en\.background_color/],
    [
      'a link that runs code',
      en({ title: 'a', buttons: [{ id: 'x', text: 'y', url: 'javascript:a' }] }),
      /buttons\[0\]\.url must be/,
    ],
    [
      'Liquid in a link',
      en({ title: 'a', buttons: [{ id: 'x', text: 'y', url: 'https://a.b/{{ c }}' }] }),
      /buttons\[0\]\.url must be/,
    ],
    [
      'a button without a text',
      en({ title: 'a', buttons: [{ id: 'x' }] }),
      /^contents\.en\.buttons\[0\]\.text is required/,
    ],
    [
      'two buttons with one id',
      en({
        title: 'a',
        buttons: [
          { id: 'x', text: 'y' },
          { id: 'x', text: 'z' },
        ],
      }),
      /buttons\[1\]\.id is that of another/,
    ],
    [
      'the id of the cross',
      en({ title: 'a', buttons: [{ id: 'close', text: 'y' }] }),
      /buttons\[0\]\.id "close" is that of the cross/,
    ],
    [
      'Liquid that is more than a tag',
      en({ title: 'a\n {% if x %}b{% endif %}' }),
      /^contents\.en\.title: line 2, column 2: only tags/,
    ],
    ['a filter', en({ html: '<p>{{ name | upcase }}</p>' }), /^contents\.en\.html: line 1, column 4: only tags/],
    ['half an expression', en({ body: '{{ name' }), /^contents\.en\.body: line 1, column 1: only tags/],
    [
      '101 things to click',
      en({ html: Array.from({ length: 101 }, (_, i) => `<a data-onesignal-unique-label="${i}">`).join('') }),
      /^contents can have at most 100 things to click/,
    ],
    [
      'an id of 129 characters',
      en({ html: `<a data-page-id='${'x'.repeat(129)}'>` }),
      /^contents: the ids of pages can have at most 128/,
    ],
    ['a state that is none', { state: 'gone' }, /^state must be/],
    ['a place that is none', { display_location: 'left' }, /^display_location must be/],
    ['no time to be seen', { display_duration: 0 }, /^display_duration must be/],
    ['triggers that are no list', { triggers: [{ property: 'a' }] }, /^triggers\[0\] must be a list/],
    ['an empty list of triggers', { triggers: [[]] }, /^triggers\[0\] must have at least one trigger/],
    [
      '21 lists',
      { triggers: Array.from({ length: 21 }, () => [{ property: 'a', operator: 'exists' }]) },
      /^triggers must have at most 20 entries/,
    ],
    ['a trigger that is no object', trigger(1), /^triggers\[0\]\[0\] must be an object/],
    [
      'a kind that is none',
      trigger({ kind: 'unknown' }),
      /^triggers\[0\]\[0\]\.kind must be one of custom, session_time, min_time_since/,
    ],
    ['no property', trigger({ operator: 'exists' }), /^triggers\[0\]\[0\]\.property must be a string/],
    [
      'an operator that is none',
      trigger({ property: 'a', operator: '>', value: 1 }),
      /^triggers\[0\]\[0\]\.operator must be one of equal/,
    ],
    [
      'a value that is missing',
      trigger({ property: 'a', operator: 'equal' }),
      /^triggers\[0\]\[0\]\.value must be a string/,
    ],
    [
      'a long value',
      trigger({ property: 'a', operator: 'equal', value: 'x'.repeat(257) }),
      /^triggers\[0\]\[0\]\.value must have at most 256/,
    ],
    [
      'a time that is text',
      trigger({ kind: 'session_time', operator: 'greater', value: '30' }),
      /^triggers\[0\]\[0\]\.value must be a number of seconds/,
    ],
    [
      'a time that exists',
      trigger({ kind: 'session_time', operator: 'exists', value: 3 }),
      /^triggers\[0\]\[0\]\.operator must be one of equal/,
    ],
    [
      'a segment that is not there',
      { included_segments: ['Nobody at all'] },
      /^Segment "Nobody at all" was not found$/,
    ],
    ['an id that is no segment', { excluded_segments: [NOBODY] }, /^Segment ".*dead" was not found$/],
    [
      '11 segments',
      { included_segments: Array.from({ length: 11 }, () => 'Active Users') },
      /^included_segments must have at most 10/,
    ],
    ['a platform that is none', { platforms: ['windows'] }, /^platforms\[0\] must be/],
    ['half of redisplay', { redisplay: { limit: 2 } }, /^redisplay\.delay is required/],
    [
      'an end before the start',
      { start_time: '2030-01-02T00:00:00Z', end_time: '2030-01-02T00:00:00Z' },
      /^end_time must be later than start_time/,
    ],
    ['a time that is none', { end_time: 'tomorrow' }, /^end_time must be/],
    ['a time before all', { start_time: '0000-01-01T00:00:00Z' }, /^start_time must be a time from 1970 to 9999/],
    ['the 61st second', { start_time: '2016-12-31T23:59:60Z' }, /^start_time must be/],
  ])('%s', async (_, fields, says) => {
    const before = (await app.app('/in_app_messages')).body.total_count
    const { status, body } = await createInApp(app, { ...fields })
    expect({ status, body }).toEqual(refused(expect.stringMatching(says)))
    expect((await app.app('/in_app_messages')).body.total_count).toBe(before)
  })

  test('all that is wrong with the content is told at once', async () => {
    const contents = { en: { html: '{% x %}' }, de: { title: 'a', image_url: 'x' } }
    expect((await createInApp(app, { contents })).body.errors).toHaveLength(2)
  })

  test('texts as long as they may be are taken', async () => {
    const emoji = '🔔'
    const contents = { en: { title: emoji.repeat(500), body: emoji.repeat(5_000) } }
    const made = await createInApp(app, { name: emoji.repeat(128), contents })
    expect(made.status).toBe(201)
    expect(made.body.contents).toEqual(contents)
    expect((await createInApp(app, { contents: { en: { html: 'x'.repeat(500_000) } } })).status).toBe(201)
    expect((await createInApp(app, { contents: { en: { html: 'x'.repeat(500_001) } } })).status).toBe(400)
  })
})

describe('an update', () => {
  test('replaces what is given, takes away what is null, and leaves the rest', async () => {
    const message = await anInApp(app, {
      contents: { en: { title: 'Hello' }, de: { title: 'Hallo' }, fr: { title: 'Bonjour' } },
      display_location: 'top',
      display_duration: 5,
      redisplay: { limit: 2, delay: 0 },
      platforms: ['ios'],
      included_segments: ['Active Users'],
      start_time: '2030-01-01T00:00:00Z',
      styles: { remove_height_margin: true },
      triggers: [[{ property: 'a', operator: 'exists' }]],
      audience: 'granted',
    })
    clock.advance({ seconds: 1 })
    const { status, body } = await updateInApp(app, message.id, {
      name: 'New',
      contents: { en: { title: 'Hi' }, de: { title: 'Hallo' }, es: { title: 'Hola' } },
      redisplay: null,
      included_segments: null,
      start_time: null,
      styles: null,
      triggers: null,
      audience: null,
    })
    expect(status).toBe(200)
    expect(body).toEqual({
      ...message,
      name: 'New',
      contents: { en: { title: 'Hi' }, de: { title: 'Hallo' }, es: { title: 'Hola' } },
      variants: { en: message.variants.en, de: message.variants.de, es: anId() },
      redisplay: null,
      included_segments: [],
      start_time: null,
      styles: { remove_height_margin: false, remove_width_margin: false },
      triggers: [],
      audience: 'segments',
      updated_at: clock.now().toISOString(),
      stats: expect.anything(),
    })
  })

  test('that is wrong changes nothing', async () => {
    const message = await anInApp(app, { end_time: '2031-01-01T00:00:00Z' })
    expect((await updateInApp(app, message.id, { name: 'New', start_time: '2032-01-01T00:00:00Z' })).status).toBe(400)
    expect((await updateInApp(app, message.id, { name: 'New', contents: { en: {} } })).status).toBe(400)
    expect((await updateInApp(app, message.id, { name: null })).status).toBe(400)
    expect(await viewInApp(app, message.id)).toEqual(message)
  })

  test('works on a message whose segment was deleted, and the message says so', async () => {
    const segment = await aSegment(app, [tagIs('plan', 'gold')])
    const message = await anInApp(app, { included_segments: ['Active Users'], excluded_segments: [segment] })
    await app.app(`/segments/${segment}`, { method: 'DELETE' })
    const { status, body } = await updateInApp(app, message.id, { state: 'paused' })
    expect({ status, missing: body.missing_segments }).toEqual({ status: 200, missing: [segment] })
  })

  test('updates at once are all done', async () => {
    const message = await anInApp(app)
    const changes = [
      { name: 'New' },
      { display_duration: 7 },
      { platforms: ['web'] },
      { redisplay: { limit: 9, delay: 9 } },
    ]
    await Promise.all(changes.map((change) => updateInApp(app, message.id, change)))
    expect(await viewInApp(app, message.id)).toMatchObject(Object.assign({}, ...changes))
  })
})

describe('states', () => {
  const all = ['draft', 'live', 'paused', 'archived']
  const ways: Record<string, string[]> = {
    draft: ['live', 'archived'],
    live: ['paused', 'archived'],
    paused: ['live', 'archived'],
  }
  const way: Record<string, string[]> = {
    draft: [],
    live: ['live'],
    paused: ['live', 'paused'],
    archived: ['archived'],
  }

  async function inState(state: string): Promise<string> {
    const { id } = (await createInApp(app)).body
    for (const step of way[state] as string[]) await updateInApp(app, id, { state: step })
    return id
  }

  test.each(all)('from %s', async (from) => {
    for (const to of all) {
      const id = await inState(from)
      const { status, body } = await updateInApp(app, id, { state: to })
      const isWay = ways[from]?.includes(to) || (from === to && from !== 'archived')
      expect({ to, status }).toEqual({ to, status: isWay ? 200 : 400 })
      if (isWay) expect(body).toMatchObject({ state: to, is_active: to === 'live' })
      else expect((await viewInApp(app, id)).state).toBe(from)
      await deleteInApp(app, id)
    }
  })

  test('a new one is a draft or live', async () => {
    expect((await createInApp(app, { state: 'paused' })).body.errors).toEqual([
      'state of a new message must be draft or live',
    ])
  })

  test('what is archived is not changed any more', async () => {
    const id = await inState('archived')
    expect(told(await updateInApp(app, id, { name: 'New' }))).toEqual(refused('An archived message cannot be changed'))
  })
})

test('at most 100 are live at once, however close together they come; those that have ended do not count', async () => {
  const own = await testApp({ clock })
  try {
    for (let i = 0; i < 95; i++) await anInApp(own)
    const past = await anInApp(own, { end_time: new Date(clock.now().getTime() + 1).toISOString() })
    clock.advance({ seconds: 1 })
    const drafts = await Promise.all(Array.from({ length: 6 }, () => anInApp(own, { state: 'draft' })))
    const full = refused('An app can have at most 100 live in-app messages')
    const answers = await Promise.all([
      ...drafts.map(({ id }) => updateInApp(own, id, { state: 'live' })),
      ...Array.from({ length: 6 }, () => createInApp(own, { state: 'live' })),
    ])
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(5)
    for (const answer of answers) if (answer.status >= 300) expect(told(answer)).toEqual(full)
    expect(told(await updateInApp(own, past.id, { end_time: null }))).toEqual(full)
    expect((await updateInApp(own, past.id, { name: 'New' })).status).toBe(200)
  } finally {
    await own.close()
  }
})

describe('the list', () => {
  test('is oldest first, by pages, and of the app alone', async () => {
    const own = await testApp({ clock })
    try {
      const ids: string[] = []
      for (let i = 0; i < 5; i++) {
        clock.advance({ seconds: 1 })
        ids.push((await anInApp(own)).id)
      }
      const { body } = await own.app('/in_app_messages?limit=2&offset=1')
      expect(body).toMatchObject({ total_count: 5, limit: 2, offset: 1 })
      expect(body.in_app_messages.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1, 3))
      expect(body.in_app_messages[0]).toEqual({
        id: ids[1],
        name: expect.any(String),
        state: 'live',
        is_active: true,
        start_time: null,
        end_time: null,
        created_at: expect.any(String),
        updated_at: expect.any(String),
      })
      expect((await own.app('/in_app_messages?offset=9')).body).toEqual({
        in_app_messages: [],
        total_count: 5,
        limit: 50,
        offset: 9,
      })
      for (const query of ['limit=0', 'limit=51', 'limit=x', 'offset=-1'])
        expect((await own.app(`/in_app_messages?${query}`)).status, query).toBe(400)
    } finally {
      await own.close()
    }
  })
})

describe('deleting', () => {
  test('is for good', async () => {
    const { id, variants } = await anInApp(app)
    expect(told(await deleteInApp(app, id))).toEqual({ status: 200, body: { success: true } })
    expect(told(await app.app(`/in_app_messages/${id}`))).toEqual(IN_APP_NOT_FOUND)
    expect(told(await deleteInApp(app, id))).toEqual(IN_APP_NOT_FOUND)
    expect(told(await updateInApp(app, id, { name: 'x' }))).toEqual(IN_APP_NOT_FOUND)
    const preview = `/in_app_messages/device_preview?app_id=${app.tenant.id}&preview_id=${variants.en}`
    expect(told(await app.request(preview))).toEqual(IN_APP_NOT_FOUND)
  })

  test.each(['x', '1'])('what is no id (%s) is told', async (id) => {
    expect(told(await deleteInApp(app, id))).toEqual(refused('in_app_message_id must be a UUID'))
  })
})

test('changes are in the audit log, with who made them', async () => {
  const { id } = await anInApp(app, { name: 'Logged' })
  clock.advance({ seconds: 1 })
  await updateInApp(app, id, { state: 'paused', display_duration: 3 })
  clock.advance({ seconds: 1 })
  await deleteInApp(app, id)
  const start = encodeURIComponent(new Date(clock.now().getTime() - 60_000).toISOString())
  const end = encodeURIComponent(new Date(clock.now().getTime() + 60_000).toISOString())
  const { body } = await app.request(
    `/organizations/${app.tenant.organizationId}/audit_logs?start_time=${start}&end_time=${end}&target_ids=${id}`,
    { headers: { authorization: `Key ${app.tenant.organizationKey}` } },
  )
  expect(body.audit_logs.map((it: Record<string, unknown>) => [it.action, it.metadata, it.targets])).toEqual([
    ['in_app_message.create', { name: 'Logged', state: 'live' }, [{ type: 'in_app_message', id }]],
    [
      'in_app_message.update',
      { name: 'Logged', state: 'paused', fields: ['state', 'display_duration'] },
      [{ type: 'in_app_message', id }],
    ],
    ['in_app_message.delete', { name: 'Logged' }, [{ type: 'in_app_message', id }]],
  ])
  expect(body.audit_logs[0].actor.type).toBe('key')
})
