// Brings watches and sweeps up to date when a journey changes, in the transaction that changes it.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sweepJob } from '../jobs.ts'
import type { Journey, JourneyState } from '../journey.ts'
import type { EntryContext } from './context.ts'
import { refreshWatches } from './refresh-watches.ts'

/** By then every transaction is over that began before users were watched and so recorded no changes. */
const SETTLED_MS = 60_000
/** Fields that decide who enters and who leaves. */
const RULES = ['audience', 'early_exit', 'nodes']

const isLive = (state: JourneyState) => state === 'processing' || state === 'active'

/** `fields`: the ones an author changed. */
export async function refreshTriggers(
  ctx: Pick<EntryContext, 'queue' | 'now'>,
  db: Db,
  appId: AppId,
  before: JourneyState,
  { id, state }: Pick<Journey, 'id' | 'state'>,
  fields: readonly string[] = [],
): Promise<void> {
  if (isLive(before) || isLive(state)) await refreshWatches(db, appId)
  if (state !== 'active') return
  const now = ctx.now()
  if (before !== 'active') await ctx.queue.enqueue(db, [sweepJob(appId, id, new Date(now.getTime() + SETTLED_MS))])
  else if (fields.some((field) => RULES.includes(field))) await ctx.queue.enqueue(db, [sweepJob(appId, id, now, true)])
}
