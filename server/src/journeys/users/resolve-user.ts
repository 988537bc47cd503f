// Finds the user that a request names.

import { invalid, userNotFound } from '../../lib/errors.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { EXTERNAL_ID, ONESIGNAL_ID, readUserRef } from '../../users/aliases/identity.ts'
import { findOwners } from '../../users/reference-store.ts'

export type UserQuery = { external_id?: string; onesignal_id?: string }

export async function resolveUser(db: Db, appId: AppId, whom: UserQuery): Promise<UserId> {
  const [userId] = await findOwners(db, appId, [readUserQuery(whom)])
  if (userId === undefined) throw userNotFound()
  return userId
}

export function readUserQuery({ external_id: externalId, onesignal_id: id }: UserQuery) {
  if ((externalId === undefined) === (id === undefined))
    throw invalid('Name the user by one of external_id and onesignal_id')
  return id === undefined ? readUserRef(EXTERNAL_ID, externalId as string) : readUserRef(ONESIGNAL_ID, id)
}
