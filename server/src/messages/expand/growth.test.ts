import { describe, expect, test } from 'vitest'
import { newId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { createGrowthTracker } from './growth.ts'

const NOW = new Date('2030-03-15T09:00:00Z')

/** Which month was analyzed, and how often. */
function rig() {
  const analyzed: string[] = []
  const db = { query: async ({ text }: { text: string }) => analyzed.push(text) } as unknown as Db
  return { analyzed, growth: createGrowthTracker(db) }
}

describe('statistics of a month', () => {
  test('are renewed when a message passes 2,500 deliveries, and each time it has grown fourfold', async () => {
    const { analyzed, growth } = rig()
    const id = newId()
    const renewedAt: number[] = []
    for (let written = 500; written <= 200_000; written += 500) {
      growth.record(id, 500)
      const before = analyzed.length
      await growth.analyzeIfGrown(NOW)
      if (analyzed.length > before) renewedAt.push(written)
    }
    expect(renewedAt).toEqual([2_500, 10_000, 40_000, 160_000])
    expect(new Set(analyzed)).toEqual(new Set(['analyze deliveries_2030_03']))
  })

  test('are left alone by many small messages', async () => {
    const { analyzed, growth } = rig()
    for (let n = 0; n < 3_000; n++) growth.record(newId(), 2_000)
    await growth.analyzeIfGrown(NOW)
    expect(analyzed).toEqual([])
  })

  test('are renewed once for what was written since', async () => {
    const { analyzed, growth } = rig()
    growth.record(newId(), 50_000)
    growth.record(newId(), 50_000)
    await growth.analyzeIfGrown(NOW)
    await growth.analyzeIfGrown(NOW)
    expect(analyzed).toHaveLength(1)
  })
})
