import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { runJobs } from '../../test/events.ts'
import { aStoredMessage } from '../../test/stored-messages.ts'
import { aName, NOBODY } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'
import { MAX_NAMES } from './record-measure.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:30:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const SDK = { authorization: '', accept: 'application/vnd.onesignal.v1+json', 'sdk-version': 'onesignal/web/160510' }
const measure = (body: object) =>
  app.request('/outcomes/measure', { headers: SDK, body: { app_id: app.tenant.id, ...body } })
const measureSources = (body: object) =>
  app.request('/outcomes/measure_sources', { headers: SDK, body: { app_id: app.tenant.id, ...body } })
const view = async (query: string) => (await app.app(`/outcomes?${query}`)).body.outcomes
const firstValue = async (query: string) => (await view(query))[0].value

describe('measure and view outcomes', () => {
  test('as SDKs send them, counted and summed to the last digit', async () => {
    const id = aName('buy')
    const body = { id, onesignal_id: NOBODY, subscription: { id: NOBODY, type: 'ChromePush' } }
    const answers = await Promise.all(Array.from({ length: 30 }, () => measure({ ...body, weight: 0.1 })))
    for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 200, body: {} })
    await measure({ ...body, weight: 1_000_000 })
    await measure(body)
    expect(await view(`outcome_names=${id}.count,${id}.sum,nothing.count`)).toEqual([
      { id, value: 32, aggregation: 'count' },
      { id, value: 1_000_003, aggregation: 'sum' },
      { id: 'nothing', value: 0, aggregation: 'count' },
    ])
    expect(await view(`outcome_names[]=${id}.sum&outcome_names[]=${id}.count`)).toMatchObject([
      { aggregation: 'sum' },
      { aggregation: 'count' },
    ])
  })

  test('by attribution and platform, newer and older SDKs alike', async () => {
    const id = aName('signup')
    const message = await aStoredMessage(app)
    const ids = [message.id]
    await measure({ id, device_type: 1 })
    await measure({ id, direct: true, notification_ids: ids, subscription: { id: NOBODY, type: 'iOSPush' } })
    await measure({ id, direct: false, notification_ids: ids, device_type: 5 })
    await measureSources({ id, device_type: 0, weight: 2, sources: { direct: { notification_ids: ids } } })
    await measureSources({ id, device_type: 0, sources: { indirect: { in_app_message_ids: ['x'] } } })
    await measureSources({ id, device_type: 0, sources: {} })
    const count = (more: string) => firstValue(`outcome_names=${id}.count${more}`)
    expect(await count('')).toBe(6)
    expect(await count('&outcome_attribution=total')).toBe(6)
    expect(await count('&outcome_attribution=direct')).toBe(2)
    expect(await count('&outcome_attribution=influenced')).toBe(2)
    expect(await count('&outcome_attribution=unattributed')).toBe(2)
    expect(await count('&outcome_platforms=0')).toBe(4)
    expect(await count('&outcome_platforms=1,5')).toBe(2)
    expect(await count('&outcome_platforms=0&outcome_attribution=direct')).toBe(2)
    const viewed = (query: string) =>
      app.request(`/notifications/${message.id}?app_id=${app.tenant.id}&outcome_names[]=${id}.count${query}`)
    expect((await viewed(`&outcome_names[]=${id}.sum`)).body.outcomes).toEqual([
      { id, value: 3, aggregation: 'count' },
      { id, value: 2, aggregation: 'sum' },
    ])
    expect((await viewed('&outcome_attribution=influenced')).body.outcomes).toMatchObject([{ value: 1 }])
    expect((await viewed('&outcome_time_range=1y')).status).toBe(400)
  })

  test('put down to several messages it counts once for each, and once for the app', async () => {
    const id = aName('visit')
    const messages = [await aStoredMessage(app), await aStoredMessage(app)]
    const foreign = await aStoredMessage(app, { appId: (await app.anotherTenant()).id })
    const ids = [...messages, messages[0], foreign, { id: newId() }].map((it) => it?.id)
    await measure({ id, direct: false, notification_ids: [...ids, 'no id'] })
    expect(await firstValue(`outcome_names=${id}.count`)).toBe(1)
    const rows = await app.db.query<{ messageId: string; count: number }>(sql`
      select message_id, count from outcome_counts where name = ${id} and message_id <> ${NIL}`)
    expect(rows.map(({ messageId, count }) => `${messageId} ${count}`).sort()).toEqual(
      messages.map((it) => `${it.id} 1`).sort(),
    )
  })

  test('a session: how many, and how long', async () => {
    const before = await view('outcome_names=os__session_duration.count,os__session_duration.sum')
    await measure({ id: 'os__session_duration', session_time: 90, device_type: 0, weight: 5 })
    await measure({ id: 'os__session_duration', session_time: 30, direct: true, notification_ids: [newId()] })
    const after = await view('outcome_names=os__session_duration.count,os__session_duration.sum')
    expect([after[0].value - before[0].value, after[1].value - before[1].value]).toEqual([2, 120])
  })

  test('clicks and confirmed deliveries, of the messages of the last while', async () => {
    const old = await aStoredMessage(app, { at: new Date(clock.now().getTime() - 5 * 3_600_000) })
    const fresh = await aStoredMessage(app, { at: clock.now() })
    for (const { id } of [old, fresh])
      for (const [state, platform, count] of [
        ['clicked', 'iOSPush', 2],
        ['clicked', 'AndroidPush', 1],
        ['received', 'iOSPush', 7],
        ['sent', 'iOSPush', 9],
      ])
        await app.db.query(sql`
          insert into message_counts (app_id, message_id, platform, state, part, count)
          values (${app.tenant.id}, ${id}, ${platform}, ${state}, 0, ${count})`)
    const both = async (more: string) =>
      (await view(`outcome_names=os__click.count,os__confirmed_delivery.count${more}`)).map(
        ({ value }: { value: number }) => value,
      )
    expect(await both('')).toEqual([3, 7])
    expect(await both('&outcome_time_range=1d')).toEqual([6, 14])
    expect(await both('&outcome_platforms=1')).toEqual([1, 0])
    expect(await both('&outcome_attribution=direct')).toEqual([3, 7])
    expect(await both('&outcome_attribution=influenced')).toEqual([0, 0])
    const one = await app.request(
      `/notifications/${old.id}?app_id=${app.tenant.id}&outcome_names=os__click.count,os__confirmed_delivery.count`,
    )
    expect(one.body.outcomes.map(({ value }: { value: number }) => value)).toEqual([3, 7])
  })

  test('in the last hour, day and month; what an SDK could not send in time is dated back', async () => {
    const id = aName('late')
    const hoursAgo = (hours: number) => Math.floor(clock.now().getTime() / 1000) - hours * 3_600
    for (const timestamp of [hoursAgo(0), hoursAgo(3), hoursAgo(24 * 3), hoursAgo(-5), hoursAgo(24 * 40)])
      await measure({ id, timestamp })
    const count = (range: string) => firstValue(`outcome_names=${id}.count&outcome_time_range=${range}`)
    // What would lie in the future, or too far back, is dated now.
    expect([await count('1h'), await count('1d'), await count('1mo')]).toEqual([3, 4, 5])
    clock.advance({ days: 2 })
    expect([await count('1h'), await count('1d'), await count('1mo')]).toEqual([0, 0, 5])
  })

  test('counts are kept for two months', async () => {
    const id = aName('old')
    await measure({ id })
    const left = () => app.db.query(sql`select 1 as one from outcome_counts where name = ${id}`)
    clock.advance({ days: 61 })
    await runJobs(app, clock)
    expect(await left()).toHaveLength(1)
    clock.advance({ days: 2 })
    await runJobs(app, clock)
    expect(await left()).toHaveLength(0)
  })
})

describe('what is wrong is told, and counts nothing', () => {
  test.each<[string, object]>([
    ['no name', {}],
    ['an empty name', { id: '' }],
    ['a long name', { id: 'x'.repeat(129) }],
    ['a name that the server counts', { id: 'os__click' }],
    ['a weight that is text', { id: 'x', weight: '1' }],
    ['a weight beyond reason', { id: 'x', weight: 1e13 }],
    ['an unknown type', { id: 'x', subscription: { type: 'Pigeon' } }],
    ['ids that are no list', { id: 'x', direct: true, notification_ids: 'x' }],
    ['too many ids', { id: 'x', direct: true, notification_ids: Array.from({ length: 101 }, newId) }],
  ])('%s', async (_, body) => {
    const { status, body: answer } = await measure(body)
    expect({ status, errors: answer.errors }).toEqual({ status: 400, errors: [expect.any(String)] })
    expect(await firstValue('outcome_names=x.count')).toBe(0)
  })

  test.each([
    ['outcome_names=', 'outcome_names is required'],
    ['', 'outcome_names is required'],
    ['outcome_names=x', 'outcome_names: "x" must be the name of an outcome, followed by .count or .sum'],
    [
      'outcome_names=x.average',
      'outcome_names: "x.average" must be the name of an outcome, followed by .count or .sum',
    ],
    ['outcome_names=x.count&outcome_platforms=ios', 'outcome_platforms: "ios" is no device type'],
    ['outcome_names=x.count&outcome_platforms=12', 'outcome_platforms: "12" is no device type'],
  ])('%s', async (query, error) => {
    expect(await app.app(`/outcomes?${query}`)).toMatchObject({ status: 400, body: { errors: [error] } })
  })

  test('a range and an attribution that are not there', async () => {
    for (const more of ['outcome_time_range=2h', 'outcome_attribution=some'])
      expect((await app.app(`/outcomes?outcome_names=x.count&${more}`)).status).toBe(400)
  })

  test('an app has a bounded number of names, however many come at once', async () => {
    const { id: appId, key } = await app.anotherTenant()
    await app.db.query(sql`
      insert into outcome_names (app_id, name) select ${appId}, 'n' || n from generate_series(1, ${MAX_NAMES - 5}) n`)
    const asked = Array.from({ length: 20 }, (_, n) =>
      app.request('/outcomes/measure', {
        headers: { authorization: `Key ${key}` },
        body: { app_id: appId, id: `new-${n}` },
      }),
    )
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
    expect(statuses.filter((status) => status === 400)).toHaveLength(15)
    const again = await app.request('/outcomes/measure', {
      headers: { authorization: `Key ${key}` },
      body: { app_id: appId, id: 'n1' },
    })
    expect(again.status).toBe(200)
  })
})

const NIL = '00000000-0000-0000-0000-000000000000'
