import { expect, test } from 'vitest'
import { newId } from '../lib/ids.ts'
import { readEvents } from './read-event.ts'

test('many events are read in slices, and others have their turns between them', async () => {
  const events = Array.from({ length: 9_500 }, (_, i) => ({ name: 'bought', external_id: `nobody-${i}` }))
  const moment = { now: new Date('2026-03-01'), oldest: new Date('2026-01-01') }
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const read = await readEvents({ events, idempotency_key: crypto.randomUUID() }, moment, newId)
  isOver = true
  expect(read.map(({ userId }) => userId)).toEqual(events.map(({ external_id }) => external_id))
  expect(turns).toBeGreaterThanOrEqual(9)
})
