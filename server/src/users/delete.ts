import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { userNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { UserRef } from './aliases/identity.ts'
import type { ChangeUsers } from './change.ts'

/**
 * Deletes everything of the user and frees its aliases. Only an entry in the audit log remains, without personal data.
 */
export function deleteUser(change: ChangeUsers, appId: AppId, ref: UserRef, by: RequestOrigin) {
  return change(appId, {
    refs: [ref],
    needs: { subscriptions: true },
    apply(state) {
      const user = state.find(ref)
      if (!user) throw userNotFound()
      state.removeUser(user)
      state.note({ actor: actorOf(by), action: 'user.delete', targetType: 'user', targetId: user.id })
      return { identity: { onesignal_id: user.id } }
    },
  })
}
