// Devices tell by which token a live activity is started on them, and by which one that is running there is updated.

import { findAllApps } from '../../apps/store.ts'
import type { Authority } from '../../lib/authority.ts'
import type { Clock } from '../../lib/clock.ts'
import { invalid, subscriptionNotFound } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { MergeOutcome, Merger } from '../../storage/merge.ts'
import { refuseForeignDevice } from '../../users/devices/authorize.ts'
import type { UserReader } from '../../users/read.ts'
import {
  type ActivityToken,
  type ActivityTokenKey,
  deleteToken,
  deleteTokens,
  deleteTokensBefore,
  findSurplusTokens,
  upsertTokens,
} from './store.ts'

export type RegisterToken = (appId: AppId, token: ActivityToken) => Promise<void>

type TokensContext = { db: Db; reader: UserReader; register: RegisterToken }

/** Far more than a device shows at once. */
const MAX_TOKENS = 50

/** An event that thousands watch begins for all of them at once: what comes together is written together. */
export function createRegisterToken({ db, clock, merger }: { db: Db; clock: Clock; merger: Merger }): RegisterToken {
  return merger.merged<ActivityToken, void>({
    name: 'activities.register',
    run: (appId, tokens) =>
      db.transaction(async (db): Promise<MergeOutcome<void>[]> => {
        // The last word about one place counts.
        const latest = new Map(tokens.map((it) => [`${it.purpose} ${it.subscriptionId} ${it.name}`, it]))
        const known = await upsertTokens(db, appId, [...latest.values()], clock.now())
        const surplus = known.size > 0 ? await findSurplusTokens(db, appId, [...known], MAX_TOKENS) : []
        if (surplus.length > 0) await deleteTokens(db, appId, surplus)
        return tokens.map(({ subscriptionId }) =>
          known.has(subscriptionId) ? { value: undefined } : { error: subscriptionNotFound() },
        )
      }),
  })
}

export const tokenRequired = () => invalid('activity_token is required')

export async function registerToken(ctx: TokensContext, appId: AppId, token: ActivityToken, authority: Authority) {
  await checkOwner(ctx, appId, token, authority)
  await ctx.register(appId, token)
}

/** Also when there is none. */
export async function removeToken(ctx: TokensContext, appId: AppId, key: ActivityTokenKey, authority: Authority) {
  await checkOwner(ctx, appId, key, authority)
  await deleteToken(ctx.db, appId, key)
}

/** Where identity is verified, a device speaks for its own user alone. */
export async function checkOwner(
  { reader }: Pick<TokensContext, 'reader'>,
  appId: AppId,
  { subscriptionId }: Pick<ActivityTokenKey, 'subscriptionId'>,
  authority: Authority,
) {
  const owner = await reader.identity(appId, { subscriptionId })
  if (!owner) throw subscriptionNotFound()
  refuseForeignDevice({ aliases: new Map(Object.entries(owner.aliases ?? {})) }, authority)
}

const DAY_MS = 86_400_000
/** An activity is over after 12 hours; a device tells its kinds with each start of the app. */
const KEPT_MS = { update: 2 * DAY_MS, start: 400 * DAY_MS }
const TOKENS_AT_ONCE = 10_000

export async function deleteExpiredActivityTokens(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db))
    for (const purpose of ['start', 'update'] as const) {
      const before = new Date(now.getTime() - KEPT_MS[purpose])
      while ((await deleteTokensBefore(db, id, purpose, before, TOKENS_AT_ONCE)) === TOKENS_AT_ONCE);
    }
}
