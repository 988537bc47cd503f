import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aCountedApp, type CountedApp } from '../../test/sending.ts'
import { told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { createPool } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { readSending } from './read.ts'
import { releaseMessages } from './reserve.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let app: CountedApp
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(() => server.close())
beforeEach(async () => {
  clock.advance({ hours: 1 })
  app = await aCountedApp(server, clock, 1)
})

const POST = { method: 'POST' }
const wakes = (appId: string) =>
  server.db.query<{ key: string }>(sql`select key from jobs where app_id = ${appId} and name = 'messages.wake'`)
const actions = async (appId: string) => {
  const found = await server.db.query<{ action: string; actorKind: string }>(
    sql`select action, actor_kind from audit_log where app_id = ${appId} and action like '%sending.%' order by at, id`,
  )
  return found.map(({ action, actorKind }) => `${action} by ${actorKind}`)
}

const SENDING = {
  state: 'sending',
  hold: null,
  paused_since: null,
  disabled_since: null,
  enabled_at: null,
  usage: { used: 0, limit: 10, window_seconds: 900 },
  notices: [],
}

describe('the state of sending', () => {
  test('of an app that never sent', async () => {
    expect(told(await app.ask('/sending'))).toEqual({ status: 200, body: SENDING })
  })

  test('says how much of the limit is used, at this moment', async () => {
    await app.take(7)
    expect((await app.ask('/sending')).body.usage).toEqual({ used: 7, limit: 10, window_seconds: 900 })
    await app.subscribe(2)
    expect((await app.ask('/sending')).body.usage).toMatchObject({ used: 7, limit: 30 })
    clock.advance({ minutes: 16 })
    expect((await app.ask('/sending')).body.usage).toMatchObject({ used: 0 })
  })

  test('of a disabled app says since when and until when, with the notice', async () => {
    const since = clock.now().toISOString()
    const until = new Date(clock.now().getTime() + 901_000).toISOString()
    await app.take(11)
    const { body } = await app.ask('/sending')
    expect(body).toMatchObject({
      state: 'held',
      hold: { reason: 'disabled', since, until },
      disabled_since: since,
      usage: { used: 10, limit: 10 },
      notices: [{ at: since, kind: 'sending.disabled', administrator_id: null, detail: { used: 10, limit: 10 } }],
    })
    clock.advance({ seconds: 901 })
    expect((await app.ask('/sending')).body).toMatchObject({ state: 'sending', hold: null, disabled_since: null })
  })

  test('is not affected by requests that were refused with 429', async () => {
    const limited = await testApp({ clock, beside: server, limits: 'spec' })
    try {
      const answers = await Promise.all(Array.from({ length: 40 }, () => limited.app('/users/by/external_id/nobody')))
      expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(30)
      expect((await limited.app('/sending')).body).toMatchObject({ state: 'sending', usage: { used: 0 } })
    } finally {
      await limited.close()
    }
  })
})

describe('pause', () => {
  test('holds the sending of the app from its answer on, and keeps the time of the first', async () => {
    const since = clock.now()
    const { status, body } = await app.ask('/sending/pause', POST)
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { state: 'held', hold: { reason: 'paused', since: since.toISOString(), until: null } },
    })
    clock.advance({ minutes: 1 })
    await app.ask('/sending/pause', POST)
    expect(await app.take(1)).toMatchObject({ granted: 0, hold: { reason: 'paused', since } })
    expect((await readSending(server.db, app.id, clock.now())).hold).toEqual({ reason: 'paused', since })
    expect(await actions(app.id)).toEqual(['sending.pause by key'])
  })

  test('is still there for a server that starts later', async () => {
    await app.ask('/sending/pause', POST)
    const later = createPool({ connection: server.connection, size: 1 })
    try {
      expect((await readSending(later, app.id, clock.now())).hold).toMatchObject({ reason: 'paused' })
    } finally {
      await later.close()
    }
  })

  test('does not hold other apps', async () => {
    const other = await aCountedApp(server, clock, 1)
    await app.ask('/sending/pause', POST)
    expect(await other.take(1)).not.toHaveProperty('hold')
  })

  test('is told before the disabling, which it does not end', async () => {
    await app.take(11)
    await app.ask('/sending/pause', POST)
    expect((await app.ask('/sending')).body).toMatchObject({
      hold: { reason: 'paused' },
      disabled_since: clock.now().toISOString(),
    })
    expect((await app.ask('/sending/resume', POST)).body.hold).toMatchObject({ reason: 'disabled' })
  })
})

describe('resume', () => {
  test('lets the app send again, and wakes whoever sends', async () => {
    await app.ask('/sending/pause', POST)
    clock.advance({ seconds: 1 })
    expect((await app.asOrganization('/sending/resume', POST)).body).toEqual(SENDING)
    expect(await app.take(1)).toMatchObject({ granted: 1 })
    expect(await wakes(app.id)).toEqual([{ key: 'wake' }])
    expect(await actions(app.id)).toEqual(['sending.pause by key', 'sending.resume by organization'])
  })

  test('of an app that is not paused changes nothing', async () => {
    expect(told(await app.ask('/sending/resume', POST))).toEqual({ status: 200, body: SENDING })
    expect(await wakes(app.id)).toEqual([])
    expect(await actions(app.id)).toEqual([])
  })
})

describe('enable', () => {
  test('begins a new window: what was sent before counts no more', async () => {
    await app.take(11)
    clock.advance({ minutes: 1 })
    const enabledAt = clock.now().toISOString()
    const { body } = await app.ask('/sending/enable', POST)
    expect(body).toMatchObject({ ...SENDING, enabled_at: enabledAt, notices: [{ kind: 'sending.disabled' }] })
    expect(await app.take(10)).not.toHaveProperty('hold')
    expect(await wakes(app.id)).toEqual([{ key: 'wake' }])
    expect(await actions(app.id)).toEqual(['sending.enable by key'])
    // And it is disabled again, and told of again, when that window is full.
    expect(await app.take(1)).toMatchObject({ granted: 0, hold: { reason: 'disabled', since: clock.now() } })
    expect((await app.ask('/notices')).body).toMatchObject({ total_count: 2 })
  })

  test('of an app that is not disabled leaves what it has used', async () => {
    await app.take(6)
    expect((await app.ask('/sending/enable', POST)).body.usage).toMatchObject({ used: 6 })
    expect(await actions(app.id)).toEqual([])
  })

  test('of an app that has come back by itself leaves what it has used since', async () => {
    await app.take(6)
    clock.advance({ minutes: 14 })
    await app.take(5)
    clock.advance({ minutes: 1, seconds: 1 })
    expect((await app.ask('/sending/enable', POST)).body).toMatchObject({ hold: null, usage: { used: 4 } })
  })

  test('what is given back of the window before is not taken from the new one', async () => {
    const { second } = await app.take(11)
    await app.ask('/sending/enable', POST)
    await app.take(10)
    await server.db.transaction((db) => releaseMessages(db, app.id, [{ second, count: 10 }], clock.now()))
    expect(await app.take(1)).toMatchObject({ granted: 0 })
  })
})
