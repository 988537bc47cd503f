import { expect, test } from 'vitest'
import { virtualClock } from '../lib/clock.ts'
import { createDeliveries, MOST_CHARACTERS, MOST_DELIVERIES } from './deliveries.ts'

const entry = (to: string, text = 'hello') => ({ channel: 'sms', to, message_id: null, text }) as const

test('the newest are kept, and no more than so many', () => {
  const deliveries = createDeliveries(virtualClock())
  for (let i = 0; i < MOST_DELIVERIES + 7; i++) deliveries.add(entry(String(i)))
  const kept = deliveries.since(0)
  expect(kept).toHaveLength(MOST_DELIVERIES)
  expect([kept[0]?.to, kept.at(-1)?.to]).toEqual(['7', String(MOST_DELIVERIES + 6)])
})

test('long texts are kept in smaller number', () => {
  const deliveries = createDeliveries(virtualClock())
  const text = 'x'.repeat(MOST_CHARACTERS / 4)
  for (let i = 0; i < 9; i++) deliveries.add(entry(String(i), text))
  expect(deliveries.since(0).map(({ to }) => to)).toEqual(['5', '6', '7', '8'])
  deliveries.clear()
  expect(deliveries.since(0)).toEqual([])
  deliveries.add(entry('after'))
  expect(deliveries.since(0)).toHaveLength(1)
})

test('one is told by its time', () => {
  const clock = virtualClock('2030-01-01T00:00:00Z')
  const deliveries = createDeliveries(clock)
  deliveries.add(entry('a'))
  clock.advance({ ms: 1 })
  deliveries.add(entry('b'))
  expect(deliveries.since(clock.now().getTime())).toEqual([{ at: clock.now().getTime(), ...entry('b') }])
})
