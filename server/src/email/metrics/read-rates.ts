import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { type EmailTotals, sumOfApp } from './store.ts'
import { coverWindow } from './time-unit.ts'

const DAY_MS = 86_400_000

export type EmailRates = EmailTotals & { bounce_rate: number; complaint_rate: number }

/** Returns the bounce and complaint rates of all mail of an app, up to now. A rate is 0 when there was no mail. */
export async function readRates(
  db: Db,
  appId: AppId,
  now: Date,
): Promise<{ last_24_hours: EmailRates; last_7_days: EmailRates; last_30_days: EmailRates }> {
  const lately = async (days: number): Promise<EmailRates> => {
    const window = { from: new Date(now.getTime() - days * DAY_MS), until: new Date(now.getTime() + 1) }
    const totals = await sumOfApp(db, appId, coverWindow(window))
    return {
      ...totals,
      bounce_rate: share(totals.bounced, totals.sent),
      complaint_rate: share(totals.complained, totals.delivered),
    }
  }
  return { last_24_hours: await lately(1), last_7_days: await lately(7), last_30_days: await lately(30) }
}

const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0)
