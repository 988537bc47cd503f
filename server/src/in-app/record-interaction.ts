// Records what devices report: impressions, clicks and page changes. Concurrent reports of an app are merged into one
// statement.

import type { Authority } from '../lib/authority.ts'
import { subscriptionNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { UserReader } from '../users/read.ts'
import { checkDeviceOwner } from './check-owner.ts'
import { type Interaction, insertInteractions } from './interaction-store.ts'
import { inAppMessageNotFound } from './message.ts'

export type RecordInteraction = (appId: AppId, interaction: Interaction) => Promise<void>

export const createRecordInteraction = ({ db, merger }: { db: Db; merger: Merger }): RecordInteraction =>
  merger.merged({
    name: 'in-app.count',
    run: async (appId, interactions: Interaction[]) =>
      (await insertInteractions(db, appId, interactions)).map(({ lacks }) => {
        if (lacks === null) return { value: undefined }
        return { error: lacks === 'message' ? inAppMessageNotFound() : subscriptionNotFound() }
      }),
  })

export async function recordDeviceInteraction(
  { users, recordInteraction }: { users: UserReader; recordInteraction: RecordInteraction },
  appId: AppId,
  interaction: Interaction,
  authority: Authority,
): Promise<void> {
  await checkDeviceOwner(users, appId, interaction.subscriptionId, authority)
  await recordInteraction(appId, interaction)
}
