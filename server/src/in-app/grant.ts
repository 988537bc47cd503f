import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { type InAppGrant, upsertGrants } from './store.ts'

/**
 * Lets users see a message whose audience is `granted`, each until a time or for as long as it is live. Inside the caller's
 * transaction; users and messages that are not there are passed over, and a longer grant stays.
 */
export async function grantInAppMessages(db: Db, appId: AppId, grants: readonly InAppGrant[]): Promise<void> {
  if (grants.length > 0) await upsertGrants(db, appId, grants)
}
