// The segment operations through the published client, unmodified.

import * as OneSignal from '@onesignal/node-onesignal'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { virtualClock } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../app.ts'
import { aName, anEmail, anId, aUser, NOBODY } from '../users.ts'

let app: TestApp
let client: OneSignal.DefaultApi
let appId: string
const clientFor = ({ url, tenant }: TestApp) =>
  new OneSignal.DefaultApi(
    OneSignal.createConfiguration({ restApiKey: tenant.key, baseServer: new OneSignal.ServerConfiguration(url, {}) }),
  )
beforeAll(async () => {
  app = await testApp()
  appId = app.tenant.id
  client = clientFor(app)
})
afterAll(() => app.close())

const filters: OneSignal.FilterExpression[] = [
  { field: 'tag', key: 'plan', relation: '=', value: 'gold' },
  { operator: 'OR' },
  { field: 'last_session', relation: '<', hours_ago: '1.5' },
  { field: 'location', relation: '=', radius: 1000, lat: 37.77, long: -122.43 },
]
const tagged = (value: string): OneSignal.FilterExpression[] => [{ field: 'tag', key: 'who', relation: '=', value }]

async function expectFailure(call: Promise<unknown>, code: number, ...messages: string[]) {
  const error = await call.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(OneSignal.ApiException)
  expect({ code: error.code, errorMessages: error.errorMessages }).toEqual({ code, errorMessages: messages })
  return error
}

describe('segments', () => {
  test('createSegment makes one, and a second of its name is a conflict', async () => {
    const name = aName()
    expect(await client.createSegment(appId, { name, filters })).toEqual({ success: true, id: anId() })
    await expectFailure(client.createSegment(appId, { name, filters }), 409, 'Segment name is already taken.')
    await expectFailure(
      client.createSegment(appId, { name: aName(), filters: [{ field: 'mood', relation: '=', value: 'x' }] }),
      400,
      'filters[0]: unknown field "mood"',
    )
  })

  test('createSegment takes an id', async () => {
    expect(await client.createSegment(appId, { id: NOBODY, name: aName(), filters })).toEqual({
      success: true,
      id: NOBODY,
    })
  })

  test('getSegments pages through all', async () => {
    const { id } = await client.createSegment(appId, { name: aName(), filters })
    const all = await client.getSegments(appId)
    expect(all).toMatchObject({ offset: 0, limit: 300, total_count: all.segments?.length })
    expect(all.segments?.at(-1)).toMatchObject({ id, app_id: appId, read_only: false, is_active: true })
    expect(new Date(all.segments?.at(-1)?.created_at ?? '').getTime()).toBeGreaterThan(0)
    const page = await client.getSegments(appId, 1, 2)
    expect(page.segments?.map((it) => it.id)).toEqual(all.segments?.slice(1, 3).map((it) => it.id))
  })

  test('getSegment counts, and tells what it is when asked', async () => {
    const who = aName()
    const { id = '' } = await client.createSegment(appId, { name: who, filters: tagged(who) })
    await aUser(app, { properties: { tags: { who } }, subscriptions: [{ type: 'Email', token: anEmail() }] })
    expect(await client.getSegment(appId, id)).toEqual({ subscriber_count: 1 })
    const { payload } = await client.getSegment(appId, id, true)
    expect(payload).toMatchObject({ id, name: who, source: 'custom', created_at: expect.any(Number) })
    expect(payload?.filters).toMatchObject(tagged(who))
    await expectFailure(client.getSegment(appId, '00000000-0000-4000-8000-00000000beef'), 404, 'segment not found')
  })

  test('updateSegment changes it', async () => {
    const { id = '' } = await client.createSegment(appId, { name: aName(), filters })
    const name = aName()
    expect(await client.updateSegment(appId, id, { name, description: 'new', filters: tagged('x') })).toEqual({
      success: true,
      id,
    })
    expect((await client.getSegment(appId, id, true)).payload).toMatchObject({ name, description: 'new' })
    const { name: taken = '' } = (await client.getSegments(appId)).segments?.[0] ?? {}
    await expectFailure(client.updateSegment(appId, id, { name: taken }), 400, 'Segment name is already taken.')
  })

  test('deleteSegment removes it, once', async () => {
    const { id = '' } = await client.createSegment(appId, { name: aName(), filters })
    expect(await client.deleteSegment(appId, id)).toEqual({ success: true })
    const error = await expectFailure(client.deleteSegment(appId, id), 404)
    expect(error.body).toEqual({ success: false })
    const unknown = await expectFailure(
      client.deleteSegment('00000000-0000-4000-8000-00000000beef', id),
      400,
      'app_id not found. You may be missing a Content-Type: application/json header.',
    )
    expect(unknown.body.reference).toEqual([expect.any(String)])
  })

  test('estimateNotificationRecipients counts', async () => {
    const who = aName()
    await aUser(app, { properties: { tags: { who } }, subscriptions: [{ type: 'Email', token: anEmail() }] })
    expect(await client.estimateNotificationRecipients({ app_id: appId, filters: tagged(who) } as never)).toEqual({
      count: 1,
      uncapped_count: 1,
      cap_applied: false,
      mobile_suppressed: false,
      mobile_excluded_count: 0,
    })
    const subscribed = await client.estimateNotificationRecipients({
      app_id: appId,
      included_segments: ['Subscribed Users'],
      target_channel: 'email',
    } as never)
    expect(subscribed.count).toBeGreaterThan(0)
    await expectFailure(
      client.estimateNotificationRecipients({ app_id: appId } as never),
      400,
      OneSignal.OneSignalErrors.NO_TARGETING_SPECIFIED,
    )
  })
})

test('a refused request is an error object with Retry-After', async () => {
  const limited = await testApp({ limits: 'spec', clock: virtualClock() })
  try {
    const its = clientFor(limited)
    const calls = Array.from({ length: 101 }, () => its.getSegments(limited.tenant.id).catch((error) => error))
    const answers: unknown[] = await Promise.all(calls)
    const refused = answers.filter((it) => it instanceof OneSignal.ApiException)
    expect(refused).toHaveLength(1)
    const [error] = refused as [OneSignal.ApiException<{ errors: object[] }>]
    expect(error).toMatchObject({ code: 429, errorMessages: ['API rate limit exceeded'] })
    expect(error.body.errors[0]).toMatchObject({ code: 'Rate Limit Exceeded' })
    expect(error.headers['retry-after']).toBe('1')
  } finally {
    await limited.close()
  }
})
