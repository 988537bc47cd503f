// Counts what happened to emails. Counts are only ever added and never read back, so any order, any batching and any
// number of writers produce the same sums.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { addMonths } from '../../storage/partitions.ts'
import { type EmailCount, emailFacts } from './facts.ts'
import { addCounts, type CountRow } from './store.ts'
import { floorOf, type TimeUnit } from './time-unit.ts'

export { readRates } from './read-rates.ts'

/** Each kind of writer has its own part of the rows, so that writers do not wait for each other's locks. */
export const writerParts = { feedback: 4, loading: 5 } as const

/** Runs in the transaction that records what is counted. */
export async function countEmails(db: Db, appId: AppId, part: number, counts: readonly EmailCount[]): Promise<void> {
  const instants = summed('instant', counts)
  if (instants.length === 0) return
  const hours = summed('hour', instants)
  const days = summed('day', hours)
  const months = summed('month', days)
  // The schedule creates partitions far ahead, so this usually only checks the catalog, which is cheap compared with
  // the counting.
  const times = months.map(({ at }) => at.getTime())
  await addMonths(db, 'email_instants', new Date(Math.min(...times)), new Date(Math.max(...times)))
  await addCounts(db, appId, part, [...instants, ...hours, ...days, ...months])
}

function summed(unit: TimeUnit, counts: readonly EmailCount[]): CountRow[] {
  const sums = new Map<string, CountRow>()
  for (const count of counts) {
    const { domain, provider } = count
    const at = floorOf(unit, count.at)
    const key = `${domain} ${at.getTime()} ${provider}`
    let sum = sums.get(key)
    if (!sum) {
      sum = { unit, domain, at, provider }
      sums.set(key, sum)
    }
    for (const fact of emailFacts) {
      const more = count[fact]
      if (more !== undefined) sum[fact] = (sum[fact] ?? 0) + more
    }
  }
  return [...sums.values()]
}
