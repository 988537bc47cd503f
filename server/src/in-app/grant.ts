import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { type InAppGrant, upsertGrants } from './store.ts'

/**
 * Grants users a message whose audience is `granted`, each until a time or for as long as the message is live. Runs in
 * the caller's transaction. Users and messages that do not exist are skipped, and a longer existing grant is kept.
 */
export async function grantInAppMessages(db: Db, appId: AppId, grants: readonly InAppGrant[]): Promise<void> {
  if (grants.length > 0) await upsertGrants(db, appId, grants)
}
