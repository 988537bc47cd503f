// What recipients do decides how their runs continue. Journeys are informed in the transaction that records it.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { NO_RUN, type RunId } from '../message.ts'

/** A message of this run was received, opened or clicked by the user for the first time. */
export type RunAction = { userId: UserId; runId: RunId }

/** Is passed each run at most once per call, in the order of their ids. */
export type RecordRunActions = (db: Db, appId: AppId, actions: readonly RunAction[]) => Promise<void>

/** Reports those of the deliveries that belong to a run. */
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
