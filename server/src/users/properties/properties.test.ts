// What a property may be. Create user and Update user judge alike, so both are asked about each line.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aName, aUser, problem, told, view } from '../../../test/users.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

async function both(properties: unknown) {
  const user = await aUser(app)
  const before = await view(app, user)
  const updated = await app.app(user.path, { method: 'PATCH', body: { properties } })
  const external_id = aName()
  const created = await app.app('/users', { body: { identity: { external_id }, properties } })
  return { user, before, updated, created, external_id }
}

const purchase = { sku: 'A', iso: 'USD', amount: '1.00', count: 1 }
const deepest = 'x'.repeat(1024)

describe('accepted', () => {
  test.each<[Record<string, unknown>, Record<string, unknown>?]>([
    [{ language: 'en' }],
    [{ language: 'zh-Hant' }],
    [{ language: 'pt_BR' }],
    [{ language: 'FR' }],
    [{ timezone_id: 'Europe/Berlin' }],
    [{ timezone_id: 'UTC' }],
    [{ timezone_id: 'America/Argentina/Buenos_Aires' }],
    [{ lat: 90 }],
    [{ lat: -90 }],
    [{ lat: 0 }],
    [{ long: 180 }],
    [{ long: -180 }],
    [{ lat: '48.85' }, { lat: 48.85 }],
    [{ long: '-2' }, { long: -2 }],
    [{ country: 'DE' }],
    [{ country: 'us' }],
    [{ first_active: 0 }],
    [{ last_active: 1_700_000_000 }],
    [{ last_active: '1700000000' }, { last_active: 1_700_000_000 }],
    [{ ip: '203.0.113.7' }],
    [{ ip: '2001:db8::1' }],
    [{ test_user_name: 'Anna' }],
    [{ test_user_name: '🔔'.repeat(128) }],
    [{ tags: {} }],
    [{ tags: { ['k'.repeat(255)]: deepest } }],
    [{ purchases: [purchase] }],
    [{ purchases: [{ ...purchase, amount: '£0.000000001' }] }],
    [{ purchases: [{ ...purchase, iso: 'eur', amount: '€999999999999999' }] }],
  ])('%j', async (properties, expected = properties) => {
    const { updated, created } = await both(properties)
    expect(updated).toMatchObject({ status: 202, body: { properties: expected } })
    expect(created).toMatchObject({ status: 201, body: { properties: expected } })
  })

  test.each(['language', 'timezone_id', 'lat', 'long', 'country', 'ip', 'test_user_name'])(
    'null and "" clear %s',
    async (name) => {
      const full = {
        language: 'en',
        timezone_id: 'UTC',
        lat: 1,
        long: 2,
        country: 'DE',
        ip: '203.0.113.7',
        test_user_name: 'x',
      }
      for (const nothing of [null, '']) {
        const user = await aUser(app, { properties: full })
        const { status, body } = await app.app(user.path, {
          method: 'PATCH',
          body: { properties: { [name]: nothing } },
        })
        expect(status).toBe(202)
        expect(body.properties).not.toHaveProperty(name)
        const others = Object.entries(full).filter(([other]) => other !== name)
        expect(body.properties).toMatchObject(Object.fromEntries(others))
      }
    },
  )

  test.each<[unknown, number]>([
    [0, 0],
    [12.34, 12.34],
    ['12.34', 12.34],
    [1e15, 1e15],
    [null, 0],
    ['', 0],
  ])('amount_spent %j on create', async (amount_spent, expected) => {
    const answer = await app.app('/users', {
      body: { identity: { external_id: aName() }, properties: { amount_spent } },
    })
    expect(answer).toMatchObject({ status: 201, body: { properties: { amount_spent: expected } } })
  })
})

describe('refused, and nothing changes', () => {
  const wrongType = (name: string, expected: string) => `properties.${name} must be ${expected}`
  test.each<[Record<string, unknown>, string]>([
    [{ language: 'x' }, 'language "x" is not a language code'],
    [{ language: 'english please' }, 'language "english please" is not a language code'],
    [{ language: 5 }, wrongType('language', 'a string or null')],
    [{ timezone_id: 'Mars/Olympus' }, 'timezone_id "Mars/Olympus" is not an IANA time zone'],
    [{ timezone_id: '+01:00' }, 'timezone_id "+01:00" is not an IANA time zone'],
    [{ timezone_id: 3600 }, wrongType('timezone_id', 'a string or null')],
    [{ lat: 90.1 }, 'lat must be a number from -90 to 90'],
    [{ lat: -91 }, 'lat must be a number from -90 to 90'],
    [{ lat: 'north' }, 'lat must be a number from -90 to 90'],
    [{ lat: '1e1' }, 'lat must be a number from -90 to 90'],
    [{ lat: true }, wrongType('lat', 'a number, a string or null')],
    [{ long: 180.5 }, 'long must be a number from -180 to 180'],
    [{ long: [] }, wrongType('long', 'a number, a string or null')],
    [{ country: 'DEU' }, 'country "DEU" is not a country code of two letters'],
    [{ country: 'D1' }, 'country "D1" is not a country code of two letters'],
    [{ country: 49 }, wrongType('country', 'a string or null')],
    [{ first_active: -1 }, 'first_active must be a number from 0 to 253402300799'],
    [{ first_active: 1.5 }, 'first_active must be a whole number of seconds'],
    [{ last_active: 253_402_300_800 }, 'last_active must be a number from 0 to 253402300799'],
    [{ last_active: '2030-01-01' }, 'last_active must be a number from 0 to 253402300799'],
    [{ last_active: {} }, wrongType('last_active', 'a number, a string or null')],
    [{ ip: '300.1.1.1' }, 'ip "300.1.1.1" is not an IP address'],
    [{ ip: 'localhost' }, 'ip "localhost" is not an IP address'],
    [{ test_user_name: 'x'.repeat(129) }, 'properties.test_user_name must have at most 128 characters'],
    [{ test_user_name: 7 }, wrongType('test_user_name', 'a string or null')],
    [{ tags: 'a' }, wrongType('tags', 'an object')],
    [{ tags: null }, wrongType('tags', 'an object')],
    [{ tags: ['a'] }, wrongType('tags', 'an object')],
    [{ tags: { a: {} } }, wrongType('tags.a', 'a string, a number, true or false or null')],
    [{ tags: { a: ['b'] } }, wrongType('tags.a', 'a string, a number, true or false or null')],
    [{ tags: { '': 'x' } }, 'a tag key must not be empty'],
    [{ tags: { ['k'.repeat(256)]: 'x' } }, 'a tag key must have at most 255 characters'],
    [{ tags: { a: `${deepest}x` } }, 'the value of tag "a" must have at most 1024 characters'],
    [{ purchases: {} }, wrongType('purchases', 'a list')],
    [{ purchases: Array(101).fill(purchase) }, 'properties.purchases must have at most 100 items'],
    [{ purchases: [{ iso: 'USD', amount: '1' }] }, 'properties.purchases[0].sku is required'],
    [{ purchases: [{ ...purchase, sku: '' }] }, 'properties.purchases[0].sku must not be empty'],
    [{ purchases: [{ sku: 'A', amount: '1' }] }, 'properties.purchases[0].iso is required'],
    [
      { purchases: [{ ...purchase, iso: 'dollars' }] },
      'purchase iso "dollars" is not a currency code of three letters',
    ],
    [{ purchases: [{ ...purchase, amount: 1 }] }, 'properties.purchases[0].amount must be a string'],
    [
      { purchases: [{ ...purchase, amount: 'free' }] },
      'purchase amount "free" is not a decimal such as "33.33" or "$33.33"',
    ],
    [
      { purchases: [{ ...purchase, amount: '-1' }] },
      'purchase amount "-1" is not a decimal such as "33.33" or "$33.33"',
    ],
    [
      { purchases: [{ ...purchase, amount: '1,000.00' }] },
      'purchase amount "1,000.00" is not a decimal such as "33.33" or "$33.33"',
    ],
    [{ purchases: [{ ...purchase, count: 0 }] }, 'properties.purchases[0].count must be at least 1'],
    [{ purchases: [{ ...purchase, count: 1.5 }] }, 'properties.purchases[0].count must be an integer'],
    [
      { purchases: Array(100).fill({ ...purchase, amount: '999999999999999', count: 1_000_000 }) },
      'the sum of the purchases would exceed 2^53-1',
    ],
  ])('%j', async (properties, title) => {
    const { user, before, updated, created, external_id } = await both(properties)
    const field = /^properties\.\S+/.exec(title)?.[0]
    const expected = problem(400, 'request-0', title, field === undefined ? undefined : { field })
    expect(told(updated)).toEqual(expected)
    expect(told(created)).toEqual(expected)
    expect(await view(app, user)).toEqual(before)
    expect((await app.app(`/users/by/external_id/${external_id}`)).status).toBe(404)
  })

  test.each([
    [-1, 'amount_spent must be a number from 0 to 1000000000000000'],
    ['much', 'amount_spent must be a number from 0 to 1000000000000000'],
    [1e16, 'amount_spent must be a number from 0 to 1000000000000000'],
  ])('amount_spent %j on create', async (amount_spent, title) => {
    const body = { identity: { external_id: aName() }, properties: { amount_spent } }
    expect(told(await app.app('/users', { body }))).toEqual(problem(400, 'request-0', title))
  })

  test('everything that is wrong is told at once', async () => {
    const body = { identity: { external_id: 5 }, properties: { language: 5, lat: {} }, subscriptions: {} }
    const { status, body: answer } = await app.app('/users', { body })
    expect(status).toBe(400)
    expect(answer.errors.map((it: { meta: { field: string } }) => it.meta.field).sort()).toEqual([
      'identity.external_id',
      'properties.language',
      'properties.lat',
      'subscriptions',
    ])
  })

  test.each(['a\u0000b', '\ud800'])('text that cannot be stored: %j', async (text) => {
    const raw = (value: unknown) => ({ raw: JSON.stringify(value), method: 'POST' })
    const answers = [
      await app.app('/users', raw({ identity: { external_id: text } })),
      await app.app('/users', raw({ identity: { external_id: aName() }, properties: { tags: { a: text } } })),
      await app.app('/users', raw({ identity: { external_id: aName() }, properties: { tags: { [text]: 'a' } } })),
    ]
    for (const answer of answers)
      expect(told(answer)).toEqual(problem(400, 'request-0', /contains U\+0000 or half of a surrogate pair$/))
  })
})
