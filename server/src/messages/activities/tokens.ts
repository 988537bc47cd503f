// Devices report the tokens by which a live activity can be started on them, and by which a running one is updated.

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

/**
 * When thousands of people watch the same event, their activities start at the same moment, so concurrent registrations
 * are written together.
 */
export function createRegisterToken({ db, clock, merger }: { db: Db; clock: Clock; merger: Merger }): RegisterToken {
  return merger.merged<ActivityToken, void>({
    name: 'activities.register',
    run: (appId, tokens) =>
      db.transaction(async (db): Promise<MergeOutcome<void>[]> => {
        // If a token is registered several times at once, the last registration wins.
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

/** Succeeds also when there is no such token. */
export async function removeToken(ctx: TokensContext, appId: AppId, key: ActivityTokenKey, authority: Authority) {
  await checkOwner(ctx, appId, key, authority)
  await deleteToken(ctx.db, appId, key)
}

/** In apps that verify identities, a device may act only for its own user. */
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
/** A running activity ends after 12 hours. A device reports its start tokens each time the app is launched. */
const KEPT_MS = { update: 2 * DAY_MS, start: 400 * DAY_MS }
const TOKENS_AT_ONCE = 10_000

export async function deleteExpiredActivityTokens(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db))
    for (const purpose of ['start', 'update'] as const) {
      const before = new Date(now.getTime() - KEPT_MS[purpose])
      while ((await deleteTokensBefore(db, id, purpose, before, TOKENS_AT_ONCE)) === TOKENS_AT_ONCE);
    }
}
