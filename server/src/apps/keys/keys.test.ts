import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../../test/database.ts'
import type { KeyLookup } from '../../http/route.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import { sha256 } from '../../lib/secrets.ts'
import type { Db } from '../../storage/db.ts'
import { createListener, type Listener } from '../../storage/listen.ts'
import { sql } from '../../storage/sql.ts'
import { type KeyScope, SYSTEM } from '../app.ts'
import { createApp, createOrganization, setApp } from '../create.ts'
import { issueKey, listKeys, MAX_KEYS, revokeKey } from './keys.ts'
import { createKeyLookup } from './lookup.ts'

const clock = virtualClock()
let database: TestDatabase
let statements: string[] = []
let organizationId: string
let appId: string
let scope: KeyScope
const ctx = () => ({ db: database.db, clock })

beforeAll(async () => {
  database = await testDatabase({ onStatement: (text) => void statements.push(text) })
  organizationId = await createOrganization(ctx(), { name: 'Org' }, SYSTEM)
})
afterAll(() => database.close())
beforeEach(async () => {
  appId = await createApp(ctx(), organizationId, { name: 'App' }, SYSTEM)
  scope = { kind: 'app', appId }
  statements = []
})

const lookups = () => statements.filter((text) => text.includes('hash = any')).length
/** A listener that hears nothing until told to. */
function deafListener() {
  let heard: (payload: string) => void = () => {}
  const listener: Pick<Listener, 'on'> = {
    on: (_channel, hear) => {
      heard = hear
    },
  }
  return { listener, say: (payload: string) => heard(payload) }
}
const deafLookup = (db: Db = database.db) => {
  const { listener, say } = deafListener()
  return { lookup: createKeyLookup({ db, clock, listener }), say }
}
const find = async (lookup: KeyLookup, key: string) => lookup.find(sha256(key))

describe('keys', () => {
  test('are found by what was issued, and kept as a hash alone', async () => {
    const { keyId, key } = await issueKey(
      ctx(),
      scope,
      { name: 'CI', permissions: ['users'], ipAllowlist: ['192.0.2.0/24', '2001:db8::/32'] },
      SYSTEM,
    )
    expect(await find(deafLookup().lookup, key)).toEqual({
      keyId,
      kind: 'app',
      organizationId,
      appId,
      permissions: ['users'],
      ipAllowlist: ['192.0.2.0/24', '2001:db8::/32'],
    })
    const rows = await database.db.query<{ hash: Buffer; row: string }>(sql`
      select hash, k::text as row from api_keys k where id = ${keyId}`)
    expect(rows[0]?.hash).toEqual(sha256(key))
    expect(rows[0]?.row).not.toContain(key.slice(10))
  })

  test('are unknown when a letter is missing or changed', async () => {
    const { key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const { lookup } = deafLookup()
    for (const wrong of [key.slice(0, -1), `${key}a`, key.toUpperCase(), '', sha256(key).toString('hex')])
      expect(await find(lookup, wrong)).toBeUndefined()
  })

  test('of an organization have no app and no permissions', async () => {
    const { key } = await issueKey(ctx(), { kind: 'org', organizationId }, { name: 'Org key' }, SYSTEM)
    expect(await find(deafLookup().lookup, key)).toMatchObject({
      kind: 'org',
      appId: null,
      permissions: [],
      organizationId,
    })
  })

  test('are listed without their hash, per app, without those revoked', async () => {
    const first = await issueKey(ctx(), scope, { name: 'First' }, SYSTEM)
    const second = await issueKey(ctx(), scope, { name: 'Second', permissions: ['users'] }, SYSTEM)
    await revokeKey(ctx(), scope, first.keyId, SYSTEM)
    const listed = await listKeys(ctx(), scope)
    expect(listed).toEqual([
      {
        id: second.keyId,
        name: 'Second',
        permissions: ['users'],
        ipAllowlist: [],
        ipAllowlistMode: 'disabled',
        createdAt: clock.now(),
        updatedAt: clock.now(),
        lastUsedAt: null,
      },
    ])
  })

  test('are revoked within their own scope alone, and once', async () => {
    const { keyId, key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const otherApp = await createApp(ctx(), organizationId, { name: 'Other' }, SYSTEM)
    const gone = { kind: 'not-found', problems: [{ code: 'key-0' }] }
    await expect(revokeKey(ctx(), { kind: 'app', appId: otherApp }, keyId, SYSTEM)).rejects.toMatchObject(gone)
    await expect(revokeKey(ctx(), { kind: 'org', organizationId }, keyId, SYSTEM)).rejects.toMatchObject(gone)
    expect(await find(deafLookup().lookup, key)).toBeDefined()
    await revokeKey(ctx(), scope, keyId, SYSTEM)
    await expect(revokeKey(ctx(), scope, keyId, SYSTEM)).rejects.toMatchObject(gone)
    expect(await find(deafLookup().lookup, key)).toBeUndefined()
  })

  test('are at most 16, also when issued at once', async () => {
    const issue = (name: string) => issueKey(ctx(), scope, { name }, SYSTEM)
    for (let i = 0; i < MAX_KEYS - 1; i++) await issue(`Key ${i}`)
    const results = await Promise.allSettled(Array.from({ length: 4 }, (_, i) => issue(`Late key ${i}`)))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await listKeys(ctx(), scope)).toHaveLength(MAX_KEYS)
  })

  test.each([
    ['no name', { name: '' }],
    ['a long name', { name: 'x'.repeat(129) }],
    ['an unknown permission', { name: 'x', permissions: ['everything' as 'users'] }],
    ['a network that is none', { name: 'x', ipAllowlist: ['10.0.0.0/33'] }],
    ['101 networks', { name: 'x', ipAllowlist: Array<string>(101).fill('10.0.0.1') }],
    ['a short key', { name: 'x', key: 'short' }],
    ['a key with a blank', { name: 'x', key: `${'x'.repeat(40)} y` }],
  ])('%s is refused', async (_, draft) => {
    await expect(issueKey(ctx(), scope, draft, SYSTEM)).rejects.toMatchObject({ kind: 'invalid' })
    expect(await listKeys(ctx(), scope)).toEqual([])
  })

  test('leave a trace of who issued and revoked them, without the key', async () => {
    const actor = { kind: 'organization' as const, id: newId() }
    const { keyId, key } = await issueKey(ctx(), scope, { name: 'CI' }, actor)
    clock.advance({ minutes: 1 })
    await revokeKey(ctx(), scope, keyId, actor)
    const log = await database.db.query(sql`
      select app_id, actor_kind, actor_id, action, target_type, detail from audit_log where target_id = ${keyId} order by at`)
    const who = { appId, actorKind: 'organization', actorId: actor.id, targetType: 'key' }
    expect(log).toMatchObject([
      { ...who, action: 'key.issue', detail: { name: 'CI' } },
      { ...who, action: 'key.revoke', detail: { name: 'CI' } },
    ])
    expect(JSON.stringify(log)).not.toContain(key.slice(10))
  })
})

describe('the lookup', () => {
  test('asks once in 4 s', async () => {
    const { key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const { lookup } = deafLookup()
    await find(lookup, key)
    clock.advanceLease({ ms: 3_999 })
    expect(lookup.find(sha256(key))).not.toBeInstanceOf(Promise)
    expect(lookups()).toBe(1)
    clock.advanceLease({ ms: 1 })
    await find(lookup, key)
    expect(lookups()).toBe(2)
  })

  test('a revoked key lives no longer than 4 s where the notification is lost', async () => {
    const { keyId, key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const { lookup } = deafLookup()
    await find(lookup, key)
    await revokeKey(ctx(), scope, keyId, SYSTEM)
    clock.advanceLease({ ms: 3_999 })
    expect(await find(lookup, key)).toBeDefined()
    clock.advanceLease({ ms: 1 })
    expect(await find(lookup, key)).toBeUndefined()
  })

  test('nothing is believed when the clock was set back', async () => {
    const { key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const { lookup } = deafLookup()
    await find(lookup, key)
    clock.advanceLease({ seconds: -10 })
    await find(lookup, key)
    expect(lookups()).toBe(2)
    clock.advanceLease({ seconds: 10 })
  })

  test('a revoked key is dead at once where the notification is heard', async () => {
    // Before anybody listens: its own announcement would come in between.
    const { keyId, key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const listener = createListener(database.connection, createLog('silent'))
    try {
      const connected = Promise.withResolvers<void>()
      const lookup = createKeyLookup({ db: database.db, clock, listener })
      listener.on('carillon_keys', () => {}, connected.resolve)
      await connected.promise
      expect(await find(lookup, key)).toBeDefined()
      expect(lookup.find(sha256(key))).not.toBeInstanceOf(Promise)
      await revokeKey(ctx(), scope, keyId, SYSTEM)
      // The clock of the cache stands still: only the notification can do it.
      await expect.poll(() => find(lookup, key)).toBeUndefined()

      expect(await lookup.findApp(appId)).toMatchObject({ plan: 'paid' })
      await setApp(ctx(), appId, { plan: 'free' }, SYSTEM)
      await expect.poll(() => lookup.findApp(appId)).toMatchObject({ plan: 'free' })
    } finally {
      await listener.close()
    }
  })

  test('what is announced names ids alone', async () => {
    const listener = createListener(database.connection, createLog('silent'))
    try {
      const heard: string[] = []
      const connected = Promise.withResolvers<void>()
      listener.on('carillon_keys', (payload) => void heard.push(payload), connected.resolve)
      await connected.promise
      const { keyId } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
      await setApp(ctx(), appId, { plan: 'paid' }, SYSTEM)
      await expect.poll(() => heard.slice(-2)).toEqual([`key ${keyId}`, `app ${appId}`])
    } finally {
      await listener.close()
    }
  })

  test('an answer that was on its way when something changed is not kept', async () => {
    const { key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const gate = Promise.withResolvers<void>()
    let isHeld = true
    const held: Db = {
      query: async (statement) => {
        const rows = await database.db.query(statement)
        if (isHeld) await gate.promise
        return rows as never
      },
      transaction: (run) => database.db.transaction(run),
    }
    const { lookup, say } = deafLookup(held)
    const early = find(lookup, key)
    say('key of-somebody')
    isHeld = false
    gate.resolve()
    expect(await early).toBeDefined()
    expect(lookup.find(sha256(key))).toBeInstanceOf(Promise)
  })

  test('callers who ask for one key at once share one query', async () => {
    const { key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    const { lookup } = deafLookup()
    const found = await Promise.all(Array.from({ length: 50 }, () => find(lookup, key)))
    expect(new Set(found).size).toBe(1)
    expect(lookups()).toBe(1)
  })

  test('a flood of wrong keys is a few queries, and none of them is remembered', async () => {
    const { lookup } = deafLookup()
    const found = await Promise.all(Array.from({ length: 500 }, (_, i) => find(lookup, `wrong ${i}`)))
    expect(found.every((one) => one === undefined)).toBe(true)
    expect(lookups()).toBeLessThanOrEqual(4)
    const before = lookups()
    const { key } = await issueKey(ctx(), scope, { name: 'CI', key: `late-${'x'.repeat(40)}` }, SYSTEM)
    expect(await find(lookup, key)).toBeDefined()
    expect(lookups()).toBe(before + 1)
  })

  test('a database that is away is said so, and forgotten when it is back', async () => {
    const { key } = await issueKey(ctx(), scope, { name: 'CI' }, SYSTEM)
    let isAway = true
    const shaky: Db = {
      query: (statement) => (isAway ? Promise.reject(new Error('away')) : database.db.query(statement)),
      transaction: (run) => database.db.transaction(run),
    }
    const { lookup } = deafLookup(shaky)
    await expect(Promise.all([find(lookup, key), find(lookup, key)])).rejects.toThrow('away')
    await expect(lookup.findApp(appId)).rejects.toThrow('away')
    isAway = false
    expect(await find(lookup, key)).toBeDefined()
    expect(await lookup.findApp(appId)).toMatchObject({ id: appId })
  })

  test('apps that are not there are not found', async () => {
    expect(await deafLookup().lookup.findApp(newId())).toBeUndefined()
  })
})
