import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aName,
  aNamelessUser,
  anEmail,
  aUser,
  NOBODY,
  problem,
  SUBSCRIPTION_NOT_FOUND,
  told,
  USER_NOT_FOUND,
  view,
} from '../../../test/users.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const patch = (path: string, identity: unknown) => app.app(`${path}/identity`, { method: 'PATCH', body: { identity } })
const remove = (path: string, label: string) =>
  app.app(`${path}/identity/${encodeURIComponent(label)}`, { method: 'DELETE' })
const ok = (identity: object) => ({ status: 200, body: { identity } })
const CLAIMED = 'One or more Aliases claimed by another User'

describe('create or update alias', () => {
  test('adds labels the user lacks, replaces values of those it has, leaves the rest, answers all', async () => {
    const user = await aUser(app, { identity: { crm: aName(), shop: aName() } })
    const { identity } = await view(app, user)
    const given = { crm: aName(), loyalty: aName() }
    const after = { ...identity, ...given }
    expect(told(await patch(user.path, given))).toEqual(ok(after))
    expect((await view(app, user)).identity).toEqual(after)
    expect(told(await app.app(`/users/by/crm/${identity.crm}`))).toEqual(USER_NOT_FOUND)
    expect((await app.app(`/users/by/crm/${given.crm}`)).body.identity).toEqual(after)
  })

  test('replaces external_id like any other', async () => {
    const user = await aUser(app)
    const external_id = aName()
    expect(told(await patch(user.path, { external_id }))).toEqual(ok({ onesignal_id: user.id, external_id }))
    expect((await app.app(`/users/by/external_id/${user.externalId}`)).status).toBe(404)
  })

  test('finds the user by external_id and by a custom label', async () => {
    const user = await aUser(app, { identity: { crm: aName() } })
    const { crm } = (await view(app, user)).identity
    expect((await patch(`/users/by/external_id/${user.externalId}`, { a: aName() })).status).toBe(200)
    // Addressed by the very alias that it replaces.
    expect((await patch(`/users/by/crm/${crm}`, { crm: `${crm}-2` })).body.identity.crm).toBe(`${crm}-2`)
  })

  test('what the user has already may be sent again', async () => {
    const user = await aUser(app, { identity: { crm: aName() } })
    const { identity } = await view(app, user)
    const { onesignal_id: _, ...aliases } = identity
    expect(told(await patch(user.path, aliases))).toEqual(ok(identity))
  })

  test('changes the identity alone: properties and subscriptions are untouched', async () => {
    const user = await aUser(app, {
      properties: { tags: { a: '1' }, language: 'en' },
      subscriptions: [{ type: 'Email', token: anEmail() }],
    })
    const before = await view(app, user)
    const answer = await app.app(`${user.path}/identity`, {
      method: 'PATCH',
      body: { identity: { crm: aName() }, properties: { language: 'fr' }, subscriptions: [] },
    })
    expect(answer.status).toBe(200)
    expect(await view(app, user)).toEqual({ ...before, identity: answer.body.identity })
  })

  test('creates no user: an unknown one is a 404', async () => {
    const name = aName()
    for (const path of [`/users/by/external_id/${name}`, `/users/by/onesignal_id/${NOBODY}`])
      expect(told(await patch(path, { external_id: name, crm: name }))).toEqual(USER_NOT_FOUND)
    expect((await app.app(`/users/by/external_id/${name}`)).status).toBe(404)
    expect((await app.app(`/users/by/crm/${name}`)).status).toBe(404)
  })

  test('a malformed onesignal_id in the path is an invalid UUID', async () => {
    expect(told(await patch('/users/by/onesignal_id/not-a-uuid', { crm: 'x' }))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { onesignal_id: 'not-a-uuid' }),
    )
  })
})

describe('onesignal_id', () => {
  test('cannot be set', async () => {
    const user = await aUser(app)
    const other = await aUser(app)
    const refused = problem(400, 'request-0', 'onesignal_id cannot be set')
    for (const onesignal_id of [other.id, NOBODY, 'x'])
      expect(told(await patch(user.path, { onesignal_id, crm: aName() }))).toEqual(refused)
    expect((await view(app, user)).identity).toEqual({ onesignal_id: user.id, external_id: user.externalId })
  })

  test('that says what is so already is accepted without effect, in any case', async () => {
    const user = await aUser(app)
    const crm = aName()
    const identity = { onesignal_id: user.id, external_id: user.externalId, crm }
    expect(told(await patch(user.path, { onesignal_id: user.id.toUpperCase(), crm }))).toEqual(ok(identity))
    expect(told(await patch(user.path, { onesignal_id: user.id }))).toEqual(ok(identity))
  })

  test('cannot be removed', async () => {
    const user = await aUser(app)
    expect(told(await remove(user.path, 'onesignal_id'))).toEqual(
      problem(400, 'request-0', 'onesignal_id cannot be removed'),
    )
  })
})

describe('a pair that another user holds', () => {
  test('is a 409 user-2 with each conflicting label in meta, and nothing changes for either', async () => {
    const holder = await aUser(app, { identity: { crm: aName(), shop: aName(), other: aName() } })
    const user = await aUser(app, { identity: { crm: aName() } })
    const held = (await view(app, holder)).identity
    const before = [await view(app, user), await view(app, holder)]
    const answer = await patch(user.path, { fresh: aName(), crm: held.crm, shop: held.shop })
    expect(told(answer)).toEqual(problem(409, 'user-2', CLAIMED, { crm: held.crm, shop: held.shop }))
    expect([await view(app, user), await view(app, holder)]).toEqual(before)
  })

  test('is a 409 for external_id too', async () => {
    const holder = await aUser(app)
    const user = await aNamelessUser(app)
    expect(told(await patch(user.path, { external_id: holder.externalId }))).toEqual(
      problem(409, 'user-2', CLAIMED, { external_id: holder.externalId }),
    )
    expect((await view(app, user)).identity).toEqual({ onesignal_id: user.id })
  })

  test('the label with another value, and the value under another label, are free', async () => {
    const holder = await aUser(app, { identity: { crm: aName() } })
    const { crm } = (await view(app, holder)).identity
    const user = await aUser(app)
    expect((await patch(user.path, { crm: `${crm}-2`, shop: crm })).status).toBe(200)
  })

  test('many users that want the same pair at once: one gets it', async () => {
    const users = await Promise.all(Array.from({ length: 8 }, () => aUser(app)))
    const crm = aName()
    const answers = await Promise.all(users.map((user) => patch(user.path, { crm })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)])
  })

  test('another app may have it', async () => {
    const user = await aUser(app, { identity: { crm: aName() } })
    const { crm } = (await view(app, user)).identity
    const tenant = await app.anotherTenant()
    const headers = { authorization: `Key ${tenant.key}` }
    const made = await app.request(`/apps/${tenant.id}/users`, { headers, body: { identity: { external_id: 'x' } } })
    expect(made.status).toBe(201)
    const path = `/apps/${tenant.id}/users/by/external_id/x/identity`
    const answer = await app.request(path, { method: 'PATCH', headers, body: { identity: { crm } } })
    expect(answer.status).toBe(200)
  })
})

describe('a user without external_id', () => {
  test('keeps a custom alias for its single record; adding the value to another record is a 409', async () => {
    const nameless = await aNamelessUser(app)
    const crm = aName()
    expect(told(await patch(nameless.path, { crm }))).toEqual(ok({ onesignal_id: nameless.id, crm }))
    const refused = problem(409, 'user-2', CLAIMED, { crm })
    expect(told(await patch((await aNamelessUser(app)).path, { crm }))).toEqual(refused)
    expect(told(await patch((await aUser(app)).path, { crm }))).toEqual(refused)
  })

  test('can be given one, with custom aliases in the same request', async () => {
    const nameless = await aNamelessUser(app)
    const aliases = { external_id: aName(), crm: aName() }
    expect(told(await patch(nameless.path, aliases))).toEqual(ok({ onesignal_id: nameless.id, ...aliases }))
  })
})

describe('limits of aliases', () => {
  const labels = (count: number, word = 'l') =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`${word}${n}`, aName()]))

  test('one external_id and ten custom aliases; an eleventh is a 409 and none of the request is taken', async () => {
    const user = await aUser(app, { identity: labels(8) })
    expect((await patch(user.path, labels(2, 'm'))).status).toBe(200)
    const full = (await view(app, user)).identity
    expect(Object.keys(full)).toHaveLength(12)
    expect(told(await patch(user.path, { l0: aName(), eleventh: aName() }))).toEqual(
      problem(409, 'Alias Limit Exceeded', 'A user can have at most 10 custom aliases', { limit: 10 }),
    )
    expect((await view(app, user)).identity).toEqual(full)
    expect((await patch(user.path, { l0: aName(), external_id: aName() })).status).toBe(200)
  })

  test('ten custom aliases fit beside no external_id, which can then still be set', async () => {
    const nameless = await aNamelessUser(app)
    expect((await patch(nameless.path, labels(10))).status).toBe(200)
    expect((await patch(nameless.path, { one: 'more' })).status).toBe(409)
    expect((await patch(nameless.path, { external_id: aName() })).status).toBe(200)
  })

  test('a removed alias makes room', async () => {
    const user = await aUser(app, { identity: labels(10) })
    expect((await remove(user.path, 'l3')).status).toBe(200)
    expect((await patch(user.path, { other: aName() })).status).toBe(200)
  })

  test('label and value of 128 characters are accepted and find the user, 129 are refused', async () => {
    const user = await aUser(app)
    const label = aName().padEnd(128, 'é')
    const value = aName().padEnd(128, '漢')
    expect((await patch(user.path, { [label]: value })).status).toBe(200)
    const found = await app.app(`/users/by/${encodeURIComponent(label)}/${encodeURIComponent(value)}`)
    expect(found.body.identity.onesignal_id).toBe(user.id)
    const most = 'must have at most 128 characters'
    expect(told(await patch(user.path, { [`${label}x`]: 'v' }))).toEqual(
      problem(400, 'request-0', `an alias label ${most}`),
    )
    expect(told(await patch(user.path, { crm: `${value}x` }))).toEqual(
      problem(400, 'request-0', `an alias value of "crm" ${most}`),
    )
  })

  test.each([
    ['no identity', {}, 'identity is required', { field: 'identity' }],
    ['an empty identity', { identity: {} }, 'identity must hold at least one alias', undefined],
    ['a number', { identity: { crm: 5 } }, 'identity.crm must be a string', { field: 'identity.crm' }],
    ['null', { identity: { crm: null } }, 'identity.crm must be a string', { field: 'identity.crm' }],
    ['an empty value', { identity: { crm: '' } }, 'an alias value of "crm" must not be empty', undefined],
    ['an empty label', { identity: { '': 'x' } }, 'an alias label must not be empty', undefined],
    ['a list', { identity: ['x'] }, 'identity must be an object', { field: 'identity' }],
  ])('%s is refused', async (_, body, title, meta) => {
    const user = await aUser(app)
    const answer = await app.app(`${user.path}/identity`, { method: 'PATCH', body })
    expect(told(answer)).toEqual(problem(400, 'request-0', title, meta))
  })
})

describe('delete alias', () => {
  test('removes it, answers the rest, and frees the pair', async () => {
    const user = await aUser(app, { identity: { crm: aName(), shop: aName() } })
    const { crm, ...rest } = (await view(app, user)).identity
    expect(told(await remove(user.path, 'crm'))).toEqual(ok(rest))
    expect((await view(app, user)).identity).toEqual(rest)
    expect((await patch((await aUser(app)).path, { crm })).status).toBe(200)
  })

  test('removes external_id, also when the request found the user by it', async () => {
    const user = await aUser(app)
    expect(told(await remove(`/users/by/external_id/${user.externalId}`, 'external_id'))).toEqual(
      ok({ onesignal_id: user.id }),
    )
    expect((await app.app(`/users/by/external_id/${user.externalId}`)).status).toBe(404)
  })

  test('that the user has not is a 404, as is an unknown user', async () => {
    const user = await aUser(app)
    expect(told(await remove(user.path, 'crm'))).toEqual(problem(404, 'alias-0', 'Alias not found'))
    expect(told(await remove(`/users/by/external_id/${aName()}`, 'crm'))).toEqual(USER_NOT_FOUND)
  })
})

describe('by subscription', () => {
  const bySubscription = (id: string | undefined, identity: object) =>
    app.app(`/subscriptions/${id}/user/identity`, { method: 'PATCH', body: { identity } })

  test('the aliases of its user change', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const crm = aName()
    const after = { onesignal_id: user.id, external_id: user.externalId, crm }
    expect(told(await bySubscription(user.subscriptionIds[0], { crm }))).toEqual(ok(after))
    expect((await view(app, user)).identity).toEqual(after)
  })

  test('a pair of another user is a 409', async () => {
    const holder = await aUser(app)
    const user = await aNamelessUser(app)
    expect(told(await bySubscription(user.subscriptionIds[0], { external_id: holder.externalId }))).toEqual(
      problem(409, 'user-2', CLAIMED, { external_id: holder.externalId }),
    )
  })

  test('an unknown subscription is a 404, a malformed id a 400', async () => {
    expect(told(await bySubscription(NOBODY, { crm: aName() }))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect(told(await bySubscription('x', { crm: aName() }))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { subscription_id: 'x' }),
    )
  })
})
