import { copyFile, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { asAdmin, copyOf, type TestDatabase, testDatabase } from '../../test/database.ts'
import { SYSTEM } from '../apps/app.ts'
import { createApp, createOrganization } from '../apps/create.ts'
import { virtualClock } from '../lib/clock.ts'
import { type AppId, newId } from '../lib/ids.ts'
import { createLog } from '../lib/log.ts'
import { createPool, type Db } from '../storage/db.ts'
import { openEpoch } from '../storage/embedded/epoch.ts'
import { sql } from '../storage/sql.ts'
import { pauseServer, resumeServer } from './control-server.ts'
import { readSending } from './read.ts'
import { reserveMessages } from './reserve.ts'
import { guardRestore } from './restore-guard.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
const log = createLog('silent')
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function opened(database: Promise<TestDatabase>): Promise<TestDatabase> {
  const it = await database
  closers.push(it.close)
  return it
}

/** What a server does when it starts. */
const start = (db: Db, epoch?: string) => guardRestore(db, epoch, clock.now(), log)

async function anApp(db: Db): Promise<AppId> {
  const organizationId = await createOrganization({ db, clock }, { name: 'Example' }, SYSTEM)
  return createApp({ db, clock }, organizationId, { name: 'Shop' }, SYSTEM)
}

const sendingOf = async (db: Db, appId?: AppId) => readSending(db, appId ?? (await anApp(db)), clock.now())
const holdOf = async (db: Db, appId?: AppId) => (await sendingOf(db, appId)).hold
const control = (db: Db) => ({ db, now: clock.now })

describe('a server that starts', () => {
  test('on the database of its last start sends', async () => {
    const { db } = await opened(testDatabase())
    for (let times = 0; times < 3; times++) await start(db, 'a')
    expect(await holdOf(db)).toBeUndefined()
  })

  test('on a copy of the database holds all sending, also after it starts again, and the original goes on', async () => {
    const original = await opened(testDatabase())
    const app = await anApp(original.db)
    await start(original.db)
    const copy = await opened(copyOf(original))
    const since = clock.now()
    await start(copy.db)
    clock.advance({ minutes: 1 })
    await start(copy.db)
    expect(await holdOf(copy.db, app)).toEqual({ reason: 'restored', since })
    expect(await copy.db.transaction((db) => reserveMessages(db, app, 1, clock.now()))).toMatchObject({
      granted: 0,
      hold: { reason: 'restored' },
    })
    await start(original.db)
    expect(await holdOf(original.db, app)).toBeUndefined()
  })

  test('on tables that were loaded from a dump, in a database of the same name, holds all sending', async () => {
    const { db } = await opened(testDatabase())
    await start(db)
    await db.query(sql`create table loaded as select version, name, checksum, applied_at from schema_migrations`)
    await db.query(sql`drop table schema_migrations`)
    await db.query(sql`alter table loaded rename to schema_migrations`)
    await start(db)
    expect(await holdOf(db)).toMatchObject({ reason: 'restored' })
  })

  test('on a database that another PostgreSQL brought up holds all sending', async () => {
    const { db } = await opened(testDatabase())
    await start(db)
    await db.query(sql`update server_sending set identity = identity || '{"system":"7000000000000000000"}'`)
    await start(db)
    expect(await holdOf(db)).toMatchObject({ reason: 'restored' })
  })

  test('in another data folder than before holds all sending', async () => {
    const { db } = await opened(testDatabase())
    await start(db, 'a')
    const since = clock.now()
    await start(db, 'b')
    clock.advance({ minutes: 1 })
    await start(db, 'c')
    expect(await holdOf(db)).toEqual({ reason: 'restored', since })
  })

  test('where the database’s operator shows no system identifier still tells a copy', async () => {
    const original = await opened(testDatabase())
    const role = `plain_${newId().slice(0, 8)}`
    await asAdmin(`create role ${role} login`)
    closers.unshift(() => asAdmin(`drop role ${role}`))
    closers.push(() => original.db.query({ text: `drop owned by ${role}`, values: [] }))
    for (const text of [
      'revoke execute on function pg_control_system() from public',
      `grant select, update on server_sending to ${role}`,
      `grant select on schema_migrations to ${role}`,
    ])
      await original.db.query({ text, values: [] })
    const asPlain = ({ connection }: TestDatabase) => {
      const db = createPool({ connection: { ...connection, user: role }, size: 2 })
      closers.push(db.close)
      return db
    }
    const plain = asPlain(original)
    await start(plain)
    await start(plain)
    const [{ identity } = { identity: {} }] = await original.db.query<{ identity: object }>(
      sql`select identity from server_sending`,
    )
    expect(Object.keys(identity).sort()).toEqual(['database', 'table'])
    // Who may see it remembers it; who may not does not forget it.
    await start(original.db)
    await start(plain)
    expect(await holdOf(original.db)).toBeUndefined()
    const copy = await opened(copyOf(original))
    closers.push(() => copy.db.query({ text: `drop owned by ${role}`, values: [] }))
    await start(asPlain(copy))
    expect(await holdOf(copy.db)).toMatchObject({ reason: 'restored' })
  })
})

describe('after a restore', () => {
  const aRestored = async () => {
    const { db } = await opened(testDatabase())
    await anApp(db)
    await start(db, 'a')
    await start(db, 'b')
    clock.advance({ hours: 1 })
    return db
  }

  test('nothing goes on before somebody chooses', async () => {
    const db = await aRestored()
    await expect(resumeServer(control(db))).rejects.toThrow('choose --send to send what is due, or --discard')
    expect(await holdOf(db)).toMatchObject({ reason: 'restored' })
  })

  test('all that is due is sent, if so chosen', async () => {
    const db = await aRestored()
    await resumeServer(control(db), 'send')
    expect(await sendingOf(db)).toMatchObject({ hold: undefined, discardBefore: undefined })
    await start(db, 'b')
    expect(await holdOf(db)).toBeUndefined()
  })

  test('all that was due before is given up, if so chosen', async () => {
    const db = await aRestored()
    await resumeServer(control(db), 'discard')
    const discardBefore = clock.now()
    expect(await sendingOf(db)).toMatchObject({ hold: undefined, discardBefore })
  })

  test('a pause of the server is not what hides it', async () => {
    const db = await aRestored()
    await pauseServer(control(db))
    expect(await holdOf(db)).toMatchObject({ reason: 'restored' })
  })
})

describe('a pause of the server', () => {
  test('holds every app, survives a restart, and is written down for each organization', async () => {
    const { db } = await opened(testDatabase())
    const apps = [await anApp(db), await anApp(db)]
    const since = clock.now()
    await pauseServer(control(db))
    clock.advance({ seconds: 1 })
    await pauseServer(control(db))
    await start(db)
    for (const app of apps) {
      expect(await holdOf(db, app)).toEqual({ reason: 'server_paused', since })
      expect(await db.transaction((db) => reserveMessages(db, app, 1, clock.now()))).toMatchObject({ granted: 0 })
    }
    await resumeServer(control(db))
    for (const app of apps) expect(await holdOf(db, app)).toBeUndefined()
    const log = await db.query<{ action: string }>(
      sql`select action from audit_log where action like 'server.%' order by at`,
    )
    expect(log.map(({ action }) => action)).toEqual([
      ...Array(2).fill('server.sending.pause'),
      ...Array(2).fill('server.sending.resume'),
    ])
  })

  test('is not a restore: nothing is discarded with it', async () => {
    const { db } = await opened(testDatabase())
    await pauseServer(control(db))
    await expect(resumeServer(control(db), 'discard')).rejects.toThrow('was not restored')
    expect(await holdOf(db)).toMatchObject({ reason: 'server_paused' })
  })
})

describe('the epoch of a data folder', () => {
  const aFolder = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'carillon-epoch-'))
    closers.push(() => rm(folder, { recursive: true, force: true }))
    return folder
  }

  /** A file system's clock ticks every few milliseconds; two files of one tick were made at the same time. */
  const afterTick = async (file: string) => {
    const madeAt = async (path: string) => (await stat(path, { bigint: true })).birthtimeNs
    const first = await madeAt(file)
    const probe = `${file}.probe`
    for (let last = first; last === first && first > 0n; ) {
      await rm(probe, { force: true })
      await writeFile(probe, '')
      last = await madeAt(probe)
    }
  }

  test('stays, also when the folder is moved', async () => {
    const parent = await aFolder()
    const first = await openEpoch(parent)
    expect(await openEpoch(parent)).toBe(first)
    const moved = `${parent}-moved`
    await rename(parent, moved)
    closers.push(() => rm(moved, { recursive: true, force: true }))
    expect(await openEpoch(moved)).toBe(first)
  })

  test('is another in a copy, in a folder without one, and where the file was restored', async () => {
    const [original, copy, empty] = [await aFolder(), await aFolder(), await aFolder()]
    const first = await openEpoch(original)
    await afterTick(join(original, 'epoch'))
    await copyFile(join(original, 'epoch'), join(copy, 'epoch'))
    expect(await openEpoch(copy)).not.toBe(first)
    expect(await openEpoch(empty)).not.toBe(first)
    await writeFile(join(original, 'epoch.restored'), first.split(' ')[0] as string)
    await rename(join(original, 'epoch.restored'), join(original, 'epoch'))
    expect(await openEpoch(original)).not.toBe(first)
  })
})
