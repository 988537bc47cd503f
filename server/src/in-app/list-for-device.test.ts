import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { ANDROID, aDevice, anInApp, createInApp, fetchFor, IOS, shownTo, updateInApp } from '../../test/in-app.ts'
import { aSegment, tagIs } from '../../test/segments.ts'
import { aName, anId, NOBODY, SUBSCRIPTION_NOT_FOUND, told, USER_NOT_FOUND } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { grantInAppMessages } from './grant.ts'

let app: TestApp
const clock = virtualClock('2030-05-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1_000).toISOString()

describe('what a device is told', () => {
  test('is in the form that SDKs read', async () => {
    const device = await aDevice(app)
    const message = await anInApp(app, {
      contents: {
        en: { title: 'Hello {{ name }}' },
        de: { title: 'Hallo' },
        'zh-Hans': { title: '你好' },
        'zh-Hant': { title: '您好' },
      },
      triggers: [
        [
          { property: 'level', operator: 'greater', value: 3 },
          { property: 'vip', operator: 'not_exists' },
          { property: 'vip', operator: 'exists' },
        ],
        [{ kind: 'time_since_last_in_app', operator: 'greater', value: 60 }],
      ],
      redisplay: { limit: 3, delay: 60 },
      end_time: at(3_600),
      display_duration: 7.5,
    })
    const { en, de, 'zh-Hans': hans, 'zh-Hant': hant } = message.variants
    const { status, body } = await fetchFor(app, device)
    expect(status).toBe(200)
    expect(body.in_app_messages.find(({ id }: { id: string }) => id === message.id)).toEqual({
      id: message.id,
      variants: {
        all: {
          en,
          de,
          'zh-Hans': hans,
          'zh-Hant': hant,
          default: en,
          zh: hans,
          'zh-CN': hans,
          'zh-SG': hans,
          'zh-TW': hant,
          'zh-HK': hant,
          'zh-MO': hant,
        },
      },
      triggers: [
        [
          { id: anId(), kind: 'custom', property: 'level', operator: 'greater', value: 3 },
          { id: anId(), kind: 'custom', property: 'vip', operator: 'not_exists', value: '' },
          { id: anId(), kind: 'custom', property: 'vip', operator: 'exists' },
        ],
        [{ id: anId(), kind: 'min_time_since', property: 'min_time_since', operator: 'greater', value: 60 }],
      ],
      redisplay: { limit: 3, delay: 60 },
      end_time: at(3_600),
      has_liquid: true,
      displayDuration: 7.5,
    })
  })

  test('is found by every name that a device has for its language', async () => {
    const device = await aDevice(app)
    const titles = {
      en: { title: 'Hello' },
      nb: { title: 'Hei' },
      he: { title: 'שלום' },
      in: { title: 'Halo' },
      zh: { title: '好' },
    }
    const { id, variants } = await anInApp(app, { contents: titles })
    const { body } = await fetchFor(app, device)
    const shown = body.in_app_messages.find((it: { id: string }) => it.id === id).variants.all
    const named = (names: string, code: string) =>
      Object.fromEntries(names.split(' ').map((name) => [name, variants[code]]))
    expect(shown).toEqual({
      ...named('en default', 'en'),
      ...named('no nb', 'nb'),
      ...named('iw he', 'he'),
      ...named('in id', 'in'),
      ...named('zh zh-Hans zh-Hant zh-CN zh-SG zh-TW zh-HK zh-MO', 'zh'),
    })
  })

  test('leaves out what says nothing: SDKs take the presence of has_liquid for true, and trip over null', async () => {
    const device = await aDevice(app)
    const { id, variants } = await anInApp(app, { platforms: ['ios', 'android'] })
    const { body } = await fetchFor(app, device)
    const languages = { en: variants.en, default: variants.en }
    expect(body.in_app_messages.find((it: { id: string }) => it.id === id)).toEqual({
      id,
      variants: { ios: languages, android: languages },
      triggers: [],
    })
  })

  test('is oldest first', async () => {
    const own = await testApp({ clock })
    try {
      const ids: string[] = []
      for (let i = 0; i < 3; i++) {
        clock.advance({ seconds: 1 })
        ids.push((await anInApp(own)).id)
      }
      expect(await shownTo(own, await aDevice(own))).toEqual(ids)
    } finally {
      await own.close()
    }
  })

  test.each([
    ['Android', ANDROID],
    ['iOS', IOS],
  ])('is asked for by %s with headers of its own and without a key', async (_, headers) => {
    const device = await aDevice(app)
    const more = { 'onesignal-session-duration': '1200', 'onesignal-ryw-token': '12', 'onesignal-retry-count': '1' }
    expect((await fetchFor(app, device, { ...headers, ...more })).status).toBe(200)
    expect((await fetchFor(app, device, { authorization: '' })).status).toBe(401)
  })

  test('needs a subscription that is there', async () => {
    expect(told(await fetchFor(app, { subscriptionId: NOBODY }))).toEqual(SUBSCRIPTION_NOT_FOUND)
    const { status, body } = await fetchFor(app, { subscriptionId: 'x' })
    expect({ status, code: body.errors[0].code }).toEqual({ status: 400, code: 'request-1' })
    const device = await aDevice(app)
    await app.app(`/subscriptions/${device.subscriptionId}`, { method: 'DELETE' })
    expect(told(await fetchFor(app, device))).toEqual(SUBSCRIPTION_NOT_FOUND)
  })

  test('is the same for devices that ask at the same time, each for itself', async () => {
    const { id } = await anInApp(app, { included_segments: [await aSegment(app, [tagIs('crowd', 'yes')])] })
    const devices = await Promise.all(
      Array.from({ length: 30 }, (_, i) => aDevice(app, { tags: { crowd: i % 3 === 0 ? 'yes' : 'no' } })),
    )
    const asked = [...devices, { subscriptionId: NOBODY }, ...devices]
    const answers = await Promise.all(asked.map((it) => fetchFor(app, it)))
    const isShown = answers.map(({ status, body }) =>
      status === 200 ? body.in_app_messages.some((it: { id: string }) => it.id === id) : undefined,
    )
    const expected = devices.map((_, i) => i % 3 === 0)
    expect(isShown).toEqual([...expected, undefined, ...expected])
  })
})

describe('shown is what is live', () => {
  test.each(['draft', 'paused', 'archived'])('and not a message that is %s', async (state) => {
    const device = await aDevice(app)
    const { id } = await anInApp(app)
    const message = state === 'draft' ? (await createInApp(app)).body : (await updateInApp(app, id, { state })).body
    const shown = await shownTo(app, device)
    expect(shown).not.toContain(message.id)
    expect(shown.includes(id)).toBe(state === 'draft')
  })

  test('from its start on, and not from its end on', async () => {
    const device = await aDevice(app)
    const { id } = await anInApp(app, { start_time: at(10), end_time: at(20) })
    const seen: boolean[] = []
    for (const seconds of [0, 9.999, 0.001, 9.999, 0.001]) {
      clock.advance({ seconds })
      seen.push((await shownTo(app, device)).includes(id))
    }
    expect(seen).toEqual([false, false, true, true, false])
  })
})

describe('the audience', () => {
  test('is whom an included segment has and no excluded one', async () => {
    const gold = await aSegment(app, [tagIs('plan', 'gold')])
    const silver = await aSegment(app, [tagIs('plan', 'silver')])
    const banned = await aSegment(app, [tagIs('banned', 'yes')])
    const { id } = await anInApp(app, { included_segments: [gold, silver], excluded_segments: [banned] })
    const open = await anInApp(app, { excluded_segments: [banned] })
    const isShown = async (tags: Record<string, string>) => {
      const shown = await shownTo(app, await aDevice(app, { tags }))
      return [shown.includes(id), shown.includes(open.id)]
    }
    expect(await isShown({ plan: 'gold' })).toEqual([true, true])
    expect(await isShown({ plan: 'silver' })).toEqual([true, true])
    expect(await isShown({ plan: 'tin' })).toEqual([false, true])
    expect(await isShown({ plan: 'gold', banned: 'yes' })).toEqual([false, false])
    // Of whom nothing is known is in no segment.
    expect(await isShown({})).toEqual([false, true])
  })

  test('is judged when it is asked for, by default segments too, which hold for the device and not for the user', async () => {
    const segment = await aSegment(app, [tagIs('plan', 'gold')])
    const { id } = await anInApp(app, { included_segments: [segment] })
    const active = await anInApp(app, { included_segments: ['Active Users'] })
    const device = await aDevice(app)
    expect(await shownTo(app, device)).not.toContain(id)
    await app.app(device.path, { method: 'PATCH', body: { properties: { tags: { plan: 'gold' } } } })
    expect(await shownTo(app, device)).toEqual(expect.arrayContaining([id, active.id]))
    clock.advance({ days: 8 })
    const added = await app.app(`${device.path}/subscriptions`, {
      body: { subscription: { type: 'iOSPush', token: aName('token') } },
    })
    expect(await shownTo(app, device)).not.toContain(active.id)
    expect(await shownTo(app, { subscriptionId: added.body.subscription.id })).toContain(active.id)
  })

  test('of a deleted segment is nobody, and where it was excluded nobody is shown anything', async () => {
    const gone = await aSegment(app, [tagIs('plan', 'gold')])
    const included = await anInApp(app, { included_segments: [gone] })
    const both = await anInApp(app, { included_segments: [gone, 'Total Subscriptions'] })
    const excluded = await anInApp(app, { excluded_segments: [gone] })
    const device = await aDevice(app, { tags: { plan: 'gold' } })
    await app.app(`/segments/${gone}`, { method: 'DELETE' })
    const shown = await shownTo(app, device)
    expect([included, both, excluded].map(({ id }) => shown.includes(id))).toEqual([false, true, false])
  })

  test('is on the platforms that are named', async () => {
    const ids = Object.fromEntries(
      await Promise.all(
        ['ios', 'android', 'web'].map(async (it) => [it, (await anInApp(app, { platforms: [it] })).id] as const),
      ),
    )
    const everywhere = await anInApp(app)
    const types: Record<string, string | undefined> = {
      iOSPush: 'ios',
      AndroidPush: 'android',
      HuaweiPush: 'android',
      FireOSPush: 'android',
      ChromePush: 'web',
      FirefoxPush: 'web',
      SafariPush: 'web',
      macOSPush: undefined,
    }
    for (const [type, platform] of Object.entries(types)) {
      const shown = await shownTo(app, await aDevice(app, { type }))
      const named = Object.keys(ids).filter((it) => shown.includes(ids[it] as string))
      expect({ type, named }).toEqual({ type, named: platform === undefined ? [] : [platform] })
      expect(shown).toContain(everywhere.id)
    }
  })

  test('of many segments is judged all the same', async () => {
    const own = await testApp({ clock })
    try {
      const segments = await Promise.all(Array.from({ length: 90 }, (_, i) => aSegment(own, [tagIs('n', String(i))])))
      const messages = []
      for (let i = 0; i < 9; i++)
        messages.push(await anInApp(own, { included_segments: segments.slice(i * 10, i * 10 + 10) }))
      for (const n of [0, 24, 25, 26, 49, 50, 75, 89])
        expect(await shownTo(own, await aDevice(own, { tags: { n: String(n) } })), String(n)).toEqual([
          messages[Math.floor(n / 10)].id,
        ])
    } finally {
      await own.close()
    }
  })
})

describe('a message that is only for whom it is granted to', () => {
  test('is shown to them, on all their devices, until the grant ends', async () => {
    const { id } = await anInApp(app, { audience: 'granted' })
    const [user, other] = [await aDevice(app), await aDevice(app)]
    expect(await shownTo(app, user)).not.toContain(id)
    await grantInAppMessages(app.db, app.tenant.id, [{ userId: user.id, messageId: id, expiresAt: new Date(at(60)) }])
    const added = await app.app(`${user.path}/subscriptions`, {
      body: { subscription: { type: 'iOSPush', token: aName('token') } },
    })
    expect(await shownTo(app, user)).toContain(id)
    expect(await shownTo(app, { subscriptionId: added.body.subscription.id })).toContain(id)
    expect(await shownTo(app, other)).not.toContain(id)
    clock.advance({ seconds: 59.999 })
    expect(await shownTo(app, user)).toContain(id)
    clock.advance({ seconds: 0.001 })
    expect(await shownTo(app, user)).not.toContain(id)
  })

  test('is granted for the longest time that was given, or for ever', async () => {
    const { id } = await anInApp(app, { audience: 'granted' })
    const [user, always] = [await aDevice(app), await aDevice(app)]
    const until = (userId: string, seconds: number | null) => ({
      userId,
      messageId: id,
      expiresAt: seconds === null ? null : new Date(at(seconds)),
    })
    await grantInAppMessages(app.db, app.tenant.id, [until(user.id, 30), until(user.id, 60), until(always.id, null)])
    await grantInAppMessages(app.db, app.tenant.id, [until(user.id, 10), until(always.id, 10)])
    clock.advance({ seconds: 59 })
    expect(await shownTo(app, user)).toContain(id)
    clock.advance({ days: 400 })
    expect(await shownTo(app, user)).not.toContain(id)
    expect(await shownTo(app, always)).toContain(id)
  })

  test('keeps to its segments', async () => {
    const excluded_segments = [await aSegment(app, [tagIs('banned', 'yes')])]
    const { id } = await anInApp(app, { audience: 'granted', excluded_segments })
    const [fine, banned] = [await aDevice(app), await aDevice(app, { tags: { banned: 'yes' } })]
    const forEver = (userId: string) => ({ userId, messageId: id, expiresAt: null })
    await grantInAppMessages(app.db, app.tenant.id, [forEver(fine.id), forEver(banned.id)])
    expect(await shownTo(app, fine)).toContain(id)
    expect(await shownTo(app, banned)).not.toContain(id)
  })

  test('is granted to nobody and for nothing that is not there', async () => {
    const { id } = await anInApp(app, { audience: 'granted' })
    const user = await aDevice(app)
    await grantInAppMessages(app.db, app.tenant.id, [])
    await grantInAppMessages(app.db, app.tenant.id, [
      { userId: NOBODY, messageId: id, expiresAt: null },
      { userId: user.id, messageId: NOBODY, expiresAt: null },
    ])
    const text = 'select count(*) as n from in_app_grants where user_id = $1 or in_app_message_id = $2'
    expect(await app.db.query({ text, values: [NOBODY, NOBODY] })).toEqual([{ n: 0 }])
  })
})

describe('a device that says whose it is', () => {
  const byAlias = (label: string, value: string, subscriptionId: string, headers: object = {}) =>
    app.app(`/users/by/${label}/${encodeURIComponent(value)}/subscriptions/${subscriptionId}/iams`, {
      headers: { ...headers },
    })

  test('is told the same', async () => {
    const device = await aDevice(app)
    const expected = told(await fetchFor(app, device))
    expect(told(await byAlias('onesignal_id', device.id, device.subscriptionId, ANDROID))).toEqual(expected)
    expect(told(await byAlias('external_id', device.externalId, device.subscriptionId))).toEqual(expected)
  })

  test('must be theirs, and they must be there', async () => {
    const [device, other] = [await aDevice(app), await aDevice(app)]
    expect(told(await byAlias('onesignal_id', other.id, device.subscriptionId, ANDROID))).toEqual(
      SUBSCRIPTION_NOT_FOUND,
    )
    expect(told(await byAlias('onesignal_id', NOBODY, device.subscriptionId, ANDROID))).toEqual(USER_NOT_FOUND)
    expect((await byAlias('onesignal_id', 'x', device.subscriptionId, ANDROID)).status).toBe(400)
  })

  test('without a key may not name them by what can be guessed', async () => {
    const device = await aDevice(app)
    for (const label of ['external_id', 'mark'])
      expect((await byAlias(label, device.externalId, device.subscriptionId, ANDROID)).status).toBe(401)
  })
})
