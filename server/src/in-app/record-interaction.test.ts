import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { runJobs } from '../../test/events.ts'
import {
  ANDROID,
  aDevice,
  anInApp,
  type Device,
  deleteInApp,
  IN_APP_NOT_FOUND,
  IOS,
  report,
  updateInApp,
  viewInApp,
} from '../../test/in-app.ts'
import { NOBODY, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { grantInAppMessages } from './grant.ts'

let app: TestApp
const clock = virtualClock('2030-05-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const COUNTED = { status: 200, body: {} }
const html = `<div data-page-id="one"><button data-onesignal-unique-label="go">Go</button></div>
  <div data-page-id='two'><button data-onesignal-unique-label='stay'>Stay</button></div>`
const aMessage = () => anInApp(app, { contents: { en: { html }, de: { html } } })
const statsOf = async ({ id }: { id: string }) => (await viewInApp(app, id)).stats
const rowsOf = async (table: string, column: string, id: string) => {
  const text = `select count(*) as n from ${table} where ${column} = $1`
  return (await app.db.query<{ n: number }>({ text, values: [id] }))[0]?.n
}

describe('what SDKs report', () => {
  test('as Android does', async () => {
    const [message, device] = [await aMessage(), await aDevice(app)]
    const common = { player_id: device.subscriptionId, variant_id: message.variants.en, device_type: 1 }
    expect(told(await report(app, message.id, 'impression', { ...common, first_impression: true }, ANDROID))).toEqual(
      COUNTED,
    )
    expect(
      told(await report(app, message.id, 'click', { ...common, click_id: 'go', first_click: true }, ANDROID)),
    ).toEqual(COUNTED)
    expect(told(await report(app, message.id, 'pageImpression', { ...common, page_id: 'two' }, ANDROID))).toEqual(
      COUNTED,
    )
    const once = { total: 1, unique: 1 }
    const none = { total: 0, unique: 0 }
    expect(await statsOf(message)).toEqual({
      impressions: once,
      clicks: once,
      page_impressions: once,
      variants: [
        { id: message.variants.en, language: 'en', impressions: once, clicks: once },
        { id: message.variants.de, language: 'de', impressions: none, clicks: none },
      ],
      buttons: [{ id: 'go', ...once }],
      pages: [{ id: 'two', ...once }],
    })
  })

  test('as iOS does', async () => {
    const [message, device] = [await aMessage(), await aDevice(app, { type: 'iOSPush' })]
    const common = {
      app_id: app.tenant.id,
      device_type: 0,
      player_id: device.subscriptionId.toUpperCase(),
      variant_id: message.variants.de.toUpperCase(),
    }
    const post = (what: string, more: object = {}) =>
      app.request(`/api/v1/in_app_messages/${message.id.toUpperCase()}/${what}`, {
        headers: IOS,
        body: { ...common, ...more },
      })
    expect(told(await post('impression'))).toEqual(COUNTED)
    expect(told(await post('click', { click_id: '', first_click: false }))).toEqual(COUNTED)
    expect(told(await post('click', { click_id: 'stay', first_click: true, click_type: 'button' }))).toEqual(COUNTED)
    const stats = await statsOf(message)
    expect(stats).toMatchObject({
      impressions: { total: 1, unique: 1 },
      clicks: { total: 2, unique: 1 },
      buttons: [{ id: 'stay', total: 1, unique: 1 }],
    })
    expect(stats.variants[1]).toMatchObject({ language: 'de', clicks: { total: 2, unique: 1 } })
  })

  test('is counted each time, and once for each device', async () => {
    const message = await aMessage()
    const [first, second] = [await aDevice(app), await aDevice(app)]
    const seen = (device: Device, language: 'en' | 'de') =>
      report(app, message.id, 'impression', {
        player_id: device.subscriptionId,
        variant_id: message.variants[language],
      })
    for (const [device, language] of [
      [first, 'en'],
      [first, 'en'],
      [first, 'de'],
      [second, 'de'],
    ] as const)
      await seen(device, language)
    const { impressions, variants } = await statsOf(message)
    expect(impressions).toEqual({ total: 4, unique: 2 })
    expect(variants.map((it: { impressions: object }) => it.impressions)).toEqual([
      { total: 2, unique: 1 },
      { total: 2, unique: 2 },
    ])
  })

  test('of a variant, button or page that the message has not counts for the message alone', async () => {
    const [message, other, device] = [await aMessage(), await aMessage(), await aDevice(app)]
    const of = (variant_id: unknown, more: object = {}) => ({ player_id: device.subscriptionId, variant_id, ...more })
    for (const variant of [other.variants.en, 'x', '', null, NOBODY, undefined])
      expect(told(await report(app, message.id, 'impression', of(variant)))).toEqual(COUNTED)
    await report(app, message.id, 'click', of(message.variants.en, { click_id: 'nothing' }))
    await report(app, message.id, 'click', of(message.variants.en, { click_id: 'two' }))
    await report(app, message.id, 'pageImpression', of(message.variants.en, { page_id: 'go' }))
    const stats = await statsOf(message)
    expect(stats).toMatchObject({
      impressions: { total: 6, unique: 1 },
      clicks: { total: 2, unique: 1 },
      page_impressions: { total: 1, unique: 1 },
      buttons: [],
      pages: [],
    })
    expect(stats.variants[0].impressions).toEqual({ total: 0, unique: 0 })
    expect((await statsOf(other)).impressions.total).toBe(0)
    // Nothing that a device makes up takes room.
    expect(await rowsOf('in_app_counts', 'in_app_message_id', message.id)).toBe(5)
  })

  test('counts the buttons of a message of fields, and the cross', async () => {
    const buttons = [{ id: 'buy', text: 'Buy' }]
    const message = await anInApp(app, {
      contents: { en: { title: 'A', buttons }, de: { title: 'B', close_button: false } },
    })
    const device = await aDevice(app)
    for (const click_id of ['close', 'buy', 'buy'])
      await report(app, message.id, 'click', { player_id: device.subscriptionId, click_id })
    expect((await statsOf(message)).buttons).toEqual([
      { id: 'buy', total: 2, unique: 1 },
      { id: 'close', total: 1, unique: 1 },
    ])
  })

  test('is counted after a pause too, and stays when the content changes', async () => {
    const [message, device] = [await aMessage(), await aDevice(app)]
    await report(app, message.id, 'click', { player_id: device.subscriptionId, click_id: 'go' })
    await updateInApp(app, message.id, { state: 'paused', contents: { en: { title: 'New' } } })
    expect(told(await report(app, message.id, 'impression', { player_id: device.subscriptionId }))).toEqual(COUNTED)
    expect(await statsOf(message)).toMatchObject({
      impressions: { total: 1 },
      clicks: { total: 1 },
      buttons: [{ id: 'go', total: 1, unique: 1 }],
      variants: [{ language: 'en' }],
    })
  })

  test.each<[string, string, object, number, RegExp]>([
    ['no player', 'impression', { player_id: undefined }, 400, /^player_id is required/],
    ['a player that is no id', 'click', { player_id: 'x' }, 400, /^player_id must be a UUID/],
    ['a player that is not there', 'impression', { player_id: NOBODY }, 404, /^Subscription not found/],
    ['a button that is no text', 'click', { click_id: 1 }, 400, /^click_id must be/],
    ['a long button', 'click', { click_id: 'x'.repeat(129) }, 400, /^click_id must have at most/],
    ['a page that cannot be kept', 'pageImpression', { page_id: '\ud800' }, 400, /page_id/],
    ['no app', 'impression', { app_id: undefined }, 400, /^app_id is required/],
  ])('%s is refused', async (_, what, fields, status, says) => {
    const [message, device] = [await aMessage(), await aDevice(app)]
    const answer = await report(app, message.id, what as 'click', { player_id: device.subscriptionId, ...fields })
    expect(told(answer)).toEqual({ status, body: { errors: [expect.stringMatching(says)] } })
    expect((await statsOf(message)).impressions.total).toBe(0)
  })

  test('of a message that is not there is refused', async () => {
    const device = await aDevice(app)
    expect(told(await report(app, NOBODY, 'impression', { player_id: device.subscriptionId }))).toEqual(
      IN_APP_NOT_FOUND,
    )
    expect((await report(app, 'x', 'impression', { player_id: device.subscriptionId })).status).toBe(400)
  })

  test('needs the headers of an SDK, or a key', async () => {
    const [message, device] = [await aMessage(), await aDevice(app)]
    const body = { app_id: app.tenant.id, player_id: device.subscriptionId }
    const path = `/in_app_messages/${message.id}/impression`
    expect((await app.request(path, { body })).status).toBe(200)
    expect((await app.request(path, { body, headers: { authorization: '' } })).status).toBe(401)
    expect((await app.request(path, { body, headers: ANDROID })).status).toBe(200)
  })
})

test('reports that come all at once, on two servers, are counted exactly', async () => {
  const beside = await testApp({ clock, beside: app })
  try {
    const messages = [await aMessage(), await aMessage()]
    const devices = await Promise.all(Array.from({ length: 10 }, () => aDevice(app)))
    const reports = Array.from({ length: 3 }, () =>
      messages.flatMap((message) =>
        devices.flatMap((device) =>
          [app, beside].flatMap((server) => {
            const common = { player_id: device.subscriptionId, variant_id: message.variants.en }
            return [
              () => report(server, message.id, 'impression', common),
              () => report(server, message.id, 'click', { ...common, click_id: 'go' }),
              // One that is refused does not take the others along.
              () => report(server, NOBODY, 'impression', common),
            ]
          }),
        ),
      ),
    ).flat()
    // In no order that helps.
    const answers = await Promise.all(reports.toSorted(() => Math.random() - 0.5).map((send) => send()))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(240)
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(120)
    for (const message of messages) {
      const counted = { total: 60, unique: 10 }
      const stats = await statsOf(message)
      expect(stats).toMatchObject({ impressions: counted, clicks: counted, buttons: [{ id: 'go', ...counted }] })
      expect(stats.variants[0]).toMatchObject({ impressions: counted, clicks: counted })
    }
  } finally {
    await beside.close()
  }
})

describe('what is forgotten', () => {
  test('who saw what, with the user; the counts stay', async () => {
    const message = await aMessage()
    const [user, other] = [await aDevice(app), await aDevice(app)]
    for (const { subscriptionId } of [user, other])
      await report(app, message.id, 'impression', { player_id: subscriptionId })
    await grantInAppMessages(app.db, app.tenant.id, [{ userId: user.id, messageId: message.id, expiresAt: null }])
    await app.app(user.path, { method: 'DELETE' })
    clock.advance({ seconds: 59 })
    await runJobs(app, clock)
    expect(await rowsOf('in_app_seen', 'user_id', user.id)).toBe(1)
    clock.advance({ seconds: 1 })
    await runJobs(app, clock)
    expect(await rowsOf('in_app_seen', 'user_id', user.id)).toBe(0)
    expect(await rowsOf('in_app_grants', 'user_id', user.id)).toBe(0)
    expect(await rowsOf('in_app_seen', 'user_id', other.id)).toBe(1)
    expect((await statsOf(message)).impressions).toEqual({ total: 2, unique: 2 })
  })

  test('everything about a deleted message', async () => {
    const [message, other] = [await aMessage(), await aMessage()]
    const user = await aDevice(app)
    for (const { id } of [message, other]) await report(app, id, 'impression', { player_id: user.subscriptionId })
    await grantInAppMessages(app.db, app.tenant.id, [{ userId: user.id, messageId: message.id, expiresAt: null }])
    await deleteInApp(app, message.id)
    clock.advance({ minutes: 1 })
    await runJobs(app, clock)
    for (const table of ['in_app_seen', 'in_app_counts', 'in_app_grants', 'in_app_variants'])
      expect(await rowsOf(table, 'in_app_message_id', message.id), table).toBe(0)
    expect((await statsOf(other)).impressions).toEqual({ total: 1, unique: 1 })
  })

  test('grants that have ended', async () => {
    const [message, user, other] = [await aMessage(), await aDevice(app), await aDevice(app)]
    const until = (seconds: number) => new Date(clock.now().getTime() + seconds * 1_000)
    await grantInAppMessages(app.db, app.tenant.id, [
      { userId: user.id, messageId: message.id, expiresAt: until(3_600) },
      { userId: other.id, messageId: message.id, expiresAt: until(999_999) },
    ])
    clock.advance({ hours: 2 })
    await runJobs(app, clock)
    expect(await rowsOf('in_app_grants', 'user_id', user.id)).toBe(0)
    expect(await rowsOf('in_app_grants', 'user_id', other.id)).toBe(1)
  })
})
