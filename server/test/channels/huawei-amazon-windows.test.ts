// Huawei, Amazon and Windows from the app's settings to the devices, against stand-ins that judge as the real ones do.

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openPushSettings } from '../../src/apps/credentials/credentials.ts'
import { createSenders, type Senders } from '../../src/composition/senders.ts'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import { secretBox } from '../../src/lib/secrets.ts'
import type { Engine } from '../../src/messages/engine/types.ts'
import { certificateFor } from '../../src/sink/certificate.ts'
import { admRefusal } from '../../src/sink/push/adm.ts'
import { huaweiRefusal } from '../../src/sink/push/huawei.ts'
import { wnsRefusal } from '../../src/sink/push/wns.ts'
import { sql } from '../../src/storage/sql.ts'
import { hashToken } from '../../src/users/subscriptions/subscription.ts'
import { type Tenant, type TestApp, testApp } from '../app.ts'
import { aMessage, anEngine, closeRenderer, only, type Recipient, recipients, runEngine, tally } from '../engine.ts'
import {
  type AdmSink,
  type HuaweiSink,
  startAdmSink,
  startHuaweiSink,
  startWnsSink,
  WNS_HOST,
  type WnsSink,
} from '../sinks/push.ts'

const SETTINGS = {
  huawei_app_id: '100000001',
  huawei_app_secret: 'a-secret-of-huawei',
  huawei_project_id: '7700001',
  huawei_package_name: 'com.example.bells',
  adm_client_id: 'amzn1.application-oa2-client.bells',
  adm_client_secret: 'a-secret-of-amazon',
  wns_package_sid: 'ms-app://s-1-15-2-1234',
  wns_client_secret: 'a-secret-of-microsoft',
}
const MASK = '********'
const certificate = certificateFor(
  'push-api.cloud.huawei.com',
  'oauth-login.cloud.huawei.com',
  'api.amazon.com',
  'login.live.com',
  WNS_HOST,
)

let app: TestApp
let clock: VirtualClock
let huawei: HuaweiSink
let amazon: AdmSink
let windows: WnsSink
let senders: Senders
let engine: Engine
let tenant: Tenant

beforeAll(async () => {
  clock = virtualClock()
  app = await testApp({ clock })
  huawei = await startHuaweiSink(
    clock,
    { appId: SETTINGS.huawei_app_id, secret: SETTINGS.huawei_app_secret, projectId: '7700001', defaultTitle: '' },
    { certificate },
  )
  amazon = await startAdmSink(
    clock,
    { clientId: SETTINGS.adm_client_id, secret: SETTINGS.adm_client_secret },
    { certificate },
  )
  windows = await startWnsSink(
    clock,
    { clientId: SETTINGS.wns_package_sid, secret: SETTINGS.wns_client_secret },
    { certificate },
  )
  const connect = Object.assign({}, ...[huawei, amazon, windows].map(({ route }) => route.connect))
  const secrets = secretBox('the secret key of the tests')
  senders = createSenders({
    clock,
    providers: { route: { ca: certificate.cert, connect }, vapidSubject: 'mailto:ops@example.com' },
    openPushSettings: (appId) => openPushSettings({ db: app.db, secrets }, appId),
    findTexts: async () => undefined,
    findMail: async () => {
      throw new Error('no mail is sent here')
    },
  })
  engine = anEngine({ db: app.db, clock, sender: senders })
})
afterAll(async () => {
  await senders.close()
  for (const sink of [huawei, amazon, windows]) await sink.close()
  await app.close()
  await closeRenderer()
})
beforeEach(async () => {
  tenant = await app.anotherTenant()
})

const configure = (body: object) =>
  app.request(`/apps/${tenant.id}`, {
    method: 'PUT',
    headers: { authorization: `Key ${tenant.organizationKey}` },
    body,
  })
const some = async (count: number, type: 'HuaweiPush' | 'FireOSPush') =>
  (await recipients(engine, tenant.id, count, { type })) as Recipient[]

async function someWindows(count: number): Promise<Recipient[]> {
  const made = await recipients(engine, tenant.id, count, { type: 'WindowsPush' })
  return Promise.all(
    made.map(async (it) => {
      const token = `https://${WNS_HOST}/w/?token=${randomBytes(12).toString('hex')}`
      await app.db.query(sql`
        update subscriptions set token = ${token}, token_hash = decode(${hashToken('WindowsPush', token)}, 'hex')
        where app_id = ${tenant.id} and id = ${it.id}`)
      return { ...it, token }
    }),
  )
}
async function viewed(id: string) {
  const { body } = await app.request(`/notifications/${id}?app_id=${tenant.id}`, {
    headers: { authorization: `Key ${tenant.key}` },
  })
  return body
}

test('credentials are set on the app, kept sealed, shown as a mask, and taken back as one', async () => {
  const { status, body } = await configure(SETTINGS)
  expect(status).toBe(200)
  const shown = {
    ...SETTINGS,
    ...{ huawei_app_secret: MASK, adm_client_secret: MASK, wns_client_secret: MASK },
  }
  expect(body).toMatchObject(shown)
  const [row] = await app.db.query<{ row: string }>(sql`select a::text as row from apps a where a.id = ${tenant.id}`)
  for (const secret of [SETTINGS.huawei_app_secret, SETTINGS.adm_client_secret, SETTINGS.wns_client_secret]) {
    expect(JSON.stringify(body)).not.toContain(secret)
    expect(row?.row).not.toContain(secret)
  }
  expect((await configure({ huawei_app_secret: MASK, site_name: '' })).body).toMatchObject(shown)
  expect((await configure({ huawei_app_secret: '' })).body).toMatchObject({ ...shown, huawei_app_secret: null })
})

test.each([
  [{ huawei_app_secret: 'a-long-secret' }, 'huawei_app_id is required with huawei_app_secret'],
  [{ adm_client_secret: 'a-long-secret' }, 'adm_client_id is required with adm_client_secret'],
  [{ wns_client_secret: 'a-long-secret' }, 'wns_package_sid is required with wns_client_secret'],
  [{ huawei_app_id: 'x1' }, 'huawei_app_id must consist of digits, as in AppGallery Connect'],
  [{ huawei_project_id: '../1' }, 'huawei_project_id must consist of digits, as in AppGallery Connect'],
  [{ huawei_package_name: 'a;b' }, 'huawei_package_name must be the name of a package, as com.example.app'],
  [{ wns_package_sid: 'https://x' }, 'wns_package_sid must be a package SID, as ms-app://s-1-15-2-…'],
  [
    { adm_client_id: 'a', adm_client_secret: 'short' },
    'adm_client_secret must be a secret of 8 to 512 characters without spaces',
  ],
])('what cannot work is refused: %j', async (body, title) => {
  expect(await configure(body)).toMatchObject({ status: 400, body: { errors: [title] } })
})

test('one message reaches all three, and every field of theirs has an effect', async () => {
  await configure(SETTINGS)
  senders.invalidateCredentials(tenant.id)
  const [phone] = await some(1, 'HuaweiPush')
  const [tablet] = await some(1, 'FireOSPush')
  const [desktop] = await someWindows(1)
  const id = await aMessage(engine, tenant.id, {
    content: {
      contents: { en: 'They ring' },
      headings: { en: 'Bells' },
      data: { order: 7 },
      url: 'https://example.com/open',
      global_image: 'https://example.com/all.png',
      huawei_channel_id: 'mine',
      huawei_existing_channel_id: 'alarms',
      huawei_small_icon: 'ic_bell',
      huawei_large_icon: 'https://example.com/l.png',
      huawei_big_picture: 'https://example.com/p.png',
      huawei_sound: 'bell',
      huawei_led_color: 'FF0000FF',
      huawei_accent_color: 'FF112233',
      huawei_visibility: 0,
      huawei_category: 'TRAVEL',
      huawei_bi_tag: 'campaign',
      huawei_badge_class: 'com.example.Main',
      huawei_badge_set_num: 5,
      huawei_badge_add_num: 2,
      adm_big_picture: 'https://example.com/fire.png',
      adm_small_icon: 'ic_fire',
      adm_large_icon: 'ic_large',
      adm_sound: 'fire',
      adm_group: 'tower',
      adm_group_message: { en: '$[notif_count] bells' },
      wp_wns_sound: 'bell.wav',
    },
  })
  await runEngine(engine)
  expect(await tally(app.db, tenant.id, id)).toEqual({ sent: 3 })

  const toHuawei = huawei.received.find(({ token }) => token[0] === phone?.token)
  expect(toHuawei?.android).toMatchObject({
    category: 'TRAVEL',
    bi_tag: 'campaign',
    notification: {
      ...{ title: 'Bells', body: 'They ring', channel_id: 'alarms', icon: '/raw/ic_bell', sound: '/raw/bell' },
      ...{ image: 'https://example.com/l.png', big_picture: 'https://example.com/p.png', color: '#112233' },
      visibility: 'PRIVATE',
      badge: { class: 'com.example.Main', set_num: 5, add_num: 2 },
      light_settings: { color: { alpha: 1, red: 0, green: 0, blue: 1 } },
      click_action: { type: 1, intent: expect.stringContaining(encodeURIComponent(id)) },
    },
  })
  const toAmazon = amazon.received.find(({ registrationId }) => registrationId === tablet?.token)
  expect(toAmazon?.data).toMatchObject({
    ...{ title: 'Bells', alert: 'They ring', bicon: 'https://example.com/fire.png', sicon: 'ic_fire' },
    ...{ licon: 'ic_large', sound: 'fire', grp: 'tower', grp_msg: '$[notif_count] bells' },
  })
  const toWindows = windows.received.find(({ channelUri }) => channelUri === desktop?.token)?.body
  expect(toWindows).toContain('<text id="1">Bells</text><text id="2">They ring</text>')
  expect(toWindows).toContain('<audio src="ms-appx:///bell.wav"/>')
  expect(toWindows).toContain('<image id="1" src="https://example.com/all.png"/>')
  expect((await viewed(id)).platform_delivery_stats).toMatchObject({
    huawei: { successful: 1 },
    amazon: { successful: 1 },
    windows: { successful: 1 },
  })
})

test.each([
  [1, 'NORMAL', 'normal', '4'],
  [2, 'NORMAL', 'normal', '3'],
  [4, 'NORMAL', 'normal', '2'],
  [7, 'NORMAL', 'normal', '2'],
  [8, 'HIGH', 'high', '1'],
  [10, 'HIGH', 'high', '1'],
])('the priority %i is %s for Huawei, %s for Amazon and %s for Windows', async (priority, urgency, fire, wns) => {
  await configure(SETTINGS)
  senders.invalidateCredentials(tenant.id)
  const [phone] = await some(1, 'HuaweiPush')
  const [tablet] = await some(1, 'FireOSPush')
  const [desktop] = await someWindows(1)
  await aMessage(engine, tenant.id, { options: { priority } })
  await runEngine(engine)
  expect(huawei.received.find(({ token }) => token[0] === phone?.token)?.android).toMatchObject({ urgency })
  expect(amazon.received.find(({ registrationId }) => registrationId === tablet?.token)?.priority).toBe(fire)
  expect(windows.received.find(({ channelUri }) => channelUri === desktop?.token)?.headers).toMatchObject({
    'x-wns-priority': wns,
  })
})

test('huawei_msg_type data hands the message to the SDK', async () => {
  await configure(SETTINGS)
  senders.invalidateCredentials(tenant.id)
  const [phone] = await some(1, 'HuaweiPush')
  await aMessage(engine, tenant.id, {
    content: { contents: { en: 'They ring' }, huawei_msg_type: 'data', huawei_large_icon: 'ic_large' },
  })
  await runEngine(engine)
  const message = huawei.received.find(({ token }) => token[0] === phone?.token)
  expect(JSON.parse(message?.data ?? '')).toMatchObject({ alert: 'They ring', licon: 'ic_large' })
  expect(message?.android?.notification).toBeUndefined()
})

test('tokens that are gone are unsubscribed, and only those', async () => {
  await configure(SETTINGS)
  senders.invalidateCredentials(tenant.id)
  const phones = await some(2, 'HuaweiPush')
  const tablets = await some(2, 'FireOSPush')
  const desktops = await someWindows(2)
  const gone = [phones[0], tablets[0], desktops[0]] as [Recipient, Recipient, Recipient]
  huawei.script(gone[0].token, huaweiRefusal(400, '80300007'))
  amazon.script(gone[1].token, admRefusal(400, 'Unregistered'))
  windows.script(gone[2].token, wnsRefusal(410))
  const id = await aMessage(engine, tenant.id, {})
  await runEngine(engine)
  expect(await viewed(id)).toMatchObject({ successful: 3, failed: 3, errored: 0 })
  const off = await app.db.query<{ id: string }>(sql`
    select id from subscriptions where app_id = ${tenant.id} and notification_types = -10 order by id`)
  expect(off.map((it) => it.id)).toEqual(gone.map((it) => it.id).sort())
})

test('where a provider knows not a single token of an app that never reached one, nobody is unsubscribed', async () => {
  await configure(SETTINGS)
  senders.invalidateCredentials(tenant.id)
  const [phones, tablets] = [await some(3, 'HuaweiPush'), await some(3, 'FireOSPush')]
  for (const { token } of phones) huawei.script(token, huaweiRefusal(400, '80300007'))
  for (const { token } of tablets) amazon.script(token, admRefusal(400, 'InvalidRegistrationId'))
  const everybody = [...phones, ...tablets].map(({ id }) => id)
  await aMessage(engine, tenant.id, { lane: 'direct', audience: only(...everybody) })
  await runEngine(engine)
  const off = await app.db.query(sql`
    select id from subscriptions where app_id = ${tenant.id} and notification_types is not null`)
  expect(off).toEqual([])
})

test('until an app has the credentials its deliveries are errored, with the reason; then they go', async () => {
  await some(2, 'HuaweiPush')
  await some(1, 'FireOSPush')
  await someWindows(1)
  const before = await aMessage(engine, tenant.id, {})
  await runEngine(engine)
  expect(await viewed(before)).toMatchObject({
    ...{ successful: 0, failed: 0, errored: 4, skipped: 0, remaining: 0 },
    platform_delivery_stats: { huawei: { errored: 2 }, amazon: { errored: 1 }, windows: { errored: 1 } },
    delivery: { reasons: { skipped: { not_configured: 4 } } },
  })
  await configure(SETTINGS)
  senders.invalidateCredentials(tenant.id)
  const after = await aMessage(engine, tenant.id, {})
  await runEngine(engine)
  expect(await viewed(after)).toMatchObject({ successful: 4, errored: 0 })
})
