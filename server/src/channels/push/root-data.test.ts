import fc from 'fast-check'
import { expect, test } from 'vitest'
import { content } from '../../../test/channels/push-content.ts'
import { writeApnsPush } from './apns/payload.ts'
import type { PushContent } from './content.ts'
import { writeFcmPush } from './fcm/payload.ts'
import { writeWebPush } from './web-push/payload.ts'

const full: Partial<PushContent> = {
  subtitle: 'Loud',
  url: 'https://example.com',
  image: 'https://example.com/b.png',
  icon: 'icon',
  smallIcon: 'small',
  sound: 'bell.caf',
  group: 'tower',
  collapseId: 'news',
  buttons: [{ id: 'yes', text: 'Yes' }],
  android: { channelId: 'c', accentColor: 'FF112233', ledColor: 'FF112233', visibility: 1, groupMessage: 'Many' },
  web: { vibrate: '100' },
}

const payloads: [string, (content: PushContent) => Record<string, unknown>][] = [
  ['APNs', (it) => JSON.parse(writeApnsPush(it).body)],
  ['FCM', (it) => writeFcmPush(it).data],
  ['web push', (it) => JSON.parse(writeWebPush(it).plain.toString())],
]

/** Nonsense, and above all the names that stand in payloads already. */
const aKey = fc.oneof(
  fc.string({ maxLength: 10 }),
  fc.constantFrom('from', 'notification', 'message_type', 'google.x', 'gcm.y', 'gcm', 'collapse_key', '__proto__'),
  fc.constantFrom('aps', 'os_data', 'tag', ...payloads.flatMap(([, write]) => Object.keys(write(content(full))))),
)
const aData = fc.dictionary(aKey, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 8 })

test.each(payloads)('what is at the root of a payload for %s stays as it is, whatever data holds', (_, write) => {
  fc.assert(
    fc.property(aData, fc.constantFrom({}, full), (data, changes) => {
      const plain = write(content({ ...changes, data }))
      const rooted = write(content({ ...changes, data, isDataAtRoot: true }))
      expect(rooted).toMatchObject(plain)
      // Nor does a message without a title get one.
      const reserved = new Set(Object.keys(write(content(full))))
      const added = Object.keys(rooted).filter((key) => !Object.hasOwn(plain, key))
      expect(added.filter((key) => reserved.has(key))).toEqual([])
      expect(added.every((key) => Object.hasOwn(data, key))).toBe(true)
    }),
  )
})

test('what is free at the root is as it was given; FCM takes text alone', () => {
  const data = { order: 7, note: 'fast', to: { street: 'Mill Lane' } }
  const all = content({ data, isDataAtRoot: true })
  expect(JSON.parse(writeApnsPush(all).body)).toMatchObject(data)
  expect(JSON.parse(writeWebPush(all).plain.toString())).toMatchObject(data)
  expect(writeFcmPush(all).data).toMatchObject({ order: '7', note: 'fast', to: '{"street":"Mill Lane"}' })
})

test.each(['from', 'notification', 'message_type', 'google.c', 'gcm.notification.e', 'gcm', 'collapse_key', ''])(
  'FCM is not given the reserved key %j',
  (key) =>
    expect(Object.keys(writeFcmPush(content({ data: { [key]: 'x' }, isDataAtRoot: true })).data)).not.toContain(key),
)
