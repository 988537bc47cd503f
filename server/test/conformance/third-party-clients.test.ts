// Published libraries of others, unmodified, against this server. Those that know no address but the public one are led here
// by the agent that Node gives to all requests, as DNS would.

import https from 'node:https'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import * as core from 'onesignal-api-client-core'
import * as node from 'onesignal-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../app.ts'
import { aPushUser, aToken } from '../messages.ts'
import { aName, anId, NOBODY } from '../users.ts'

// Without types here: neither comes with any that are usable. Of Novu's providers only this one is installed with what it needs
// (see overrides in package.json): the other forty services are none of our business.
const require = createRequire(import.meta.url)
type NovuProvider = { sendMessage(options: object): Promise<{ id: string; date: string }> }
const { OneSignalPushProvider } = require('@novu/providers/build/main/lib/one-signal/one-signal.provider.js') as {
  OneSignalPushProvider: new (config: { appId: string; apiKey: string }) => NovuProvider
}
type ParseAdapter = { send(data: object, installations: object[]): PromiseLike<unknown> }
const { default: OneSignalPushAdapter } =
  require('parse-server-onesignal-push-adapter/lib/OneSignalPushAdapter.js') as {
    default: new (config: { oneSignalAppId: string; oneSignalApiKey: string }) => ParseAdapter
  }

let app: TestApp
let appId: string
beforeAll(async () => {
  app = await testApp()
  appId = app.tenant.id
})
afterAll(() => app.close())

type Message = {
  id: string
  contents: Record<string, string>
  headings: Record<string, string> | null
  data: object | null
}
const messages = async (): Promise<Message[]> =>
  (await app.request(`/notifications?app_id=${appId}`)).body.notifications

/** Leads requests for https://onesignal.com to the server, without TLS. */
function leadHere() {
  const original = https.globalAgent
  class Here extends https.Agent {
    override createConnection({ host }: { host?: string | null }) {
      if (host !== 'onesignal.com') throw new Error(`nobody is asked but onesignal.com, and not ${host}`)
      return connect(Number(new URL(app.url).port), '127.0.0.1')
    }
  }
  beforeEach(() => {
    https.globalAgent = new Here()
  })
  afterEach(() => {
    https.globalAgent.destroy()
    https.globalAgent = original
  })
}

describe('onesignal-node', () => {
  let client: node.Client
  beforeAll(() => {
    client = new node.Client(appId, app.tenant.key, { apiRoot: `${app.url}/api/v1/` })
  })

  test('sends to everybody, views, lists, and cancels', async () => {
    const user = await aPushUser(app)
    const everybody = await client.createNotification({ contents: { en: 'Hi' }, included_segments: ['All'] })
    expect(everybody).toMatchObject({ statusCode: 200, body: { id: anId() } })
    const view = await client.viewNotification(everybody.body.id)
    expect(view.body).toMatchObject({ contents: { en: 'Hi' }, included_segments: ['All'] })
    const { body } = await client.createNotification({
      contents: { en: 'Later' },
      include_player_ids: user.subscriptionIds,
      send_after: '2099-01-01 09:00:00 GMT',
    })
    expect((await client.viewNotifications({ limit: 1 })).body).toMatchObject({ limit: 1, total_count: 2 })
    expect((await client.viewNotifications()).body).toMatchObject({ total_count: 2 })
    expect((await client.cancelNotification(body.id)).body).toEqual({ success: true })
    await expect(client.viewNotification(NOBODY)).rejects.toBeInstanceOf(node.HTTPError)
    await expect(client.createNotification({ contents: { en: 'Hi' } })).rejects.toMatchObject({ statusCode: 400 })
  })

  test('keeps devices', async () => {
    const { body } = await client.addDevice({ device_type: 1, identifier: aToken(), language: 'en' })
    expect(body).toEqual({ success: true, id: anId() })
    const external_user_id = aName()
    await client.editDevice(body.id, { tags: { plan: 'gold' }, external_user_id } as never)
    await client.newSession(body.id, { language: 'fr' } as never)
    await client.newPurchase(body.id, { purchases: [{ sku: 'A', amount: '1.5', iso: 'USD' }] } as never)
    await client.incrementSessionLength(body.id, { state: 'ping', active_time: 60 } as never)
    await client.editTagsWithExternalUserIdDevice(external_user_id, { tags: { size: 'L' } } as never)
    expect((await client.viewDevice(body.id)).body).toMatchObject({
      language: 'fr',
      session_count: 1,
      playtime: 60,
      amount_spent: 1.5,
      external_user_id,
      tags: { plan: 'gold', size: 'L' },
    })
    expect((await client.viewDevices({ limit: 1, offset: 0 })).body).toMatchObject({
      limit: 1,
      players: [{ id: anId() }],
    })
    expect((await client.deleteDevice(body.id)).body).toEqual({ success: true })
  })

  test('keeps segments, and exports users', async () => {
    const filters = [{ field: 'tag', key: 'plan', relation: '=', value: 'gold' }]
    const { body } = await client.createSegment({ name: aName(), filters } as never)
    expect(body).toMatchObject({ success: true, id: anId() })
    expect((await client.deleteSegment(body.id)).body).toMatchObject({ success: true })
    expect((await client.exportCSV({ extra_fields: ['country'] } as never)).body).toMatchObject({
      csv_file_url: expect.stringMatching(/^http/),
    })
  })

  test('makes and changes apps', async () => {
    const owner = new node.UserClient(app.tenant.organizationKey, { apiRoot: app.url })
    const { body } = await owner.createApp({ name: 'Made' } as never)
    expect((await owner.updateApp(body.id, { name: 'Renamed' } as never)).body).toMatchObject({ name: 'Renamed' })
    expect((await owner.viewApp(body.id)).body).toMatchObject({ id: body.id, name: 'Renamed' })
    expect((await owner.viewApps()).body).toEqual(expect.arrayContaining([expect.objectContaining({ id: body.id })]))
  })
})

describe('onesignal-api-client-core', () => {
  leadHere()
  let client: core.OneSignalAppClient
  beforeAll(() => {
    client = new core.OneSignalAppClient(appId, app.tenant.key)
  })

  test('sends, views, lists, tracks and cancels', async () => {
    const user = await aPushUser(app)
    const toAll = new core.NotificationBySegmentBuilder()
      .setIncludedSegments(['All'])
      .notification()
      .setContents({ en: 'Hi' })
      .build()
    const { id } = await client.createNotification(toAll)
    expect(await client.viewNotification({ id } as never)).toMatchObject({ id, contents: { en: 'Hi' } })
    const [deviceId] = user.subscriptionIds as [string]
    const later = new core.NotificationByDeviceBuilder()
      .setIncludePlayerIds([deviceId])
      .notification()
      .setContents({ en: 'Later' })
      .setDelivery({ send_after: '2099-01-01 09:00:00 GMT' } as never)
      .build()
    const scheduled = await client.createNotification(later)
    const page = await client.viewNotifications({ limit: 10, offset: 0, kind: 1 } as never)
    expect(page).toMatchObject({ limit: 10, offset: 0 })
    expect(await client.trackOpen({ notificationId: id, player_id: deviceId, opened: true } as never)).toMatchObject({
      success: true,
    })
    expect(await client.cancelNotification({ id: scheduled.id } as never)).toMatchObject({ success: true })
  })

  test('keeps devices, and leaves out the app where its key says it', async () => {
    const { id } = await client.createDevice({ device_type: 1, identifier: aToken() } as never)
    expect(await client.updateDevice({ id, language: 'fr' } as never)).toMatchObject({ success: true })
    expect(await client.newSession({ deviceId: id } as never)).toMatchObject({ success: true })
    expect(await client.viewDevice({ id } as never)).toMatchObject({ id, language: 'fr', session_count: 1 })
    expect(await client.viewDevices()).toMatchObject({
      players: expect.arrayContaining([expect.objectContaining({ id })]),
    })
  })

  test('makes and changes apps', async () => {
    const owner = new core.OneSignalUserClient(app.tenant.organizationKey)
    const { id } = (await owner.createApp({ name: 'Made' } as never)) as { id: string }
    expect(await owner.updateApp({ id, name: 'Renamed' } as never)).toMatchObject({ name: 'Renamed' })
    expect(await owner.viewApp({ id } as never)).toMatchObject({ id, name: 'Renamed' })
  })
})

describe('@novu/providers', () => {
  leadHere()

  test('sends to devices', async () => {
    const user = await aPushUser(app)
    const provider = new OneSignalPushProvider({ appId, apiKey: app.tenant.key })
    const { id } = await provider.sendMessage({
      title: 'Bells',
      content: 'They ring',
      target: user.subscriptionIds,
      payload: { room: 7 },
      overrides: { sound: 'ding.wav' },
    })
    expect(id).toEqual(anId())
    const [message] = await messages()
    expect(message).toMatchObject({ id, contents: { en: 'They ring' }, headings: { en: 'Bells' }, data: { room: 7 } })
  })

  test('is told of a wrong key', async () => {
    const provider = new OneSignalPushProvider({ appId: NOBODY, apiKey: 'x' })
    const sent = provider.sendMessage({ title: 'a', content: 'b', target: [NOBODY], payload: {} })
    await expect(sent).rejects.toMatchObject({ response: { status: 401 } })
  })
})

describe('parse-server-onesignal-push-adapter', () => {
  leadHere()

  test('sends to iOS and Android installations', async () => {
    const adapter = new OneSignalPushAdapter({ oneSignalAppId: appId, oneSignalApiKey: app.tenant.key })
    const installations = [
      { deviceType: 'ios', deviceToken: 'a'.repeat(64) },
      { deviceType: 'android', deviceToken: aToken() },
    ]
    const data = { alert: aName(), badge: 'Increment', sound: 'ding.wav', room: 7 }
    await adapter.send({ data }, installations)
    const sent = (await messages()).filter(({ contents }) => contents.en === data.alert)
    expect(sent).toHaveLength(2)
    for (const message of sent) expect(message.data).toMatchObject({ room: 7 })
  })

  test('is told of a wrong key', async () => {
    const adapter = new OneSignalPushAdapter({ oneSignalAppId: appId, oneSignalApiKey: 'x' })
    const sent = adapter.send({ data: { alert: 'x' } }, [{ deviceType: 'ios', deviceToken: 'a'.repeat(64) }])
    await expect(Promise.resolve(sent)).rejects.toBeDefined()
  })
})
