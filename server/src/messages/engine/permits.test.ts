import { expect, test } from 'vitest'
import { newId } from '../../lib/ids.ts'
import { createPermits, type From } from './permits.ts'

const appId = newId()
const apns = (lane: From['lane'], of = appId): From => ({ appId: of, provider: 'apns', lane })

test('bulk takes three quarters at most, direct all that is left, and each provider has its own', async () => {
  const permits = createPermits(20)
  expect(await permits.take(apns('bulk'), 100)).toBe(15)
  expect(await permits.take(apns('direct'), 3)).toBe(3)
  expect(await permits.take(apns('direct'), 3)).toBe(2)
  expect(await permits.take({ appId, provider: 'fcm', lane: 'bulk' }, 4)).toBe(4)
  expect(permits.stats()).toEqual({ inFlight: 24, waiting: 0, most: 20 })
})

test('who waits is served in turn, direct first', async () => {
  const permits = createPermits(4)
  expect(await permits.take(apns('direct'), 4)).toBe(4)
  const served: string[] = []
  const waiting = (['bulk', 'direct', 'bulk'] as const).map((lane, i) =>
    permits.take(apns(lane), 1).then((count) => void served.push(`${lane} ${i} ${count}`)),
  )
  expect(permits.stats().waiting).toBe(3)
  permits.give(apns('direct'), 4)
  await Promise.all(waiting)
  expect(served).toEqual(['direct 1 1', 'bulk 0 1', 'bulk 2 1'])
})

test('an app that has half of it lets others go first, and takes all when nobody else waits', async () => {
  const permits = createPermits(16)
  const [slow, other] = [newId(), newId()]
  expect(await permits.take(apns('bulk', slow), 10)).toBe(10)
  expect(await permits.take(apns('bulk', slow), 10)).toBe(2)
  const served: string[] = []
  const waitFor = (name: string, of: string) =>
    permits.take(apns('bulk', of), 4).then((count) => void served.push(`${name} ${count}`))
  const waiting = [waitFor('slow', slow), waitFor('other', other), waitFor('other', other)]
  permits.give(apns('bulk', slow), 2)
  await waiting[1]
  permits.give(apns('bulk', slow), 10)
  await Promise.all(waiting)
  expect(served).toEqual(['other 2', 'slow 4', 'other 4'])
})
