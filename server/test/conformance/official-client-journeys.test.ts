// The journey operations through the published client, unmodified.

import * as OneSignal from '@onesignal/node-onesignal'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { virtualClock } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../app.ts'
import { runJobs } from '../events.ts'
import { everyKind, someReferences } from '../journeys.ts'
import { anId, NOBODY } from '../users.ts'

let app: TestApp
let client: OneSignal.DefaultApi
let appId: string
const clock = virtualClock('2030-01-01T09:00:00Z')
const clientFor = ({ url, tenant }: TestApp, restApiKey = tenant.key) =>
  new OneSignal.DefaultApi(
    OneSignal.createConfiguration({ restApiKey, baseServer: new OneSignal.ServerConfiguration(url, {}) }),
  )
beforeAll(async () => {
  app = await testApp({ clock })
  appId = app.tenant.id
  client = clientFor(app)
})
afterAll(() => app.close())

async function failureOf(call: Promise<unknown>) {
  const error = await call.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(OneSignal.ApiException)
  const { code, errorMessages, body } = error as OneSignal.ApiException<{ errors: { code: string }[] }>
  return { code, errorMessages, codes: body.errors.map((it) => it.code) }
}

const wait: OneSignal.JourneyNode = { kind: 'wait', duration_seconds: 3600 }

/** One that can be activated. */
async function aReadyJourney(fields: object = {}): Promise<OneSignal.Journey & { id: string }> {
  const { id } = await client.createSegment(appId, {
    name: `Segment ${Math.random()}`,
    filters: [{ field: 'tag', key: 'plan', relation: '=', value: 'gold' }],
  })
  const audience = { kind: 'segment' as const, included_segment_ids: [id as string] }
  const journey = await client.createJourney(appId, { name: 'Ready', audience, nodes: [wait], ...fields })
  return { ...journey, id: journey.id as string }
}

describe('journeys', () => {
  test('createJourney makes a draft, with nodes of every kind', async () => {
    const it = await someReferences(app)
    const nodes = everyKind(it) as OneSignal.JourneyNode[]
    const made = await client.createJourney(appId, {
      name: 'Welcome',
      description: 'For new users',
      early_exit: { rules: { on_event: { name: 'left' } }, tag_on_early_exit: { left: 'yes' } },
      reentry_rules: { duration_seconds: 600 },
      nodes,
    })
    expect(made).toMatchObject({
      id: anId(),
      app_id: appId,
      name: 'Welcome',
      state: 'draft',
      created_source: 'public_api',
    })
    expect(made.nodes?.map(({ kind }) => kind)).toEqual(nodes.map(({ kind }) => kind))
    expect(made.nodes?.[8]?.branches?.[0]).toMatchObject({
      id: anId(),
      weight: 30,
      nodes: [{ id: anId(), kind: 'wait' }],
    })
    expect(await client.viewJourney(appId, made.id as string)).toEqual(made)
  })

  test('what is wrong is told with its place', async () => {
    expect(
      await failureOf(client.createJourney(appId, { name: '', nodes: [{ kind: 'wait', duration_seconds: 1 }] })),
    ).toEqual({
      code: 400,
      codes: ['request-0', 'request-0'],
      errorMessages: ['name must not be empty', 'nodes[0].duration_seconds must be from 60 to 31556952'],
    })
  })

  test('viewJourney shows every field; one that is not there is a 404', async () => {
    const { id } = await client.createJourney(appId, { name: 'Seen' })
    const journey = await client.viewJourney(appId, id as string)
    expect(journey).toMatchObject({
      description: '',
      started_at: null,
      archived_at: null,
      audience: { kind: 'segment', included_segment_ids: [], excluded_segment_ids: [], future_additions_only: false },
      early_exit: null,
      reentry_rules: null,
      schedule: null,
      nodes: [],
      concurrency_key: expect.any(String),
    })
    expect(await failureOf(client.viewJourney(appId, NOBODY))).toEqual({
      code: 404,
      codes: ['journey-not-found'],
      errorMessages: ['Journey not found'],
    })
  })

  test('viewJourneys pages through all', async () => {
    for (const name of ['One', 'Two', 'Three']) await client.createJourney(appId, { name })
    const first = await client.viewJourneys(appId, undefined, 2)
    expect(first).toMatchObject({ has_more: true, next_cursor: expect.any(String) })
    expect(first.journeys).toHaveLength(2)
    const ids = new Set(first.journeys?.map(({ id }) => id))
    for (let page = first; page.has_more; ) {
      page = await client.viewJourneys(appId, page.next_cursor, 2)
      for (const { id } of page.journeys ?? []) ids.add(id)
    }
    const all = await client.viewJourneys(appId)
    expect(ids).toEqual(new Set(all.journeys?.map(({ id }) => id)))
  })

  test('updateJourney merges, keeps echoed nodes, activates and archives', async () => {
    const before = await aReadyJourney({ description: 'Old' })
    const changed = await client.updateJourney(appId, before.id, {
      name: 'New',
      description: null,
      nodes: [...(before.nodes ?? []), wait],
      concurrency_key: before.concurrency_key,
    } as never)
    expect(changed).toMatchObject({ name: 'New', description: '' })
    expect(changed.nodes?.[0]).toEqual(before.nodes?.[0])
    expect(changed.nodes).toHaveLength(2)
    expect(
      await failureOf(
        client.updateJourney(appId, before.id, { name: 'Late', concurrency_key: before.concurrency_key } as never),
      ),
    ).toMatchObject({ code: 409, codes: ['journey-stale'] })

    expect(await client.updateJourney(appId, before.id, { state: 'active' })).toMatchObject({
      state: 'processing',
      started_at: null,
    })
    await runJobs(app, clock)
    expect(await client.viewJourney(appId, before.id)).toMatchObject({
      state: 'active',
      started_at: clock.now().toISOString(),
    })
    expect(await failureOf(client.updateJourney(appId, before.id, { state: 'draft' }))).toMatchObject({ code: 422 })
    expect(await client.updateJourney(appId, before.id, { state: 'archived' })).toMatchObject({ state: 'archived' })
  })

  test('updateJourney schedules', async () => {
    const { id } = await aReadyJourney()
    const schedule = { start_at: '2030-06-01T09:00:00.000Z', stop_at: '2030-07-01T09:00:00.000Z' }
    expect(await client.updateJourney(appId, id, { state: 'scheduled', schedule })).toMatchObject({
      state: 'scheduled',
      schedule: { ...schedule, error: null },
    })
    expect(await client.updateJourney(appId, id, { state: 'draft' })).toMatchObject({ state: 'draft' })
  })

  test('updateJourneyNode changes one node and answers the whole journey', async () => {
    const { id, nodes, concurrency_key } = await aReadyJourney()
    const nodeId = nodes?.[0]?.id as string
    const changed = await client.updateJourneyNode(appId, id, nodeId, {
      duration_seconds: 120,
      concurrency_key: concurrency_key as string,
    })
    expect(changed).toMatchObject({ id, nodes: [{ id: nodeId, kind: 'wait', duration_seconds: 120 }] })
    expect(await failureOf(client.updateJourneyNode(appId, id, NOBODY, { duration_seconds: 120 }))).toMatchObject({
      code: 404,
    })
  })

  test('viewJourneyStats counts at every node and branch', async () => {
    const { id, nodes } = await aReadyJourney()
    expect(await client.viewJourneyStats(appId, id)).toEqual({
      id,
      started: 0,
      completed: 0,
      exited_early: 0,
      nodes: { [nodes?.[0]?.id as string]: { kind: 'wait', waiting: 0, completed: 0, exited_early: 0 } },
      branches: {},
    })
  })

  test('deleteJourney removes it, once', async () => {
    const { id } = await aReadyJourney()
    expect(await client.deleteJourney(appId, id)).toEqual({ success: true })
    expect(await failureOf(client.deleteJourney(appId, id))).toMatchObject({ code: 404, codes: ['journey-not-found'] })
  })

  test('deleteSegment and updateSegment say so where an active journey uses the segment', async () => {
    const { id, audience } = await aReadyJourney()
    await client.updateJourney(appId, id, { state: 'active' })
    const segmentId = audience?.included_segment_ids?.[0] as string
    const used = { code: 400, errorMessages: ['Segment is used by an active journey.'] }
    const failed = async (call: Promise<unknown>) => {
      const error = (await call.catch((reason) => reason)) as OneSignal.ApiException<object>
      return { code: error.code, errorMessages: error.errorMessages }
    }
    expect(await failed(client.deleteSegment(appId, segmentId))).toEqual(used)
    expect(await failed(client.updateSegment(appId, segmentId, { name: 'New' }))).toEqual(used)
  })
})
