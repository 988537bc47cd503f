import { findAllApps } from '../apps/store.ts'
import type { Db } from '../storage/db.ts'
import type { Export } from './export.ts'
import { TIME_LIMIT_MS } from './make.ts'
import { deleteChunks, deleteExport, failAbandoned, findOldExports } from './store.ts'

/** The period in which a file can be downloaded. */
export const RETENTION_MS = 3 * 86_400_000
const CHUNKS_AT_ONCE = 100

const before = (now: Date, ms: number) => new Date(now.getTime() - ms)

export const isExpired = ({ endedAt }: Pick<Export, 'endedAt'>, now: Date) =>
  endedAt !== null && endedAt <= before(now, RETENTION_MS)

/**
 * Deletes files of all apps that can no longer be downloaded. This only frees space, because downloading checks the
 * expiry itself.
 */
export async function deleteExpiredExports(db: Db, now: Date): Promise<void> {
  for (const { id: appId } of await findAllApps(db)) {
    await failAbandoned(db, appId, before(now, 2 * TIME_LIMIT_MS), now)
    for (const { id } of await findOldExports(db, appId, before(now, RETENTION_MS))) {
      while ((await deleteChunks(db, appId, id, CHUNKS_AT_ONCE)) === CHUNKS_AT_ONCE);
      await deleteExport(db, appId, id)
    }
  }
}
