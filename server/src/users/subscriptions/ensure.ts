// Finds subscriptions by their tokens, and creates the missing ones, each with a user of its own. For messages to
// addresses that nobody has registered.

import type { AppId, NewId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { ChangeUsers } from '../change.ts'
import { newUser } from '../new-user.ts'
import { findByTokens } from './store.ts'
import { hashToken, newSubscription, type SubscriptionType } from './subscription.ts'

/** A command loads and locks everything it names; this many at once keep a transaction short. */
const AT_ONCE = 500

export type EnsureContext = { db: Db; change: ChangeUsers; newId: NewId }

/** Returns the ids in the order of the tokens, which must be well-formed and distinct. */
export async function ensureSubscriptions(
  { db, change, newId }: EnsureContext,
  appId: AppId,
  type: SubscriptionType,
  tokens: readonly string[],
): Promise<SubscriptionId[]> {
  const hashes = tokens.map((token) => hashToken(type, token))
  const ids = await findByTokens(db, appId, type, hashes)
  const unknown = tokens
    .map((token, i) => ({ token, tokenHash: hashes[i] as string }))
    .filter(({ tokenHash }) => !ids.has(tokenHash))
  for (let at = 0; at < unknown.length; at += AT_ONCE) {
    const some = unknown.slice(at, at + AT_ONCE)
    const made = await change(appId, {
      refs: some.map(({ tokenHash }) => ({ type, tokenHash })),
      needs: { subscriptions: true },
      apply: (state, now) =>
        some.map(({ token, tokenHash }) => {
          const known = state.findByToken(type, tokenHash)
          if (known) return known.id
          const user = newUser(newId(), now)
          state.addUser(user)
          const it = newSubscription(newId(), user.id, { type, spelling: type, token, tokenHash }, now, {})
          state.putSubscription(it)
          return it.id
        }),
    })
    for (const [i, { tokenHash }] of some.entries()) ids.set(tokenHash, made[i] as SubscriptionId)
  }
  return hashes.map((hash) => ids.get(hash) as SubscriptionId)
}
