import { expect, test } from 'vitest'
import { newId } from '../../lib/ids.ts'
import { createSlots, type SlotOwner } from './slots.ts'

const appId = newId()
const apns = (lane: SlotOwner['lane'], of = appId): SlotOwner => ({ appId: of, provider: 'apns', lane })
const text = (lane: SlotOwner['lane'], of: string): SlotOwner => ({ appId: of, provider: 'sms', lane })

test('bulk takes three quarters at most, direct all that is left, and each provider has its own', async () => {
  const permits = createSlots(20)
  expect(await permits.acquire(apns('bulk'), 100)).toBe(15)
  expect(await permits.acquire(apns('direct'), 3)).toBe(3)
  expect(await permits.acquire(apns('direct'), 3)).toBe(2)
  expect(await permits.acquire({ appId, provider: 'fcm', lane: 'bulk' }, 4)).toBe(4)
  expect(permits.stats()).toEqual({ inFlight: 24, waiting: 0, most: 20 })
})

test('who waits is served in turn, direct first', async () => {
  const permits = createSlots(4)
  expect(await permits.acquire(apns('direct'), 4)).toBe(4)
  const served: string[] = []
  const waiting = (['bulk', 'direct', 'bulk'] as const).map((lane, i) =>
    permits.acquire(apns(lane), 1).then((count) => void served.push(`${lane} ${i} ${count}`)),
  )
  expect(permits.stats().waiting).toBe(3)
  permits.release(apns('direct'), 4)
  await Promise.all(waiting)
  expect(served).toEqual(['direct 1 1', 'bulk 0 1', 'bulk 2 1'])
})

test.each(['apns', 'fcm', 'huawei', 'adm', 'wns', 'web-push', 'safari', 'email', 'sms'] as const)(
  'an app whose messages to %s all hang, in both lanes, leaves another app as much as it has itself',
  async (provider) => {
    const permits = createSlots(20)
    const [hanging, other] = [newId(), newId()]
    expect(await permits.acquire({ appId: hanging, provider, lane: 'bulk' }, 100)).toBe(15)
    expect(await permits.acquire({ appId: hanging, provider, lane: 'direct' }, 100)).toBe(5)
    let isServed = false
    const waiting = permits.acquire({ appId: hanging, provider, lane: 'direct' }, 1).then(() => {
      isServed = true
    })
    expect(await permits.acquire({ appId: other, provider, lane: 'bulk' }, 100)).toBe(15)
    expect(await permits.acquire({ appId: other, provider, lane: 'direct' }, 100)).toBe(5)
    expect(isServed).toBe(false)
    permits.release({ appId: hanging, provider, lane: 'bulk' }, 15)
    await waiting
    expect(permits.stats()).toEqual({ inFlight: 26, waiting: 0, most: 20 })
  },
)

test('the shares of all apps are bounded together, and two dozen that hang leave some for the next', async () => {
  const permits = createSlots(200)
  const taken: number[] = []
  for (let n = 0; n < 25; n++) taken.push(await permits.acquire(text('direct', newId()), 100))
  expect(taken.slice(0, 12)).toEqual([100, 100, 100, 100, 100, 100, 100, 75, 56, 42, 31, 24])
  expect(taken.every((count) => count > 0)).toBe(true)
  for (let n = 0; n < 30; n++) void permits.acquire(text('direct', newId()), 100)
  expect(permits.stats()).toMatchObject({ inFlight: 1_000 })
})

test('what is given back goes to who has none before it goes to who had it', async () => {
  const permits = createSlots(4)
  const [first = '', ...others] = Array.from({ length: 11 }, newId)
  const last = newId()
  const taken = []
  for (const of of [...others, first]) taken.push(await permits.acquire(text('direct', of), 4))
  expect(taken).toEqual([4, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1])
  const served: string[] = []
  const waiting = [first, last].map((of) =>
    permits
      .acquire(text('direct', of), 4)
      .then((count) => void served.push(`${of === last ? 'last' : 'first'} ${count}`)),
  )
  permits.release(text('direct', first), 1)
  await waiting[1]
  expect(served).toEqual(['last 1'])
  permits.release(text('direct', last), 1)
  await waiting[0]
  expect(served).toEqual(['last 1', 'first 1'])
})
