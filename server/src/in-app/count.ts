// What devices report: shown, clicked, turned to a page. Reports of one app that come together are one statement.

import type { Authority } from '../lib/authority.ts'
import { subscriptionNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { UserReader } from '../users/read.ts'
import { countReports, type Report } from './count-store.ts'
import { inAppMessageNotFound } from './message.ts'
import { refuseStrangers } from './stranger.ts'

export type CountReport = (appId: AppId, report: Report) => Promise<void>

export const createCountReport = ({ db, merger }: { db: Db; merger: Merger }): CountReport =>
  merger.merged({
    name: 'in-app.count',
    run: async (appId, reports: Report[]) =>
      (await countReports(db, appId, reports)).map(({ lacks }) => {
        if (lacks === null) return { value: undefined }
        return { error: lacks === 'message' ? inAppMessageNotFound() : subscriptionNotFound() }
      }),
  })

export async function report(
  { users, countReport }: { users: UserReader; countReport: CountReport },
  appId: AppId,
  given: Report,
  authority: Authority,
): Promise<void> {
  await refuseStrangers(users, appId, given.subscriptionId, authority)
  await countReport(appId, given)
}
