// Checks every night that counts agree with deliveries. Both change in the same transactions, so a difference is a bug,
// and is logged as an alarm.

import { findAllApps } from '../../apps/store.ts'
import type { Engine } from '../engine/types.ts'
import { findExpandedSince } from '../settle/store.ts'
import { findMiscounts } from './store.ts'

const DAY_MS = 86_400_000
/** Each message is checked twice, because feedback arrives after the first night. */
const DAYS = 2
/** How long before its sending time a message can be created. */
const DAYS_AHEAD = 400

export type CountAudit = { checked: number; wrong: number }

export async function auditCounts({ db, clock, log }: Pick<Engine, 'db' | 'clock' | 'log'>): Promise<CountAudit> {
  const daysAgo = (days: number) => new Date(clock.now().getTime() - days * DAY_MS)
  const result: CountAudit = { checked: 0, wrong: 0 }
  for (const { id: appId } of await findAllApps(db))
    for (const { id, expandAt } of await findExpandedSince(db, appId, daysAgo(DAYS), daysAgo(DAYS_AHEAD))) {
      const wrong = await findMiscounts(db, appId, id, expandAt)
      result.checked++
      if (wrong.length === 0) continue
      result.wrong++
      log.error({ appId, messageId: id, wrong, alarm: true }, 'Counts of a message differ from its deliveries')
    }
  return result
}
