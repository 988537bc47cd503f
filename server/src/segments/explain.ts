// Is this user in that segment and, clause by clause, why or why not?

import { userNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { readUserRef } from '../users/aliases/identity.ts'
import type { User } from '../users/user.ts'
import type { SegmentsContext } from './context.ts'
import { findings, matches, type Subject } from './filters/evaluate.ts'
import { clausesOf, type Node } from './filters/tree.ts'
import { daysBefore } from './filters/values.ts'
import type { ExplainAnswer } from './schema.ts'
import { countEvents, sumPurchases } from './store.ts'

export async function explain(
  ctx: SegmentsContext,
  appId: AppId,
  node: Node,
  aliasLabel: string,
  aliasId: string,
): Promise<ExplainAnswer> {
  const user = await ctx.reader.user(appId, readUserRef(aliasLabel, aliasId))
  if (!user) throw userNotFound()
  const subscriptions = await judgeSubscriptions(ctx, appId, user, node)
  return { onesignal_id: user.id, matches: subscriptions.some((it) => it.matches), subscriptions }
}

/** Each subscription of a user by itself, as it would be judged now. */
export async function judgeSubscriptions(
  ctx: SegmentsContext,
  appId: AppId,
  user: User,
  node: Node,
): Promise<ExplainAnswer['subscriptions']> {
  const now = ctx.now()
  const facts = await gather(ctx, appId, user, node, now)
  return [...user.subscriptions.values()].map((subscription) => {
    const subject: Subject = { user, subscription, ...facts }
    return {
      id: subscription.id,
      type: subscription.typeSpelling,
      matches: matches(node, subject, now),
      clauses: findings(node, subject, now).map(({ clause, matches, seen }) => ({
        entry: clause.entry,
        filter: clause.filter,
        matches,
        value: seen,
      })),
    }
  })
}

/** What the clauses ask of the user that the user itself does not hold. */
async function gather({ db }: SegmentsContext, appId: AppId, { id }: User, node: Node, now: Date) {
  const clauses = [...clausesOf(node)]
  const skus = clauses.filter(({ field }) => field === 'bought_sku').map(({ key }) => key)
  const bought = skus.length === 0 ? [] : await sumPurchases(db, appId, id, skus)
  const questions = clauses.flatMap(({ key, test }) =>
    test.kind === 'happened' ? [{ name: key, days: test.days }] : [],
  )
  const asked = questions.map(({ name, days }) => ({ name, since: days === undefined ? null : daysBefore(now, days) }))
  const counts = questions.length === 0 ? [] : await countEvents(db, appId, id, asked, now)
  return {
    spentOn: (sku: string) => bought.find((it) => it.sku === sku)?.spent ?? null,
    countEvents: (name: string, days: number | undefined) =>
      counts[questions.findIndex((it) => it.name === name && it.days === days)] ?? 0,
  }
}
