// Views. Concurrent ones are one statement, on the primary: an acknowledged write is always seen.

import { subscriptionNotFound, userNotFound } from '../lib/errors.ts'
import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { identityObject } from './identity.ts'
import type { Ref, User } from './neighbourhood.ts'
import { refuseStranger } from './owner.ts'
import { propertiesObject } from './properties.ts'
import { findIdentities, findOwners, type IdentityRow, loadPointed } from './store.ts'
import { subscriptionObject } from './subscription.ts'

export type Reader = {
  identity(appId: AppId, ref: Ref): Promise<IdentityRow | undefined>
  user(appId: AppId, ref: Ref): Promise<User | undefined>
  owner(appId: AppId, ref: Ref): Promise<UserId | undefined>
}

export function createReader({ db, merger }: { db: Db; merger: Merger }): Reader {
  return {
    identity: merger.merged({
      name: 'users.identity',
      parallel: 2,
      run: async (appId, refs: Ref[]) => (await findIdentities(db, appId, refs)).map(asValue),
    }),
    owner: merger.merged({
      name: 'users.owner',
      parallel: 2,
      run: async (appId, refs: Ref[]) => (await findOwners(db, appId, refs)).map(asValue),
    }),
    user: merger.merged({
      name: 'users.view',
      parallel: 2,
      run: async (appId, refs: Ref[]) =>
        (await loadPointed(db, appId, refs, { subscriptions: true, purchases: true })).map(asValue),
    }),
  }
}

const asValue = <Value>(value: Value) => ({ value })

export async function viewIdentity(reader: Reader, appId: AppId, ref: Ref, provenExternalId?: string) {
  const found = await reader.identity(appId, ref)
  if (!found) throw 'subscriptionId' in ref ? subscriptionNotFound() : userNotFound()
  const aliases = Object.entries(found.aliases ?? {})
  refuseStranger({ aliases: new Map(aliases) }, provenExternalId)
  return { identity: identityObject(found.userId, aliases) }
}

export async function viewUser(reader: Reader, appId: AppId, ref: Ref, provenExternalId?: string) {
  const user = await reader.user(appId, ref)
  if (!user) throw userNotFound()
  refuseStranger(user, provenExternalId)
  return {
    identity: identityObject(user.id, user.aliases),
    properties: propertiesObject(user.properties),
    subscriptions: [...user.subscriptions.values()].map((it) => subscriptionObject(appId, it)),
  }
}
