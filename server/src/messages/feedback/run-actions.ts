// What people do with messages decides how their runs go on. Whoever leads them is told in the transaction that notes it.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { NO_RUN, type RunId } from '../message.ts'

/** Something that was sent to the user in this run was received, opened or clicked, for the first time. */
export type RunAction = { userId: UserId; runId: RunId }

/** Each run at most once in a call, in the order of their ids. */
export type RecordRunActions = (db: Db, appId: AppId, actions: readonly RunAction[]) => Promise<void>

/** Of these deliveries, those that are in a run. */
export async function reportRunActions(
  recordRunActions: RecordRunActions | undefined,
  db: Db,
  appId: AppId,
  deliveries: Iterable<RunAction>,
): Promise<void> {
  if (!recordRunActions) return
  const actions = new Map<RunId, RunAction>()
  for (const { userId, runId } of deliveries) if (runId !== NO_RUN) actions.set(runId, { userId, runId })
  if (actions.size === 0) return
  await recordRunActions(
    db,
    appId,
    [...actions.values()].sort((a, b) => (a.runId < b.runId ? -1 : 1)),
  )
}
