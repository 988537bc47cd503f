import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../../test/app.ts'
import { anId, NOBODY, told } from '../../../test/users.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { permissions } from '../../lib/permissions.ts'
import { sql } from '../../storage/sql.ts'

let app: TestApp
let clock: VirtualClock
let tenant: Tenant
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())
// Each test has an app of its own: it may have 16 keys.
beforeEach(async () => {
  tenant = await app.anotherTenant()
})

const request = (path: string, method = 'GET', body?: object) =>
  app.request(`/apps/${tenant.id}/auth/tokens${path}`, {
    method,
    headers: { authorization: `Key ${tenant.organizationKey}` },
    ...(body && { body }),
  })
const list = async () => (await request('')).body.tokens
const find = async (id: string) => (await list()).find((token: { token_id: string }) => token.token_id === id)
async function aKey(body: object = {}): Promise<{ id: string; key: string }> {
  const { status, body: made } = await request('', 'POST', { name: 'CI', ...body })
  if (status !== 200) throw new Error(JSON.stringify(made))
  return { id: made.token_id, key: made.formatted_token }
}
/** What the key is answered, past the age to which keys are remembered. */
async function statusWith(key: string) {
  clock.advanceLease({ seconds: 5 })
  const headers = { authorization: `Key ${key}` }
  return (await app.request(`/apps/${tenant.id}/users/by/external_id/nobody`, { headers })).status
}
const [WORKS, DEAD, DENIED] = [404, 401, 403]
const refused = (...errors: string[]) => ({ status: 400, body: { errors } })
const NOT_FOUND = { status: 404, body: { errors: ['Key not found'] } }

describe('creating a key', () => {
  test('shows it once, and it works at once', async () => {
    const { status, body } = await request('', 'POST', { name: 'CI' })
    expect({ status, body }).toEqual({
      status: 200,
      body: { token_id: anId(), formatted_token: expect.stringMatching(/^os_v2_app_[a-z2-7]{52}$/) },
    })
    expect(await statusWith(body.formatted_token)).toBe(WORKS)
    expect(JSON.stringify(await list())).not.toContain(body.formatted_token.slice(10))
    expect(await find(body.token_id)).toEqual({
      token_id: body.token_id,
      name: 'CI',
      permissions: [...permissions],
      ip_allowlist_mode: 'disabled',
      ip_allowlist: [],
      created_at: clock.now().toISOString(),
      updated_at: clock.now().toISOString(),
      last_used_at: clock.now().toISOString(),
    })
  })

  test('with permissions makes a key that may do those alone', async () => {
    const { id, key } = await aKey({ permissions: ['segments'] })
    expect((await find(id)).permissions).toEqual(['segments'])
    expect(await statusWith(key)).toBe(DENIED)
  })

  test('with an explicit list makes a key for those networks alone', async () => {
    const here = await aKey({ ip_allowlist_mode: 'explicit', ip_allowlist: ['127.0.0.0/8', '2001:db8::/32'] })
    const elsewhere = await aKey({ ip_allowlist_mode: 'explicit', ip_allowlist: ['192.0.2.0/24'] })
    const disabled = await aKey({ ip_allowlist_mode: 'disabled', ip_allowlist: ['192.0.2.0/24'] })
    const silent = await aKey({ ip_allowlist: ['192.0.2.0/24'] })
    const statuses = []
    for (const { key } of [here, elsewhere, disabled, silent]) statuses.push(await statusWith(key))
    expect(statuses).toEqual([WORKS, DENIED, WORKS, WORKS])
    expect(await find(here.id)).toMatchObject({
      ip_allowlist_mode: 'explicit',
      ip_allowlist: ['127.0.0.0/8', '2001:db8::/32'],
    })
    expect(await find(disabled.id)).toMatchObject({ ip_allowlist_mode: 'disabled', ip_allowlist: ['192.0.2.0/24'] })
  })

  test.each([
    [{ name: undefined }, 'name is required'],
    [{ name: '' }, 'name must not be empty'],
    [{ name: 'x'.repeat(129) }, 'name must have at most 128 characters'],
    [{ permissions: ['fly'] }, /^permissions\[0\] must be "apps", "users"/],
    [{ ip_allowlist_mode: 'some' }, 'ip_allowlist_mode must be "disabled" or "explicit"'],
    [{ ip_allowlist_mode: 'explicit' }, 'ip_allowlist must not be empty while ip_allowlist_mode is "explicit"'],
    [{ ip_allowlist: ['10.0.0.0/33'] }, 'ip_allowlist[0] must be an address or a network, as 192.0.2.0/24'],
    [{ ip_allowlist: Array(101).fill('10.0.0.1') }, 'ip_allowlist must have at most 100 items'],
  ])('%j is refused', async (body, says) => {
    const answer = await request('', 'POST', { name: 'CI', ...body })
    const text = typeof says === 'string' ? says : expect.stringMatching(says)
    expect(told(answer)).toEqual({ status: 400, body: { errors: [text] } })
    expect(await list()).toHaveLength(1)
  })

  test('stops at 16, also when many come at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => request('', 'POST', { name: `Key ${i}` })))
    const failed = answers.filter(({ status }) => status !== 200)
    expect(await list()).toHaveLength(16)
    expect(failed).toHaveLength(5)
    for (const answer of failed) expect(told(answer)).toEqual(refused('There can be at most 16 keys'))
  })
})

describe('updating a key', () => {
  test('changes what is given alone', async () => {
    const { id, key } = await aKey({ permissions: ['segments'] })
    clock.advance({ hours: 1 })
    expect(told(await request(`/${id}`, 'PATCH', { name: 'Back end' }))).toEqual({ status: 200, body: {} })
    expect(await find(id)).toMatchObject({
      name: 'Back end',
      permissions: ['segments'],
      updated_at: clock.now().toISOString(),
    })
    await request(`/${id}`, 'PATCH', { permissions: ['users', 'segments'] })
    expect(await statusWith(key)).toBe(WORKS)
    expect((await find(id)).name).toBe('Back end')
  })

  test('shuts a key out from elsewhere, and lets it in again', async () => {
    const { id, key } = await aKey()
    const list = { ip_allowlist_mode: 'explicit', ip_allowlist: ['192.0.2.0/24'] }
    await request(`/${id}`, 'PATCH', list)
    expect(await statusWith(key)).toBe(DENIED)
    await request(`/${id}`, 'PATCH', { ip_allowlist_mode: 'disabled' })
    expect(await statusWith(key)).toBe(WORKS)
    // The list was kept.
    await request(`/${id}`, 'PATCH', { ip_allowlist_mode: 'explicit' })
    expect(await statusWith(key)).toBe(DENIED)
    expect(await find(id)).toMatchObject(list)
    await request(`/${id}`, 'PATCH', { ip_allowlist: ['127.0.0.1'] })
    expect(await statusWith(key)).toBe(WORKS)
  })

  test('does not open a key by emptying its list', async () => {
    const { id, key } = await aKey({ ip_allowlist_mode: 'explicit', ip_allowlist: ['192.0.2.0/24'] })
    const says = refused('ip_allowlist must not be empty while ip_allowlist_mode is "explicit"')
    expect(told(await request(`/${id}`, 'PATCH', { ip_allowlist: [] }))).toEqual(says)
    expect(await statusWith(key)).toBe(DENIED)
  })
})

describe('rotating a key', () => {
  test('gives it a new secret, and the old one dies', async () => {
    const { id, key } = await aKey({ permissions: ['users'] })
    expect(await statusWith(key)).toBe(WORKS)
    const before = await find(id)
    clock.advance({ minutes: 1 })
    const { body } = await request(`/${id}/rotate`, 'POST')
    expect(body).toEqual({ token_id: id, formatted_token: expect.stringMatching(/^os_v2_app_/) })
    expect(body.formatted_token).not.toBe(key)
    expect(await statusWith(key)).toBe(DEAD)
    expect(await statusWith(body.formatted_token)).toBe(WORKS)
    expect(await find(id)).toEqual({
      ...before,
      updated_at: clock.now().toISOString(),
      last_used_at: clock.now().toISOString(),
    })
  })

  test('twice at once leaves one secret that works', async () => {
    const { id, key } = await aKey()
    const rotated = await Promise.all([request(`/${id}/rotate`, 'POST'), request(`/${id}/rotate`, 'POST')])
    const statuses = []
    for (const secret of [key, ...rotated.map(({ body }) => body.formatted_token)])
      statuses.push(await statusWith(secret))
    expect(statuses.sort()).toEqual([DEAD, DEAD, WORKS])
  })
})

describe('deleting a key', () => {
  test('ends it, once', async () => {
    const { id, key } = await aKey()
    expect(told(await request(`/${id}`, 'DELETE'))).toEqual({ status: 200, body: {} })
    expect(await statusWith(key)).toBe(DEAD)
    expect(await find(id)).toBeUndefined()
    for (const again of [
      await request(`/${id}`, 'DELETE'),
      await request(`/${id}`, 'PATCH', { name: 'x' }),
      await request(`/${id}/rotate`, 'POST'),
    ])
      expect(told(again)).toEqual(NOT_FOUND)
  })
})

test('a key that is not the app’s is not found', async () => {
  const { id } = await aKey()
  tenant = await app.anotherTenant()
  for (const other of [id, NOBODY])
    for (const answer of [
      await request(`/${other}`, 'DELETE'),
      await request(`/${other}`, 'PATCH', { name: 'x' }),
      await request(`/${other}/rotate`, 'POST'),
    ])
      expect(told(answer)).toEqual(NOT_FOUND)
  expect(told(await request('/7', 'DELETE'))).toEqual(refused('token_id must be a UUID'))
})

test('the organization’s own key cannot be changed as if it were the app’s', async () => {
  const [row] = await app.db.query<{ id: string }>(
    sql`select id from api_keys where organization_id = ${tenant.organizationId} and kind = 'org'`,
  )
  expect(told(await request(`/${row?.id}/rotate`, 'POST'))).toEqual(NOT_FOUND)
  expect(told(await request(`/${row?.id}`, 'DELETE'))).toEqual(NOT_FOUND)
})

describe('the last use of a key', () => {
  test('is null before the first, and follows the last one', async () => {
    const { id, key } = await aKey()
    expect((await find(id)).last_used_at).toBeNull()
    clock.advance({ hours: 1 })
    await statusWith(key)
    const first = clock.now().toISOString()
    clock.advance({ hours: 1 })
    expect((await find(id)).last_used_at).toBe(first)
    await statusWith(key)
    expect((await find(id)).last_used_at).toBe(clock.now().toISOString())
  })

  test('is kept when the server stops, and never goes back', async () => {
    const { id, key } = await aKey()
    const other = await testApp({ clock, beside: app })
    clock.advance({ minutes: 1 })
    const headers = { authorization: `Key ${key}` }
    await other.request(`/apps/${tenant.id}/users/by/external_id/x`, { headers })
    await other.close()
    const used = clock.now().toISOString()
    expect((await find(id)).last_used_at).toBe(used)
    clock.advance({ minutes: -1 })
    await statusWith(key)
    expect((await find(id)).last_used_at).toBe(used)
    clock.advance({ minutes: 1 })
  })
})

test('every change to a key is in the audit log, with who and from where, and without a secret', async () => {
  const { id, key } = await aKey({ permissions: ['users'] })
  clock.advance({ minutes: 1 })
  await request(`/${id}`, 'PATCH', { name: 'Other', ip_allowlist: ['192.0.2.1'] })
  clock.advance({ minutes: 1 })
  const { body } = await request(`/${id}/rotate`, 'POST')
  clock.advance({ minutes: 1 })
  await request(`/${id}`, 'DELETE')
  const log = await app.db.query(sql`
    select action, actor_kind, actor_ip, target_type, detail from audit_log where target_id = ${id} order by at`)
  const who = { actorKind: 'organization', actorIp: '127.0.0.1', targetType: 'key' }
  expect(log).toEqual([
    {
      ...who,
      action: 'key.issue',
      detail: { name: 'CI', permissions: ['users'], ip_allowlist: [], ip_allowlist_mode: 'disabled' },
    },
    { ...who, action: 'key.update', detail: { name: 'Other', ip_allowlist: ['192.0.2.1'] } },
    { ...who, action: 'key.rotate', detail: { name: 'Other' } },
    { ...who, action: 'key.revoke', detail: { name: 'Other' } },
  ])
  for (const secret of [key, body.formatted_token]) expect(JSON.stringify(log)).not.toContain(secret.slice(10))
})
