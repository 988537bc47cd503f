import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId, SYSTEM_APP_ID } from '../lib/ids.ts'
import { sha256 } from '../lib/secrets.ts'
import { createPool } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { SYSTEM } from './app.ts'
import { createApp, createOrganization, ensureFirstOrganization, setApp } from './create.ts'
import { issueKey } from './keys/keys.ts'
import { findAppGate } from './store.ts'

const clock = virtualClock()
type Audit = {
  appId: string
  actorKind: string
  actorId: string | null
  action: string
  targetId: string
  detail: object
  at: Date
}
const auditOf = (database: TestDatabase, targetId: string) =>
  database.db.query<Audit>(sql`
    select app_id, actor_kind, actor_id, action, target_id, detail, at from audit_log where target_id = ${targetId} order by at`)

describe('the first organization', () => {
  let database: TestDatabase
  beforeEach(async () => {
    database = await testDatabase()
    return () => database.close()
  })

  test('is made once, also when eight servers start at once', async () => {
    const pools = Array.from({ length: 8 }, () => createPool({ connection: database.connection, size: 2 }))
    const made = await Promise.all(pools.map((db) => ensureFirstOrganization({ db, clock })))
    await Promise.all(pools.map((pool) => pool.close()))
    const [first, ...others] = made.filter((one) => one !== undefined)
    expect(others).toEqual([])
    const counts = await database.db.query(sql`
      select (select count(*) from organizations) as organizations, (select count(*) from apps) as apps,
        (select count(*) from api_keys) as keys`)
    expect(counts).toEqual([{ organizations: 1, apps: 1, keys: 2 }])
    expect(first).toEqual({
      organizationId: expect.any(String),
      organizationKey: expect.stringMatching(/^os_v2_org_[a-z2-7]{52}$/),
      appId: expect.any(String),
      appKey: expect.stringMatching(/^os_v2_app_[a-z2-7]{52}$/),
    })
    expect(await ensureFirstOrganization({ db: database.db, clock })).toBeUndefined()
  })

  test('takes the id and the key of the settings', async () => {
    const given = { organizationId: newId(), organizationKey: `chosen-${'x'.repeat(40)}` }
    expect(await ensureFirstOrganization({ db: database.db, clock }, given)).toMatchObject(given)
    const keys = await database.db.query(
      sql`select hash from api_keys where organization_id = ${given.organizationId} and kind = 'org'`,
    )
    expect(keys).toEqual([{ hash: sha256(given.organizationKey) }])
  })

  test('is not left half-made', async () => {
    await expect(
      ensureFirstOrganization({ db: database.db, clock }, { organizationKey: 'too short' }),
    ).rejects.toThrow()
    expect(await database.db.query(sql`select id from organizations`)).toEqual([])
    expect(await ensureFirstOrganization({ db: database.db, clock })).toBeDefined()
  })

  test('leaves its keys in clear nowhere', async () => {
    const first = await ensureFirstOrganization({ db: database.db, clock })
    const tables = await database.db.query<{ name: string }>(sql`
      select tablename as name from pg_tables where schemaname = 'public'`)
    expect(tables.length).toBeGreaterThan(4)
    for (const key of [first?.organizationKey, first?.appKey])
      for (const { name } of tables) {
        const text = {
          text: `select count(*) as found from ${name} t where t::text like '%' || $1 || '%'`,
          values: [key?.slice(10)],
        }
        expect([name, await database.db.query(text)]).toEqual([name, [{ found: 0 }]])
      }
  })

  test('is in the audit log', async () => {
    const first = await ensureFirstOrganization({ db: database.db, clock })
    const log = await database.db.query<Audit>(
      sql`select app_id, actor_kind, action from audit_log order by action, app_id`,
    )
    const entry = (action: string, appId: string | undefined) => ({ appId, actorKind: 'system', action })
    expect(log).toHaveLength(4)
    expect(log).toEqual(
      expect.arrayContaining([
        entry('organization.create', SYSTEM_APP_ID),
        entry('key.issue', SYSTEM_APP_ID),
        entry('app.create', first?.appId),
        entry('key.issue', first?.appId),
      ]),
    )
  })
})

describe('apps', () => {
  let database: TestDatabase
  let organizationId: string
  const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const publicKey = ec.publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const actor = { kind: 'organization' as const, id: newId() }
  const ctx = () => ({ db: database.db, clock })
  beforeAll(async () => {
    database = await testDatabase()
    organizationId = await createOrganization(ctx(), { name: 'Org' }, SYSTEM)
  })
  afterAll(() => database.close())

  test('are on the plan that the settings give to new ones', async () => {
    const id = await createApp({ ...ctx(), defaultPlan: 'free' }, organizationId, { name: 'Shop' }, actor)
    expect(await findAppGate(database.db, id)).toMatchObject({ plan: 'free' })
  })

  test('are on the paid plan by default', async () => {
    const id = await createApp(ctx(), organizationId, { name: 'Shop' }, actor)
    expect(await findAppGate(database.db, id)).toEqual({
      id,
      organizationId,
      plan: 'paid',
      limits: {},
      keylessSdk: true,
      identityRequired: false,
      identityPublicKey: null,
    })
    expect(await auditOf(database, id)).toEqual([
      {
        appId: id,
        actorKind: 'organization',
        actorId: actor.id,
        action: 'app.create',
        targetId: id,
        detail: { name: 'Shop', organization_id: organizationId },
        at: clock.now(),
      },
    ])
  })

  test('are not made for an organization that is not there', async () => {
    await expect(createApp(ctx(), newId(), { name: 'Shop' }, actor)).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('are changed in what is given alone, and audited', async () => {
    const id = await createApp(ctx(), organizationId, { name: 'Shop' }, actor)
    clock.advance({ hours: 1 })
    await setApp(ctx(), id, { plan: 'free', limits: { 'users.write': 50 } }, actor)
    await setApp(ctx(), id, { identityRequired: true, identityPublicKey: publicKey }, actor)
    await setApp(ctx(), id, { keylessSdk: false }, actor)
    expect(await findAppGate(database.db, id)).toMatchObject({
      plan: 'free',
      limits: { 'users.write': 50 },
      keylessSdk: false,
      identityRequired: true,
      identityPublicKey: publicKey,
    })
    const log = await auditOf(database, id)
    expect(log.map(({ action }) => action)).toEqual(['app.create', 'app.set', 'app.set', 'app.set'])
    expect(log.slice(1).map(({ detail }) => detail)).toEqual(
      expect.arrayContaining([
        { plan: 'free', limits: { 'users.write': 50 } },
        { identity_required: true, identity_public_key: 'changed' },
        { keyless_sdk: false },
      ]),
    )
    expect(JSON.stringify(log)).not.toContain('BEGIN PUBLIC KEY')
    await expect(setApp(ctx(), newId(), { plan: 'paid' }, actor)).rejects.toMatchObject({ kind: 'not-found' })
  })

  const { privateKey } = ec
  test.each([
    ['no name', { name: '' }],
    ['a name of 129 characters', { name: '😀'.repeat(129) }],
    ['U+0000 in the name', { name: 'a\0' }],
    ['an unknown plan', { plan: 'gold' as 'paid' }],
    ['a limit below zero', { limits: { 'users.write': -1 } }],
    ['a limit that is no number', { limits: { 'users.write': Number.NaN } }],
    ['identity verification without a key', { identityRequired: true, identityPublicKey: null }],
    ['a key that is none', { identityPublicKey: 'nonsense' }],
    ['a private key', { identityPublicKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }],
    [
      'a key of 1,024 bits',
      {
        identityPublicKey: generateKeyPairSync('rsa', { modulusLength: 1024 })
          .publicKey.export({ type: 'spki', format: 'pem' })
          .toString(),
      },
    ],
    [
      'a key of another curve',
      {
        identityPublicKey: generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
          .publicKey.export({ type: 'spki', format: 'pem' })
          .toString(),
      },
    ],
  ])('%s is refused, and nothing changes', async (_, changes) => {
    const id = await createApp(ctx(), organizationId, { name: 'Shop' }, actor)
    const before = await findAppGate(database.db, id)
    await expect(setApp(ctx(), id, changes, actor)).rejects.toMatchObject({ kind: 'invalid' })
    expect(await findAppGate(database.db, id)).toEqual(before)
    expect(await auditOf(database, id)).toHaveLength(1)
  })

  test('hold 128 emoji in their name', async () => {
    await expect(createApp(ctx(), organizationId, { name: '😀'.repeat(128) }, actor)).resolves.toBeDefined()
  })

  test('keys belong to an app that is there', async () => {
    const scope = { kind: 'app' as const, appId: newId() }
    await expect(issueKey(ctx(), scope, { name: 'x' }, actor)).rejects.toMatchObject({ kind: 'not-found' })
  })
})
