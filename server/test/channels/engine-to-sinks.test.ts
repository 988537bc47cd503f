// The whole way from a message to the providers, over the real channels, against stand-ins that fail as the real ones do.

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type OpenedPushSettings, openPushSettings } from '../../src/apps/credentials/credentials.ts'
import { createSenders, type Senders } from '../../src/composition/senders.ts'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import type { AppId } from '../../src/lib/ids.ts'
import { secretBox } from '../../src/lib/secrets.ts'
import type { Engine } from '../../src/messages/engine/types.ts'
import { certificateFor } from '../../src/sink/certificate.ts'
import { apnsRefusal } from '../../src/sink/push/apns.ts'
import { fcmRefusal } from '../../src/sink/push/fcm.ts'
import { sql } from '../../src/storage/sql.ts'
import { type Tenant, type TestApp, testApp } from '../app.ts'
import { aP8, rsaPem } from '../credentials.ts'
import {
  aMessage,
  anEngine,
  closeRenderer,
  deliveriesOf,
  only,
  type Recipient,
  recipients,
  runEngine,
  tally,
} from '../engine.ts'
import {
  type ApnsSink,
  type FcmSink,
  type PushService,
  startApnsSink,
  startFcmSink,
  startPushService,
} from '../sinks/push.ts'

const apns = { teamId: 'TEAM123456', keyId: 'KEY1234567', key: aP8().pem, topic: 'com.example.app' }
const fcm = {
  projectId: 'test-project',
  clientEmail: 'push@test-project.iam.gserviceaccount.com',
  privateKey: rsaPem(),
}

const secrets = secretBox('the secret key of the tests')

/** All in one certificate, so that there is one to believe. */
const certificate = certificateFor(
  'updates.push.example.com',
  'api.push.apple.com',
  'fcm.googleapis.com',
  'oauth2.googleapis.com',
)
const at = ({ port }: { port: number }) => ({ host: '127.0.0.1', port })

let app: TestApp
let clock: VirtualClock
let apple: ApnsSink
let google: FcmSink
let browsers: PushService
let senders: Senders
let engine: Engine
let appId: AppId
let tenant: Tenant
let pushSettings: OpenedPushSettings

beforeAll(async () => {
  clock = virtualClock()
  app = await testApp({ clock })
  apple = await startApnsSink(clock, apns, { certificate })
  google = await startFcmSink(clock, fcm, { certificate })
  browsers = await startPushService(clock, { certificate })
})
afterAll(async () => {
  for (const sink of [apple, google, browsers]) await sink.close()
  await app.close()
  await closeRenderer()
})
beforeEach(async () => {
  await senders?.close()
  tenant = await app.anotherTenant()
  appId = tenant.id
  const own = await openPushSettings({ db: app.db, secrets }, appId)
  const { key, keyId, teamId, topic } = apns
  pushSettings = {
    ...(own as OpenedPushSettings),
    settings: { apns_key_id: keyId, apns_team_id: teamId, apns_bundle_id: topic },
    secrets: { fcm_v1_service_account_json: fcm, apns_p8: { key } },
  }
  senders = createSenders({
    clock,
    providers: {
      route: {
        ca: certificate.cert,
        connect: {
          'https://updates.push.example.com': at(browsers),
          'https://api.push.apple.com': at(apple),
          'https://fcm.googleapis.com': at(google),
          'https://oauth2.googleapis.com': at(google),
        },
      },
      vapidSubject: 'mailto:ops@example.com',
    },
    openPushSettings: async () => pushSettings,
    findTexts: async () => undefined,
    findMail: async () => {
      throw new Error('no mail is sent here')
    },
  })
  engine = anEngine({ db: app.db, clock, sender: senders })
})
afterAll(() => senders.close())

const some = async (count: number, type: 'iOSPush' | 'AndroidPush') =>
  (await recipients(engine, appId, count, { type })) as Recipient[]

type ApplePayload = { aps: Record<string, unknown>; custom: unknown } & Record<string, unknown>
const toApple = (device: Recipient | undefined) => apple.received.find(({ token }) => token === device?.token)
const sentToApple = (device: Recipient | undefined) => toApple(device)?.payload as ApplePayload | undefined
const sentToGoogle = (device: Recipient | undefined) => google.received.find(({ token }) => token === device?.token)
const sentToBrowser = (path: string) =>
  JSON.parse(browsers.received.find((it) => it.path === path)?.text ?? '{}') as Record<string, unknown>

/** A browser that can read what it gets. */
async function aBrowser() {
  const [browser] = (await recipients(engine, appId, 1, { type: 'ChromePush' })) as [Recipient]
  const { endpoint, p256dh, auth, path } = browsers.subscribe(pushSettings.vapid.publicKey)
  await app.db.query(sql`
    update subscriptions set token = ${endpoint}, token_hash = ${randomBytes(32)}, web_p256 = ${p256dh}, web_auth = ${auth}
    where app_id = ${appId} and id = ${browser.id}`)
  return path
}

test('one message reaches an iPhone, an Android phone and a browser, each in its own words', async () => {
  const [iphone] = await some(1, 'iOSPush')
  const [android] = await some(1, 'AndroidPush')
  const path = await aBrowser()
  const id = await aMessage(engine, appId, {
    content: {
      headings: { en: 'Bells' },
      contents: { en: 'They ring' },
      web_url: 'https://example.com/web',
      app_url: 'bells://open',
      big_picture: 'tower',
      ios_badgeType: 'Increase',
      ios_badgeCount: 2,
      ios_interruption_level: 'time_sensitive',
      android_accent_color: '#112233',
      buttons: [{ id: 'yes', text: 'Yes' }],
      web_buttons: [{ id: 'go', text: 'Go', url: 'https://example.com/go' }],
      collapse_id: 'news',
    },
  })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 3 })
  expect(toApple(iphone)?.headers).toMatchObject({
    'apns-priority': '10',
    'apns-collapse-id': 'news',
    'apns-topic': apns.topic,
  })
  expect(sentToApple(iphone)).toMatchObject({
    aps: { alert: { title: 'Bells', body: 'They ring' }, 'interruption-level': 'time-sensitive' },
    custom: { i: id, u: 'bells://open', badge_inc: 2 },
    buttons: [{ i: 'yes', n: 'Yes' }],
  })
  const toGoogle = sentToGoogle(android)
  expect(toGoogle?.data).toMatchObject({ title: 'Bells', alert: 'They ring', bicon: 'tower', bgac: 'FF112233' })
  expect(toGoogle?.android).toMatchObject({ priority: 'HIGH', collapse_key: 'news' })
  expect(sentToBrowser(path)).toMatchObject({
    title: 'Bells',
    custom: { i: id, u: 'https://example.com/web', rr: 'y' },
    o: [{ i: 'go', n: 'Go', u: 'https://example.com/go' }],
  })
})

test('data stands at the root of the payload too, where the app says so, and replaces nothing there', async () => {
  const headers = { authorization: `Key ${tenant.organizationKey}` }
  const body = { additional_data_is_root_payload: true }
  expect((await app.request(`/apps/${appId}`, { method: 'PUT', body, headers })).status).toBe(200)
  const data = { order: 7, to: { street: 'Mill Lane' }, aps: 'x', custom: 'x', from: 'x', 'google.x': 'x', title: 'x' }
  const send = async () => {
    const { settings } = (await openPushSettings({ db: app.db, secrets }, appId)) as OpenedPushSettings
    const isRootPayload = settings.additional_data_is_root_payload === true
    pushSettings = {
      ...pushSettings,
      settings: { ...pushSettings.settings, additional_data_is_root_payload: isRootPayload },
    }
    senders.invalidateCredentials()
    const [iphone] = await some(1, 'iOSPush')
    const [android] = await some(1, 'AndroidPush')
    const path = await aBrowser()
    const id = await aMessage(engine, appId, { content: { contents: { en: 'They ring' }, data } })
    await runEngine(engine)
    return { id, toApple: sentToApple(iphone), toGoogle: sentToGoogle(android)?.data, toBrowser: sentToBrowser(path) }
  }
  const { id, toApple, toGoogle, toBrowser } = await send()
  expect(toApple).toMatchObject({ order: 7, to: { street: 'Mill Lane' }, title: 'x', custom: { i: id, a: data } })
  expect(toApple?.aps.alert).toEqual({ body: 'They ring' })
  expect(toGoogle).toMatchObject({ order: '7', to: '{"street":"Mill Lane"}', aps: 'x', alert: 'They ring' })
  expect(JSON.parse(toGoogle?.custom ?? '')).toMatchObject({ i: id, a: data })
  for (const reserved of ['from', 'google.x', 'title']) expect(toGoogle).not.toHaveProperty([reserved])
  expect(toBrowser).toMatchObject({ order: 7, aps: 'x', 'google.x': 'x', custom: { i: id, a: data } })
  expect(toBrowser).not.toHaveProperty('title')

  await app.request(`/apps/${appId}`, { method: 'PUT', body: { additional_data_is_root_payload: false }, headers })
  const before = await send()
  expect(before.toApple).not.toHaveProperty('order')
  expect(before.toGoogle).not.toHaveProperty('order')
  expect(before.toBrowser).not.toHaveProperty('order')
})

test.each([
  ['the default without ios_sound', {}, 'default'],
  ['the default for an empty ios_sound', { ios_sound: '' }, 'default'],
  ['none for nil', { ios_sound: 'nil' }, undefined],
  ['the file that ios_sound names', { ios_sound: 'bell.caf' }, 'bell.caf'],
  ['none where nothing is shown', { contents: undefined, content_available: true }, undefined],
])('the sound of an iPhone is %s', async (_, fields, sound) => {
  const [iphone] = await some(1, 'iOSPush')
  await aMessage(engine, appId, { content: { contents: { en: 'They ring' }, ...fields } })
  await runEngine(engine)
  expect(sentToApple(iphone)?.aps.sound).toBe(sound)
})

test.each([
  [
    'whole, below headings and contents',
    {
      headings: { en: 'Bells' },
      apns_alert: {
        title: 'Hidden',
        body: 'Hidden',
        'loc-key': 'RING',
        'loc-args': ['{{ a }}', 7],
        'launch-image': 'b.png',
      },
      summary_arg: 'Tower',
      summary_arg_count: 3,
    },
    {
      title: 'Bells',
      body: 'They ring',
      'loc-key': 'RING',
      'loc-args': ['{{ a }}', 7],
      'launch-image': 'b.png',
      'summary-arg': 'Tower',
      'summary-arg-count': 3,
    },
  ],
  [
    'with what headings leave out, rendered',
    { apns_alert: { title: 'For {{ user.tags.name }}', 'title-loc-key': 'T' } },
    { title: 'For Ann', body: 'They ring', 'title-loc-key': 'T' },
  ],
  [
    'alone, where there are no contents',
    { contents: undefined, content_available: true, apns_alert: { 'loc-key': 'RING' } },
    { 'loc-key': 'RING' },
  ],
])('apns_alert is sent %s', async (_, fields, alert) => {
  const [iphone] = (await recipients(engine, appId, 1, { type: 'iOSPush', tags: { name: 'Ann' } })) as [Recipient]
  await aMessage(engine, appId, { content: { contents: { en: 'They ring' }, ...fields } })
  await runEngine(engine)
  expect(sentToApple(iphone)?.aps.alert).toEqual(alert)
})

test.each([
  [1, '1', 'NORMAL', 'very-low'],
  [2, '1', 'NORMAL', 'low'],
  [3, '5', 'NORMAL', 'low'],
  [4, '5', 'NORMAL', 'normal'],
  [5, '5', 'NORMAL', 'normal'],
  [7, '5', 'NORMAL', 'normal'],
  [8, '10', 'HIGH', 'high'],
  [10, '10', 'HIGH', 'high'],
])('the priority %i is %s for Apple, %s for Google and %s for browsers', async (priority, apple, google, urgency) => {
  const [iphone] = await some(1, 'iOSPush')
  const [android] = await some(1, 'AndroidPush')
  const path = await aBrowser()
  await aMessage(engine, appId, { options: { priority } })
  await runEngine(engine)
  expect(toApple(iphone)?.headers).toMatchObject({ 'apns-priority': apple })
  expect(sentToGoogle(android)).toMatchObject({ android: { priority: google }, data: { pri: String(priority) } })
  expect(browsers.received.find((it) => it.path === path)).toMatchObject({ urgency })
})

test.each([
  ['one text', '$[notif_count] new', '$[notif_count] new'],
  ['by language', { en: 'New', de: 'Neu' }, 'Neu'],
])('android_group_message may be %s', async (_, android_group_message, shown) => {
  const [phone] = (await recipients(engine, appId, 1, { type: 'AndroidPush', language: 'de-AT' })) as [Recipient]
  const content = { contents: { en: 'They ring' }, android_group: 'tower', android_group_message }
  await aMessage(engine, appId, { content })
  await runEngine(engine)
  expect(sentToGoogle(phone)?.data).toMatchObject({ grp: 'tower', grp_msg: shown })
})

test('providers refuse, are busy, break off and know nobody: each delivery ends as it must', async () => {
  const [gone, busy, cut, fine] = (await some(4, 'iOSPush')) as [Recipient, Recipient, Recipient, Recipient]
  const [unregistered] = (await some(1, 'AndroidPush')) as [Recipient]
  apple.script(gone.token, apnsRefusal(410, 'Unregistered', { timestamp: clock.now().getTime() + 1 }))
  apple.script(busy.token, apnsRefusal(503, 'ServiceUnavailable'))
  apple.script(cut.token, 'reset')
  google.script(unregistered.token, fcmRefusal(404, 'NOT_FOUND', { code: 'UNREGISTERED' }))
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  const states = new Map((await deliveriesOf(app.db, appId, id)).map((it) => [it.subscriptionId, it.state]))
  expect([gone, busy, cut, fine, unregistered].map((it) => states.get(it.id))).toEqual([
    'failed',
    'pending',
    'unknown',
    'sent',
    'failed',
  ])
  clock.advance({ minutes: 1 })
  await runEngine(engine)
  const counts = await tally(app.db, appId, id)
  expect(counts.sent).toBe(2)
  // What was taken up and not answered is not sent again.
  expect(apple.taken.get(cut.token)).toBe(1)
  const off = await app.db.query<{ id: string }>(sql`
    select id from subscriptions where app_id = ${appId} and notification_types = -10 order by id`)
  expect(off.map((it) => it.id)).toEqual([gone.id, unregistered.id].sort())
})

test('a broadcast of a thousand goes over one connection with many streams, each once', async () => {
  const people = await some(1_000, 'iOSPush')
  const before = apple.requests()
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1_000 })
  expect(apple.requests() - before).toBe(1_000)
  expect(people.every(({ token }) => apple.taken.get(token) === 1)).toBe(true)
})

test('an app without credentials for a provider is told so for each delivery; one that loses them waits', async () => {
  const [one] = (await some(1, 'iOSPush')) as [Recipient]
  const { apns_p8: _, ...others } = pushSettings.secrets
  pushSettings = { ...pushSettings, secrets: others }
  senders.invalidateCredentials()
  const without = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, without)).toEqual({ 'skipped not_configured': 1 })

  pushSettings = { ...pushSettings, secrets: { ...others, apns_p8: { key: aP8().pem } } }
  senders.invalidateCredentials(appId)
  const refused = await aMessage(engine, appId, { lane: 'direct', audience: only(one.id) })
  await runEngine(engine)
  expect(await deliveriesOf(app.db, appId, refused)).toMatchObject([
    { state: 'pending', reason: 'InvalidProviderToken' },
  ])
})
