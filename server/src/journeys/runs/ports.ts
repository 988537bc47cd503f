// The ports that messages declare and journeys implement: messages come before journeys and cannot import them.

import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { ReadRunData } from '../../messages/engine/types.ts'
import type { RecordRunActions } from '../../messages/feedback/run-actions.ts'
import { createQueue } from '../../queue/enqueue.ts'
import type { Db } from '../../storage/db.ts'
import { recordFeedEntries } from '../../users/change-feed/change-feed.ts'
import { readRunData } from './run-data.ts'

/** Tells journeys of it in the caller's transaction. */
export function createRecordRunActions(parts: { clock: Clock; newId: NewId }): RecordRunActions {
  const queue = createQueue(parts)
  return async (db, appId, actions) => {
    const news = actions.map(({ userId, runId }) => ({ userId, runId, kind: 'action' as const }))
    await queue.enqueue(db, await recordFeedEntries(db, appId, news, parts.clock.now()))
  }
}

export const createReadRunData =
  (db: Db): ReadRunData =>
  (appId, runIds) =>
    readRunData(db, appId, runIds)
