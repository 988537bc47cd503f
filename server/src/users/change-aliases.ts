import { aliasNotFound, invalid, subscriptionNotFound, userNotFound } from '../lib/errors.ts'
import type { AppId, SubscriptionId } from '../lib/ids.ts'
import { assignAliases, refuseOtherId } from './assign-aliases.ts'
import type { Change } from './change.ts'
import { identityObject, ONESIGNAL_ID, readIdentity, type UserRef } from './identity.ts'
import type { Neighbourhood, Ref, User } from './neighbourhood.ts'
import { refuseStranger } from './owner.ts'

type Target = UserRef | { subscriptionId: SubscriptionId }

function findTarget(state: Neighbourhood, target: Target): User {
  const user =
    'subscriptionId' in target
      ? state.users.get(state.subscriptions.get(target.subscriptionId)?.userId ?? '')
      : state.find(target)
  if (!user) throw 'subscriptionId' in target ? subscriptionNotFound() : userNotFound()
  return user
}

const identityAnswer = (user: User) => ({ identity: identityObject(user.id, user.aliases) })

/** Create or update aliases: nothing but the identity changes, and no user is created. */
export function updateAliases(
  change: Change,
  appId: AppId,
  target: Target,
  identity: Record<string, string>,
  provenExternalId?: string,
) {
  if (Object.keys(identity).length === 0) throw invalid('identity must hold at least one alias')
  const { aliases, onesignalId } = readIdentity(identity)
  return change(appId, {
    refs: [target, ...aliases] as Ref[],
    needs: { subscriptions: 'subscriptionId' in target },
    apply(state) {
      const user = findTarget(state, target)
      refuseStranger(user, provenExternalId)
      refuseOtherId(user, onesignalId)
      assignAliases(state, user, aliases)
      return identityAnswer(user)
    },
  })
}

export function removeAlias(change: Change, appId: AppId, ref: UserRef, label: string, provenExternalId?: string) {
  if (label === ONESIGNAL_ID) throw invalid(`${ONESIGNAL_ID} cannot be removed`)
  return change(appId, {
    refs: [ref],
    apply(state) {
      const user = findTarget(state, ref)
      refuseStranger(user, provenExternalId)
      if (!user.aliases.has(label)) throw aliasNotFound()
      state.removeAlias(user, label)
      return identityAnswer(user)
    },
  })
}
