import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../../test/app.ts'
import { emptyDatabase } from '../../../test/database.ts'
import { NOBODY, told } from '../../../test/users.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { newId, SYSTEM_APP_ID } from '../../lib/ids.ts'
import { migrate, readMigrations } from '../../storage/migrate.ts'
import { sql } from '../../storage/sql.ts'
import { SYSTEM } from '../app.ts'
import { revokeKey } from '../keys/keys.ts'
import { insertAuditEntries } from '../store.ts'

let app: TestApp
let clock: VirtualClock
let tenant: Tenant
let start: string
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())
// Each test has an organization of its own, whose log begins here.
beforeEach(async () => {
  clock.advance({ days: 1 })
  start = clock.now().toISOString()
  tenant = await app.anotherTenant()
})

type Event = { id: string; action: string; app_id: string | null; occurred_at: string }
type Params = Record<string, string | number | readonly string[]>

function ask(params: Params, organizationId = tenant.organizationId, key = tenant.organizationKey) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) for (const one of [value].flat()) query.append(name, String(one))
  return app.request(`/organizations/${organizationId}/audit_logs?${query}`, {
    headers: { authorization: `Key ${key}` },
  })
}
/** Up to a second from now: what happened in this instant is in it. */
const log = async (params: Params = {}) =>
  (await ask({ start_time: start, end_time: new Date(clock.now().getTime() + 1_000).toISOString(), ...params })).body
const actions = async (params: Params = {}) => (await log(params)).audit_logs.map(({ action }: Event) => action)
const refused = (...errors: string[]) => ({ status: 400, body: { errors } })

const organization = () => ({ authorization: `Key ${tenant.organizationKey}` })
const rename = (name: string, appId = tenant.id) =>
  app.request(`/apps/${appId}`, { method: 'PUT', headers: organization(), body: { name } })
async function entries(count: number, at: Date, targetId = 'x') {
  const list = Array.from({ length: count }, () => ({
    id: newId(),
    actor: SYSTEM,
    action: 'app.set',
    targetType: 'app' as const,
    targetId,
  }))
  await insertAuditEntries(app.db, tenant.id, list, at)
  return list.map(({ id }) => id).sort()
}

describe('the audit log', () => {
  test('tells what was done in an organization and all its apps, oldest first', async () => {
    clock.advance({ minutes: 1 })
    const { body: second } = await app.request('/apps', { headers: organization(), body: { name: 'Second' } })
    clock.advance({ minutes: 1 })
    await rename('Store')
    clock.advance({ minutes: 1 })
    const { body: user } = await app.request(`/apps/${tenant.id}/users`, {
      headers: { authorization: `Key ${tenant.key}` },
      body: { identity: { external_id: newId() } },
    })
    const userId = user.identity.onesignal_id
    await app.request(`/apps/${tenant.id}/users/by/onesignal_id/${userId}`, {
      method: 'DELETE',
      headers: { authorization: `Key ${tenant.key}` },
    })
    const { audit_logs: events, ...rest } = await log()
    expect(rest).toEqual({ has_more: false, next_cursor: null })
    expect(
      events
        .slice(0, 4)
        .map(({ action, app_id }: Event) => [action, app_id])
        .sort(),
    ).toEqual(
      [
        ['app.create', tenant.id],
        ['key.issue', null],
        ['key.issue', tenant.id],
        ['organization.create', null],
      ].sort(),
    )
    const [key] = await app.db.query<{ id: string }>(sql`select id from api_keys where app_id = ${tenant.id}`)
    const [organizationKey] = await app.db.query<{ id: string }>(
      sql`select id from api_keys where organization_id = ${tenant.organizationId} and kind = 'org'`,
    )
    const minute = (n: number) => new Date(Date.parse(start) + n * 60_000).toISOString()
    const common = { id: expect.any(String), organization_id: tenant.organizationId }
    const actor = { type: 'organization', id: organizationKey?.id }
    expect(events.slice(4)).toEqual([
      {
        ...common,
        occurred_at: minute(1),
        action: 'app.create',
        app_id: second.id,
        actor,
        targets: [{ type: 'app', id: second.id }],
        context: { ip: '127.0.0.1' },
        metadata: { name: 'Second', organization_id: tenant.organizationId },
      },
      {
        ...common,
        occurred_at: minute(2),
        action: 'app.update',
        app_id: tenant.id,
        actor,
        targets: [{ type: 'app', id: tenant.id }],
        context: { ip: '127.0.0.1' },
        metadata: { name: 'Store', fields: ['name'] },
      },
      {
        ...common,
        occurred_at: minute(3),
        action: 'user.delete',
        app_id: tenant.id,
        actor: { type: 'key', id: key?.id },
        targets: [{ type: 'user', id: userId }],
        context: { ip: '127.0.0.1' },
        metadata: {},
      },
    ])
  })

  test('holds nothing of another organization', async () => {
    const other = await app.anotherTenant()
    const { audit_logs: events } = await log()
    expect(events).toHaveLength(4)
    expect(JSON.stringify(events)).not.toContain(other.organizationId)
    expect(await actions({ app_ids: other.id })).toEqual([])
  })

  test('is the organization’s: another one, and one that is not there, are not found', async () => {
    const other = await app.anotherTenant()
    const notFound = { status: 404, body: { errors: ['Organization not found'] } }
    for (const id of [other.organizationId, NOBODY])
      expect(told(await ask({ start_time: start }, id))).toEqual(notFound)
    expect(told(await ask({ start_time: start }, 'ours'))).toEqual(refused('organization_id must be a UUID'))
    expect((await ask({ start_time: start }, tenant.organizationId.toUpperCase())).status).toBe(200)
  })

  test('needs an organization key', async () => {
    const answer = await ask({ start_time: start }, tenant.organizationId, tenant.key)
    expect(told(answer)).toEqual({ status: 403, body: { errors: ['This operation needs an organization key'] } })
  })

  test('keeps what was done to the keys of the organization', async () => {
    const [key] = await app.db.query<{ id: string }>(
      sql`select id from api_keys where organization_id = ${tenant.organizationId} and kind = 'org'`,
    )
    clock.advance({ minutes: 1 })
    const scope = { kind: 'org' as const, organizationId: tenant.organizationId }
    // Remembered for some seconds: the clock of the keys stands still.
    await log()
    await revokeKey({ db: app.db, clock }, scope, key?.id as string, SYSTEM)
    const rows = await app.db.query(sql`
      select action from audit_log where organization_id = ${tenant.organizationId} and target_id = ${key?.id} order by at`)
    expect(rows).toEqual([{ action: 'key.issue' }, { action: 'key.revoke' }])
  })
})

test('entries from before there was a list have their organization', async () => {
  const old = await emptyDatabase()
  try {
    const migrations = await readMigrations()
    const isOld = ({ name }: { name: string }) => name < '0006'
    await migrate(old.connection, clock.now(), migrations.filter(isOld))
    const [organizationId, appId, keyId, at] = [newId(), newId(), newId(), clock.now()]
    await old.db.query(sql`insert into organizations (id, name, created_at) values (${organizationId}, 'Old', ${at})`)
    await old.db.query(sql`
      insert into apps (id, organization_id, name, created_at, updated_at)
      values (${appId}, ${organizationId}, 'Old', ${at}, ${at})`)
    await old.db.query(sql`
      insert into api_keys (id, kind, organization_id, name, hash, permissions, ip_allowlist, created_at, updated_at)
      values (${keyId}, 'org', ${organizationId}, 'Old', ${Buffer.alloc(32)}, '{}', '{10.0.0.0/8}', ${at}, ${at})`)
    const entry = (app: string, type: string, target: string) =>
      old.db.query(sql`
        insert into audit_log (app_id, at, id, actor_kind, action, target_type, target_id)
        values (${app}, ${at}, ${newId()}, 'system', 'x', ${type}, ${target})`)
    await entry(appId, 'user', newId())
    await entry(SYSTEM_APP_ID, 'organization', organizationId)
    await entry(SYSTEM_APP_ID, 'key', keyId)
    await migrate(old.connection, clock.now(), migrations)
    const entries = await old.db.query<{ organizationId: string }>(sql`select organization_id from audit_log`)
    expect(entries).toEqual(Array(3).fill({ organizationId }))
    // A list that was looked at before still is.
    const [key] = await old.db.query(sql`select ip_allowlist_mode from api_keys`)
    expect(key).toEqual({ ipAllowlistMode: 'explicit' })
  } finally {
    await old.close()
  }
})

describe('a page', () => {
  test('ends where it is told, and its cursor leads to the next, without a gap and without a repetition', async () => {
    const before = (await log()).audit_logs.length
    clock.advance({ minutes: 1 })
    const ids = await entries(25, clock.now())
    const seen: string[] = []
    let page = await log({ limit: 7 })
    const sizes = [page.audit_logs.length]
    seen.push(...page.audit_logs.map(({ id }: Event) => id))
    while (page.has_more) {
      // A cursor is enough; a limit may stand beside it.
      page = (await ask({ cursor: page.next_cursor, limit: 7 })).body
      sizes.push(page.audit_logs.length)
      seen.push(...page.audit_logs.map(({ id }: Event) => id))
    }
    expect(page.next_cursor).toBeNull()
    expect(sizes).toEqual([7, 7, 7, 7, 1])
    expect(new Set(seen).size).toBe(29)
    expect(seen.slice(before)).toEqual(ids)
  })

  test('has 100 entries unless told', async () => {
    await entries(120, clock.now())
    const page = await log()
    expect(page.audit_logs).toHaveLength(100)
    expect((await ask({ cursor: page.next_cursor })).body.audit_logs).toHaveLength(24)
  })

  test('of a cursor keeps the filters and the end of the first', async () => {
    clock.advance({ minutes: 1 })
    for (let n = 0; n < 3; n++) await rename(`Store ${n}`)
    const page = await log({ actions: 'app.update', limit: 1 })
    clock.advance({ minutes: 1 })
    await rename('Too late')
    const rest = (await ask({ cursor: page.next_cursor, actions: 'key.issue' })).body
    expect(rest.audit_logs.map(({ metadata }: { metadata: object }) => metadata)).toHaveLength(2)
    expect(rest).toMatchObject({ has_more: false, next_cursor: null })
  })

  test('of a cursor that was not given out here is refused', async () => {
    await entries(5, clock.now())
    const { next_cursor: cursor } = await log({ limit: 2 })
    const says = refused('cursor is not one that was given out here')
    const changed = `${cursor.slice(0, -10)}${cursor.at(-10) === 'A' ? 'B' : 'A'}${cursor.slice(-9)}`
    for (const wrong of ['x', '', changed, cursor.slice(0, 40)])
      expect(told(await ask({ cursor: wrong }))).toEqual(says)
    const other = await app.anotherTenant()
    expect(told(await ask({ cursor }, other.organizationId, other.organizationKey))).toEqual(says)
  })
})

describe('what is asked for', () => {
  test('begins with start_time and ends before end_time', async () => {
    const at = (minute: number) => new Date(Date.parse(start) + minute * 60_000)
    for (const minute of [1, 2, 3]) await entries(1, at(minute))
    const between = (from: number, to: number) =>
      actions({ start_time: at(from).toISOString(), end_time: at(to).toISOString() })
    expect(await between(1, 3)).toHaveLength(2)
    expect(await between(1, 4)).toHaveLength(3)
    expect(await between(2, 3)).toHaveLength(1)
    expect(await between(4, 5)).toHaveLength(0)
    // Up to now, unless told.
    clock.advance({ minutes: 2 })
    expect((await ask({ start_time: at(1).toISOString() })).body.audit_logs).toHaveLength(1)
  })

  test('may be narrowed to apps, actions, actors, targets and addresses', async () => {
    clock.advance({ minutes: 1 })
    const { body: second } = await app.request('/apps', { headers: organization(), body: { name: 'Second' } })
    await rename('Store')
    await rename('Store 2', second.id)
    const [{ id: keyId } = { id: '' }] = await app.db.query<{ id: string }>(
      sql`select id from api_keys where organization_id = ${tenant.organizationId} and kind = 'org'`,
    )
    const sorted = async (params: Params) => (await actions(params)).sort()
    expect(await sorted({ app_ids: second.id })).toEqual(['app.create', 'app.update'])
    expect(await sorted({ app_ids: [second.id.toUpperCase(), tenant.id] })).toEqual(
      ['app.create', 'app.create', 'app.update', 'app.update', 'key.issue'].sort(),
    )
    expect(await sorted({ actions: ['app.update', 'organization.create'] })).toEqual([
      'app.update',
      'app.update',
      'organization.create',
    ])
    expect(await sorted({ actor_ids: keyId })).toEqual(['app.create', 'app.update', 'app.update'])
    expect(await sorted({ target_types: 'organization' })).toEqual(['organization.create'])
    expect(await sorted({ target_ids: tenant.id })).toEqual(['app.create', 'app.update'])
    expect(await sorted({ ip_addresses: '127.0.0.1' })).toEqual(['app.create', 'app.update', 'app.update'])
    expect(await sorted({ ip_addresses: '192.0.2.1' })).toEqual([])
    expect(await sorted({ actor_emails: 'somebody@example.com' })).toEqual([])
    expect(await sorted({ actions: 'app.update', app_ids: tenant.id })).toEqual(['app.update'])
  })

  const now = () => clock.now().toISOString()
  test.each<[string, () => Params, string]>([
    ['no start_time', () => ({}), 'start_time is required without a cursor'],
    [
      'a start in a leap second',
      () => ({ start_time: '2016-12-31T23:59:60Z' }),
      'start_time must be an ISO 8601 date and time',
    ],
    [
      'an end in a leap second',
      () => ({ start_time: now(), end_time: '2036-12-31T23:59:60Z' }),
      'end_time must be an ISO 8601 date and time',
    ],
    ['a start that is no time', () => ({ start_time: 'yesterday' }), 'start_time must be an ISO 8601 date and time'],
    ['an end before the start', () => ({ start_time: now(), end_time: now() }), 'end_time must be after start_time'],
    [
      'more than 90 days',
      () => ({ start_time: new Date(clock.now().getTime() - 90 * 86_400_000 - 1).toISOString() }),
      'start_time must be at most 90 days ago',
    ],
    ['no page', () => ({ start_time: now(), limit: 0 }), 'limit must be at least 1'],
    ['a page too large', () => ({ start_time: now(), limit: 101 }), 'limit must be at most 100'],
    ['a page that is no number', () => ({ start_time: now(), limit: 'x' }), 'limit must be an integer'],
    ['an app that is none', () => ({ start_time: now(), app_ids: 'x' }), 'app_ids[0] must be a UUID'],
    [
      '11 apps',
      () => ({ start_time: now(), app_ids: Array.from({ length: 11 }, newId) }),
      'app_ids must have at most 10 items',
    ],
    [
      '21 actions',
      () => ({ start_time: now(), actions: Array.from({ length: 21 }, newId) }),
      'actions must have at most 20 items',
    ],
  ])('%s is refused', async (_, params, says) => {
    expect(told(await ask(params()))).toEqual(refused(says))
  })

  test('90 days are allowed', async () => {
    const start_time = new Date(clock.now().getTime() - 90 * 86_400_000).toISOString()
    expect((await ask({ start_time })).status).toBe(200)
  })
})
