// Every limit at its edge, in every kind of character: what is accepted is read back to the byte, everything else is a 4xx.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, type TestApp, testApp } from '../app.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const TIMEOUT = { timeout: 5 * 60_000 }
let made = 0
const unique = (word: string) => `${word}${++made}`
const segment = encodeURIComponent
/** Clients resolve the segments "." and "..", encoded or not, before they send them; such an alias is read by the user's id. */
const identityPath = (label: string, value: string, answer: Answer) =>
  [label, value].some((it) => /^\.{1,2}$/.test(it))
    ? `/users/by/onesignal_id/${answer.body.identity.onesignal_id}/identity`
    : `/users/by/${segment(label)}/${segment(value)}/identity`
const patch = (path: string, body: unknown, headers = {}) => app.app(path, { method: 'PATCH', body, headers })
const aUser = async (body: object = {}) => {
  const external_id = unique('user')
  const answer = await app.app('/users', { body: { identity: { external_id }, ...body } })
  return { path: `/users/by/external_id/${external_id}`, answer }
}
const player = (body: object) => app.request('/players', { body: { app_id: app.tenant.id, device_type: 1, ...body } })

async function throughPlayer(field: string, text: string): Promise<Written> {
  const answer = await player({ identifier: unique('token'), [field]: text })
  const read = async () => (await app.request(`/players/${answer.body.id}?app_id=${app.tenant.id}`)).body[field]
  return { answer, read }
}

type Written = { answer: Answer; read: () => Promise<unknown> }
type Field = { name: string; max: number; empty: 'refused' | 'none' | 'kept'; write(text: string): Promise<Written> }

const throughUser = (
  name: string,
  max: number,
  empty: Field['empty'],
  bodyOf: (text: string) => unknown,
  pick: (body: Answer['body'], text: string) => unknown,
): Field => ({
  name,
  max,
  empty,
  async write(text) {
    const { path } = await aUser()
    const answer = await patch(path, bodyOf(text))
    return { answer, read: async () => pick((await app.app(path)).body, text) }
  },
})

const ofSubscription = (field: string, max: number): Field => ({
  name: `subscription ${field}`,
  max,
  empty: 'kept',
  async write(text) {
    const { path, answer } = await aUser({
      subscriptions: [{ type: 'iOSPush', token: unique('token'), [field]: text }],
    })
    return { answer, read: async () => (await app.app(path)).body.subscriptions[0][field] }
  },
})

const fields: Field[] = [
  {
    name: 'alias value',
    max: 128,
    empty: 'refused',
    async write(text) {
      const label = unique('label')
      const answer = await app.app('/users', { body: { identity: { [label]: text } } })
      return {
        answer,
        read: async () => (await app.app(identityPath(label, text, answer))).body.identity[label],
      }
    },
  },
  {
    name: 'alias label',
    max: 128,
    empty: 'refused',
    async write(text) {
      const value = unique('value')
      const answer = await app.app('/users', { body: { identity: { [text]: value } } })
      const read = async () => {
        const { body } = await app.app(identityPath(text, value, answer))
        return Object.keys(body.identity).find((label) => body.identity[label] === value)
      }
      return { answer, read }
    },
  },
  {
    name: 'alias value of an existing user',
    max: 128,
    empty: 'refused',
    async write(text) {
      const label = unique('label')
      const { path } = await aUser()
      const answer = await patch(`${path}/identity`, { identity: { [label]: text } })
      return { answer, read: async () => (await app.app(`${path}/identity`)).body.identity[label] }
    },
  },
  {
    name: 'external id of a player',
    max: 128,
    empty: 'none',
    write: (text) => throughPlayer('external_user_id', text),
  },
  { name: 'game version of a player', max: 256, empty: 'kept', write: (text) => throughPlayer('game_version', text) },
  { name: 'advertising id of a player', max: 256, empty: 'kept', write: (text) => throughPlayer('ad_id', text) },
  throughUser(
    'tag key',
    255,
    'refused',
    (text) => ({ properties: { tags: { [text]: 'x' } } }),
    ({ properties }) => Object.keys(properties.tags)[0],
  ),
  throughUser(
    'tag value',
    1024,
    'none',
    (text) => ({ properties: { tags: { key: text } } }),
    ({ properties }) => properties.tags.key,
  ),
  throughUser(
    'test user name',
    128,
    'none',
    (text) => ({ properties: { test_user_name: text } }),
    ({ properties }) => properties.test_user_name,
  ),
  throughUser(
    'purchase sku',
    255,
    'refused',
    (sku) => ({ deltas: { purchases: [{ sku, iso: 'EUR', amount: '1' }] } }),
    ({ properties }) => properties.purchases[0].sku,
  ),
  {
    name: 'push token',
    max: 4096,
    empty: 'kept',
    async write(text) {
      const { path, answer } = await aUser({ subscriptions: [{ type: 'AndroidPush', token: text }] })
      return { answer, read: async () => (await app.app(path)).body.subscriptions[0].token }
    },
  },
  ofSubscription('sdk', 256),
  ofSubscription('web_auth', 1024),
]

/** Fields without a length of interest, or with a form of their own: whatever is accepted must come back as it was. */
const otherFields: Field[] = [
  ...['device_model', 'device_os', 'app_version', 'carrier'].map((it) => ofSubscription(it, 256)),
  ofSubscription('web_p256', 1024),
  ofSubscription('type', 64),
  ...['language', 'timezone_id', 'country', 'ip'].map((name) =>
    throughUser(
      name,
      64,
      'none',
      (text) => ({ properties: { [name]: text } }),
      ({ properties }) => properties[name],
    ),
  ),
  ...['iso', 'amount'].map((name) =>
    throughUser(
      `purchase ${name}`,
      64,
      'refused',
      (text) => ({ deltas: { purchases: [{ sku: 'x', iso: 'EUR', amount: '1', [name]: text }] } }),
      ({ properties }) => properties.purchases[0][name],
    ),
  ),
  ...['Email', 'SMS'].map(
    (type): Field => ({
      name: `${type} token`,
      max: 254,
      empty: 'refused',
      async write(token) {
        const { path, answer } = await aUser({ subscriptions: [{ type, token }] })
        return { answer, read: async () => (await app.app(path)).body.subscriptions[0].token }
      },
    }),
  ),
  ...['device_model', 'sdk', 'identifier'].map(
    (field): Field => ({
      name: `player ${field}`,
      max: 256,
      empty: 'kept',
      write: (text) => throughPlayer(field, text),
    }),
  ),
]

const units: Record<string, string> = {
  ASCII: 'a',
  'two bytes': 'é',
  'three bytes': '한',
  'four bytes': '🔔',
  'combining mark': 'e\u0301',
  'joined family': '👨‍👩‍👧‍👦',
  'right-to-left mark': 'א\u200f',
}
/** So many code points of this kind, no two alike: a token or alias of one case is not that of another. */
function ofLength(unit: string, length: number, distinct: string): string {
  const points = [...distinct, ...unit.repeat(Math.ceil(length / [...unit].length))]
  return points.slice(0, length).join('')
}

type Case = { name: string; run: () => Promise<string | undefined> }
const cases: Case[] = []
const describeAnswer = ({ status, body }: Answer) => `${status} ${JSON.stringify(body).slice(0, 200)}`

async function keeps(field: Field, text: string) {
  const { answer, read } = await field.write(text)
  if (answer.status >= 300) return `refused: ${describeAnswer(answer)}`
  const got = await read()
  return got === text ? undefined : `read back ${JSON.stringify(got)?.slice(0, 100)}`
}
async function refuses(field: Field, text: string, status = 400) {
  const { answer } = await field.write(text)
  return answer.status === status ? undefined : `not refused: ${describeAnswer(answer)}`
}
async function keepsOrRefuses(field: Field, text: string) {
  const { answer, read } = await field.write(text)
  if (answer.status >= 500) return describeAnswer(answer)
  if (answer.status >= 400) return undefined
  const got = await read()
  return got === text ? undefined : `read back ${JSON.stringify(got)?.slice(0, 100)}`
}

for (const field of fields) {
  for (const [kind, unit] of Object.entries(units))
    for (const length of [field.max - 1, field.max, field.max + 1]) {
      const text = ofLength(unit, length, `${field.name}${kind}${length}`.replaceAll(/\W/g, '').slice(0, 60))
      const expected = length > field.max ? refuses : keeps
      cases.push({ name: `${field.name}: ${length} of ${kind}`, run: () => expected(field, text) })
    }
  cases.push({
    name: `${field.name}: empty`,
    async run() {
      if (field.empty === 'refused') return refuses(field, '')
      if (field.empty === 'kept') {
        const { answer, read } = await field.write('')
        const got = answer.status < 300 ? await read() : answer.status
        return got === '' || got === null ? undefined : `got ${JSON.stringify(got)}`
      }
      const { answer, read } = await field.write('')
      const got = answer.status < 300 ? await read() : answer.status
      return got === undefined || got === null ? undefined : `got ${JSON.stringify(got)}`
    },
  })
  cases.push({ name: `${field.name}: huge`, run: () => refuses(field, 'x'.repeat(100_000)) })
  const refused: Record<string, string> = {
    'U+0000': 'a\0b',
    'first half of a pair': 'a\ud83d',
    'second half of a pair': '\udd14a',
    'halves in the wrong order': '\udd14\ud83d',
  }
  for (const [kind, text] of Object.entries(refused))
    cases.push({ name: `${field.name}: ${kind}`, run: () => refuses(field, text) })
  const kept: Record<string, string> = {
    'U+FFFF': 'a\uffffb',
    'U+FFFE': '\ufffe',
    'U+FFFD': 'a\ufffdb',
    'last code point': '\u{10ffff}',
    'byte order mark': '\ufeffa',
    'spaces around': '  a  ',
    'control characters': '\u0001\t\n\r\u001f\u007f\u0085\u2028',
    'a joined family': '👨‍👩‍👧‍👦',
    'right-to-left override': 'a\u202eb\u202c',
    composed: 'caf\u00e9',
    decomposed: 'cafe\u0301',
    'upper case': 'ABC',
    'dotless i': 'ıİ',
    'ligature and sharp s': 'ﬁß',
  }
  for (const [kind, text] of Object.entries(kept))
    cases.push({ name: `${field.name}: ${kind}`, run: () => keeps(field, text) })
}

async function runAll(list: Case[]): Promise<string[]> {
  const wrong: string[] = []
  let next = 0
  const work = async () => {
    while (next < list.length) {
      const { name, run } = list[next++] as Case
      const problem = await run().catch((error: unknown) => `failed: ${String(error)}`)
      if (problem !== undefined) wrong.push(`${name}: ${problem}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  return wrong
}

test('texts at their limits', TIMEOUT, async () => {
  expect(cases.length).toBeGreaterThan(500)
  expect(await runAll(cases)).toEqual([])
})

const nasty = [
  `'; drop table users; --`,
  `" or ""="`,
  `$1`,
  `$$; select pg_sleep(1); $$`,
  `\\'; --`,
  `%s%s%n`,
  `{{constructor.constructor('return process')()}}`,
  '$' + '{7*7}',
  '{% raw %}',
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '&lt;&#0;',
  '=HYPERLINK("http://x")',
  '@SUM(1)',
  '../../etc/passwd',
  '..',
  '.',
  '%00',
  '%2e%2e%2f',
  'a/b?c#d&e=f+g h;i',
  '\\u0000',
  '\\',
  '"',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'NaN',
  'true',
  '0',
  '-1',
  '1e1000',
  '[]',
  '{}',
  '\r\nSet-Cookie: a=b',
  '\u001b[31m',
  '\u202e\u2066',
  'Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢',
  '🏳️‍🌈',
  'onesignal_id',
  'external_id',
  ' ',
  '\t',
  '\u00a0',
  'x'.repeat(5_000),
  '🔔'.repeat(5_000),
]

test('nasty texts in every field come back as they were or are refused', TIMEOUT, async () => {
  const list = [...fields, ...otherFields].flatMap((field) =>
    nasty.map((text) => ({
      name: `${field.name}: ${JSON.stringify(text.slice(0, 40))}`,
      run: () => keepsOrRefuses(field, text),
    })),
  )
  expect(await runAll(list)).toEqual([])
})

test('twins that look alike are different aliases', TIMEOUT, async () => {
  const twins = ['caf\u00e9', 'cafe\u0301', 'CAFÉ', 'café ', ' café', 'café\u200d', 'сafé', 'cafe\u0301\u200f']
  const mine = unique('twin')
  const labels = [mine, `${mine}\u00e9`, `${mine}e\u0301`]
  for (const label of labels)
    for (const value of twins)
      expect((await app.app('/users', { body: { identity: { [label]: value } } })).status).toBe(201)
  for (const label of labels)
    for (const value of twins) {
      const { body } = await app.app(`/users/by/${segment(label)}/${segment(value)}/identity`)
      expect(Object.entries(body.identity)[1]).toEqual([label, value])
    }
})

const invalidUuid = [{ code: 'request-1', title: 'Invalid UUID' }]
const uuid = '5f2b4c8e-1d3a-4e6f-8b9c-0a1b2c3d4e5f'

test('ids in paths, headers and bodies', TIMEOUT, async () => {
  const malformed = [
    'x',
    uuid.slice(1),
    `${uuid}0`,
    uuid.replaceAll('-', ''),
    `{${uuid}}`,
    `urn:uuid:${uuid}`,
    uuid.replace('5', 'g'),
    ` ${uuid}`,
    `${uuid} `,
    `${uuid}\n`,
    '٥'.repeat(36),
    '-1',
    '0',
    'null',
  ]
  const wellFormed = [
    uuid,
    uuid.toUpperCase(),
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '5f2b4c8e-1d3a-1e6f-0b9c-0a1b2c3d4e5f',
  ]
  const { path } = await aUser()
  const identity = { a: 'b' }
  const places: [string, (id: string) => Promise<Answer>, string, number][] = [
    ['user', (id) => app.app(`/users/by/onesignal_id/${segment(id)}`), 'onesignal_id', 404],
    ['alias', (id) => patch(`/users/by/onesignal_id/${segment(id)}/identity`, { identity }), 'onesignal_id', 404],
    ['update', (id) => patch(`/users/by/onesignal_id/${segment(id)}`, {}), 'onesignal_id', 404],
    ['delete', (id) => app.app(`/users/by/onesignal_id/${segment(id)}`, { method: 'DELETE' }), 'onesignal_id', 404],
    ['subscription', (id) => patch(`/subscriptions/${segment(id)}`, { subscription: {} }), 'subscription_id', 404],
    ['its identity', (id) => app.app(`/subscriptions/${segment(id)}/user/identity`), 'subscription_id', 404],
    ['transfer', (id) => patch(`/subscriptions/${segment(id)}/owner`, { identity }), 'subscription_id', 404],
    ['app', (id) => app.request(`/apps/${segment(id)}/users/by/a/b`), 'app_id', 404],
    [
      'body',
      (id) => app.app('/users', { body: { identity: { external_id: unique('user') }, subscriptions: [{ id }] } }),
      'subscriptions[0].id',
      404,
    ],
  ]
  const wrong: string[] = []
  for (const [place, ask, field, notFound] of places) {
    for (const id of malformed) {
      const answer = await ask(id)
      // In a body the length is checked first.
      const [error] = answer.body.errors
      const isTold =
        error.code === 'request-1' ? error.meta[field]?.toLowerCase() === id.toLowerCase() : place === 'body'
      if (answer.status !== 400 || !isTold) wrong.push(`${place} ${JSON.stringify(id)}: ${describeAnswer(answer)}`)
    }
    for (const id of wellFormed) {
      const answer = await ask(id)
      if (answer.status !== notFound) wrong.push(`${place} ${id}: ${describeAnswer(answer)}`)
    }
  }
  // A header is Latin-1 text without control characters; the client itself refuses everything else.
  for (const id of [...malformed.filter((it) => /^[\x20-\x7e]+$/.test(it) && it.trim() === it), 'é', 'ÿ'.repeat(36)]) {
    const answer = await patch(path, {}, { 'onesignal-subscription-id': id })
    if (answer.status !== 400 || answer.body.errors[0].code !== 'request-1')
      wrong.push(`header ${JSON.stringify(id)}: ${describeAnswer(answer)}`)
  }
  for (const id of wellFormed) {
    const answer = await patch(path, {}, { 'onesignal-subscription-id': id })
    if (answer.status !== 404) wrong.push(`header ${id}: ${describeAnswer(answer)}`)
  }
  expect(wrong).toEqual([])
  expect((await app.app('/users/by/onesignal_id/x')).body.errors).toMatchObject(invalidUuid)
})

test('ids are answered in lower case, whatever case they came in', async () => {
  const { answer } = await aUser({ subscriptions: [{ type: 'iOSPush', token: unique('token') }] })
  const { identity, subscriptions } = answer.body
  const seen = await app.app(`/users/by/onesignal_id/${identity.onesignal_id.toUpperCase()}`)
  expect(seen.body).toMatchObject({ identity, subscriptions: [{ id: subscriptions[0].id }] })
  const again = await app.app('/users', {
    body: {
      identity: { external_id: identity.external_id },
      subscriptions: [{ id: subscriptions[0].id.toUpperCase() }],
    },
  })
  expect(again.body.subscriptions[0].id).toBe(subscriptions[0].id)
})

test('paths that are not correctly encoded are refused, those that are too long find nobody', TIMEOUT, async () => {
  const refused = [
    '%',
    '%f',
    '%zz',
    '%ff',
    '%c3%28',
    '%ed%a0%80',
    '%00',
    'a%00b',
    '%c0%80',
    '%f5%80%80%80',
    '%ed%b0%80',
  ]
  const wrong: string[] = []
  for (const text of refused)
    for (const path of [`/users/by/external_id/${text}`, `/users/by/${text}/x`, `/users/by/${text}/x/identity`]) {
      const answer = await app.app(path)
      if (answer.status !== 400) wrong.push(`${path}: ${describeAnswer(answer)}`)
    }
  for (const length of [128, 129, 1_000, 10_000])
    for (const path of [`/users/by/external_id/${'x'.repeat(length)}`, `/users/by/${'x'.repeat(length)}/x/identity`]) {
      const answer = await app.app(path)
      if (answer.status !== 404) wrong.push(`${length}: ${describeAnswer(answer)}`)
    }
  const endless = await app.app(`/users/by/external_id/${'x'.repeat(20_000)}`)
  if (endless.status < 400 || endless.status >= 500) wrong.push(`20,000: ${endless.status}`)
  expect(wrong).toEqual([])
})

type Outcome = number | 'refused' | 'none'
const MAX = Number.MAX_SAFE_INTEGER

/** As sent (raw JSON), and what is read back. */
const numbers: Record<string, [string, Outcome][]> = {
  lat: [
    ['-90', -90],
    ['90', 90],
    ['-90.0000001', 'refused'],
    ['90.0000001', 'refused'],
    ['0', 0],
    ['-0', 0],
    ['1e-300', 1e-300],
    ['5e-324', 5e-324],
    ['89.99999999999999', 89.99999999999999],
    ['1e999', 'refused'],
    ['-1e999', 'refused'],
    ['"45.5"', 45.5],
    ['"-90"', -90],
    ['"90.1"', 'refused'],
    ['"1e1"', 'refused'],
    ['" 1"', 'refused'],
    ['"NaN"', 'refused'],
    ['"0x10"', 'refused'],
    ['"٤"', 'refused'],
    ['true', 'refused'],
    ['[]', 'refused'],
    ['{}', 'refused'],
    ['""', 'none'],
    ['null', 'none'],
  ],
  long: [
    ['-180', -180],
    ['180', 180],
    ['-180.1', 'refused'],
    ['180.1', 'refused'],
    ['181', 'refused'],
    ['1e308', 'refused'],
    ['"-179.5"', -179.5],
  ],
  first_active: [
    ['0', 0],
    ['1', 1],
    ['253402300799', 253402300799],
    ['253402300800', 'refused'],
    ['-1', 'refused'],
    ['1.5', 'refused'],
    ['1e20', 'refused'],
    ['"1700000000"', 1700000000],
    ['"1.5"', 'refused'],
    ['"-1"', 'refused'],
    ['"soon"', 'refused'],
  ],
  last_active: [
    ['0', 0],
    ['253402300799', 253402300799],
    ['253402300800', 'refused'],
    ['-1', 'refused'],
    ['false', 'refused'],
  ],
}

const deltas: [string, string, Outcome][] = [
  ['session_count', '0', 0],
  ['session_count', '1', 1],
  ['session_count', String(MAX), MAX],
  ['session_count', String(MAX + 1), 'refused'],
  ['session_count', '-1', 'refused'],
  ['session_count', '1.5', 'refused'],
  ['session_count', '"1"', 'refused'],
  ['session_count', '1e999', 'refused'],
  ['session_time', '0', 0],
  ['session_time', String(MAX), MAX],
  ['session_time', String(MAX + 1), 'refused'],
  ['session_time', '-1', 'refused'],
  ['session_time', '99999999999999999999', 'refused'],
]

const sendRaw = (path: string, method: string, raw: string, headers = {}) => app.app(path, { method, raw, headers })

test('numbers at their limits', TIMEOUT, async () => {
  const wrong: string[] = []
  const judge = (name: string, answer: Answer, got: unknown, expected: Outcome) => {
    const isRight =
      expected === 'refused'
        ? answer.status === 400
        : answer.status < 300 && (expected === 'none' ? got === undefined : Object.is(got, expected))
    if (!isRight) wrong.push(`${name}: ${describeAnswer(answer)}`)
  }
  for (const [name, list] of Object.entries(numbers))
    for (const [raw, expected] of list) {
      const { path } = await aUser()
      const answer = await sendRaw(path, 'PATCH', `{"properties":{"${name}":${raw}}}`)
      judge(`${name} ${raw}`, answer, (await app.app(path)).body.properties[name], expected)
    }
  for (const [name, raw, expected] of deltas) {
    const { path, answer: made } = await aUser({ subscriptions: [{ type: 'iOSPush', token: unique('token') }] })
    const selected = { 'onesignal-subscription-id': made.body.subscriptions[0].id }
    const answer = await sendRaw(path, 'PATCH', `{"deltas":{"${name}":${raw}}}`, selected)
    const { properties, subscriptions } = (await app.app(path)).body
    judge(`delta ${name} ${raw}`, answer, properties[name], expected)
    judge(`delta ${name} ${raw} of the subscription`, answer, subscriptions[0][name], expected)
  }
  const int32: [string, Outcome][] = [
    ['-2147483648', -2147483648],
    ['2147483647', 2147483647],
    ['-2147483649', 'refused'],
    ['2147483648', 'refused'],
    ['0', 0],
    ['0.5', 'refused'],
    ['"1"', 'refused'],
    ['1e999', 'refused'],
  ]
  for (const name of ['notification_types', 'test_type', 'net_type'])
    for (const [raw, expected] of int32) {
      const { path, answer: made } = await aUser({ subscriptions: [{ type: 'iOSPush', token: unique('token') }] })
      const { id } = made.body.subscriptions[0]
      const answer = await sendRaw(`/subscriptions/${id}`, 'PATCH', `{"subscription":{"${name}":${raw}}}`)
      judge(`${name} ${raw}`, answer, (await app.app(path)).body.subscriptions[0][name], expected)
    }
  expect(wrong).toEqual([])
})

test('sums never pass what a number can hold, and a refused one changes nothing', async () => {
  const { path, answer } = await aUser({
    subscriptions: [{ type: 'iOSPush', token: unique('token'), session_count: MAX, session_time: MAX }],
  })
  const id = answer.body.subscriptions[0].id
  const selected = { 'onesignal-subscription-id': id }
  expect((await patch(path, { deltas: { session_count: 1 } }, selected)).status).toBe(400)
  expect((await patch(path, { deltas: { session_time: 1 } }, selected)).status).toBe(400)
  expect((await patch(path, { deltas: { session_count: MAX } })).status).toBe(202)
  expect((await patch(path, { deltas: { session_count: 1 } })).status).toBe(400)
  const legacy = { app_id: app.tenant.id }
  expect((await app.request(`/players/${id}/on_session`, { body: legacy })).status).toBe(400)
  expect((await app.request(`/players/${id}/on_focus`, { body: { ...legacy, active_time: 1 } })).status).toBe(400)
  const spent = { purchases: [{ sku: 'x', iso: 'EUR', amount: '999999999999999', count: 9 }] }
  expect((await patch(path, { deltas: spent })).status).toBe(202)
  expect((await patch(path, { deltas: spent })).status).toBe(400)
  const { properties, subscriptions } = (await app.app(path)).body
  expect(properties).toMatchObject({ session_count: MAX, session_time: 0, amount_spent: 8999999999999991 })
  expect(properties.purchases).toHaveLength(1)
  expect(subscriptions).toMatchObject([{ session_count: MAX, session_time: MAX }])
})

const times = <Item>(length: number, make: (n: number) => Item) => Array.from({ length }, (_, n) => make(n))
const labels = (length: number) => Object.fromEntries(times(length, (n) => [`label${n}`, unique('value')]))
const tags = (length: number) => Object.fromEntries(times(length, (n) => [`tag${n}`, 'x']))
const tokens = (length: number) => times(length, () => ({ type: 'iOSPush', token: unique('token') }))
const purchases = (length: number) => times(length, () => ({ sku: 'x', iso: 'EUR', amount: '1' }))

test('how many of each', TIMEOUT, async () => {
  const create = async (body: object) => (await aUser(body)).answer.status
  const withAliases = (length: number) => create({ identity: { external_id: unique('user'), ...labels(length) } })
  expect([await withAliases(9), await withAliases(10), await withAliases(11)]).toEqual([201, 201, 409])
  expect(await withAliases(1_000)).toBe(409)
  const nameless = (length: number) => create({ identity: labels(length) })
  expect([await nameless(0), await nameless(10), await nameless(11)]).toEqual([400, 201, 409])
  const withTokens = (length: number) => create({ subscriptions: tokens(length) })
  expect([await withTokens(0), await withTokens(19), await withTokens(20)]).toEqual([201, 201, 201])
  expect([await withTokens(21), await withTokens(100), await withTokens(101)]).toEqual([409, 409, 400])
  const update = async (body: object) => (await patch((await aUser()).path, body)).status
  const withTags = (length: number) => update({ properties: { tags: tags(length) } })
  expect([await withTags(0), await withTags(99), await withTags(100), await withTags(101)]).toEqual([
    202, 202, 202, 400,
  ])
  // Each tag counts one, and so does every other property.
  expect(await update({ properties: { tags: tags(98), language: 'en', country: 'DE' } })).toBe(202)
  expect(await update({ properties: { tags: tags(99), language: 'en', country: 'DE' } })).toBe(400)
  expect(await create({ properties: { tags: tags(101) } })).toBe(400)
  const buy = (length: number) => update({ deltas: { purchases: purchases(length) } })
  expect([await buy(0), await buy(1), await buy(100), await buy(101)]).toEqual([202, 202, 202, 400])
  const bulk = (count: number) => update({ deltas: { purchases: [{ sku: 'x', iso: 'EUR', amount: '1', count }] } })
  expect([await bulk(-1), await bulk(0), await bulk(1), await bulk(1_000_000)]).toEqual([400, 400, 202, 202])
  expect([await bulk(1_000_001), await bulk(1.5)]).toEqual([400, 400])
})

test('one by one the same limits hold as all at once', TIMEOUT, async () => {
  const { path } = await aUser()
  for (let n = 0; n < 10; n++) {
    const answer = await patch(`${path}/identity`, { identity: { [`label${n}`]: unique('value') } })
    expect(answer.status).toBe(200)
  }
  expect((await patch(`${path}/identity`, { identity: { label10: unique('value') } })).status).toBe(409)
  // A label that is there already is replaced, not added; external_id has its own place.
  const replaced = { label9: unique('value'), external_id: unique('user') }
  expect((await patch(`${path}/identity`, { identity: replaced })).status).toBe(200)
  const full = `/users/by/external_id/${replaced.external_id}`
  for (let n = 0; n < 20; n++) {
    const [subscription] = tokens(1)
    expect((await app.app(`${full}/subscriptions`, { body: { subscription } })).status).toBe(201)
  }
  const [another] = tokens(1)
  expect((await app.app(`${full}/subscriptions`, { body: { subscription: another } })).status).toBe(409)
  const old = await player({ identifier: unique('token'), external_user_id: replaced.external_id })
  expect(old.status).toBe(400)
  const elsewhere = await aUser({ subscriptions: tokens(1) })
  const { id } = elsewhere.answer.body.subscriptions[0]
  const transferred = await patch(`/subscriptions/${id}/owner`, { identity: { external_id: replaced.external_id } })
  expect(transferred.status).toBe(409)
  expect((await app.app(elsewhere.path)).body.subscriptions).toHaveLength(1)
  expect((await app.app(full)).body.subscriptions).toHaveLength(20)
})

test('bodies at their limits', TIMEOUT, async () => {
  const padded = (bytes: number) => {
    const body = (padding: string) => `{"identity":{"external_id":"${padding ? unique('body') : ''}"},"x":"${padding}"}`
    const text = body(' ')
    return text.replace('"x":" "', `"x":"${'é'.repeat(Math.floor((bytes - Buffer.byteLength(text) + 1) / 2))}"`)
  }
  const post = async (raw: string) => (await app.app('/users', { raw })).status
  const fill = (bytes: number) => padded(bytes) + ' '.repeat(bytes - Buffer.byteLength(padded(bytes)))
  for (const [bytes, status] of [
    [1_048_575, 201],
    [1_048_576, 201],
    [1_048_577, 413],
    [2_000_000, 413],
  ] as const) {
    const raw = fill(bytes)
    expect(Buffer.byteLength(raw)).toBe(bytes)
    expect([bytes, await post(raw)]).toEqual([bytes, status])
  }
  const nested = (depth: number) =>
    `{"identity":{"external_id":"${unique('deep')}"},"x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
  expect([await post(nested(31)), await post(nested(32)), await post(nested(33))]).toEqual([201, 201, 400])
  expect(await post(nested(100_000))).toBe(400)
  const keys = (length: number) =>
    JSON.stringify({
      identity: { external_id: unique('keys') },
      x: Object.fromEntries(times(length - 3, (n) => [`k${n}`, 0])),
    })
  expect([await post(keys(1_999)), await post(keys(2_000)), await post(keys(2_001))]).toEqual([201, 201, 400])
  for (const raw of [
    '',
    ' ',
    '{',
    '[]',
    'null',
    '0',
    '"x"',
    '{"identity":null}',
    '{"identity":[]}',
    '{"identity":{"a":1}}',
  ])
    expect([raw, await post(raw)]).toEqual([raw, 400])
  const invalidUtf8 = Buffer.concat([
    Buffer.from('{"identity":{"external_id":"'),
    Buffer.from([0xc3, 0x28]),
    Buffer.from('"}}'),
  ])
  expect((await app.app('/users', { raw: invalidUtf8 })).status).toBe(400)
})
