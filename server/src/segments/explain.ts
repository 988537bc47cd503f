// Explains, clause by clause, why a user is or is not in a segment.

import { userNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { readUserRef } from '../users/aliases/identity.ts'
import type { User } from '../users/user.ts'
import type { SegmentsContext } from './context.ts'
import { evaluateClauses, type FilterSubject, matchesFilter } from './filters/evaluate.ts'
import { clausesOf, type FilterNode } from './filters/tree.ts'
import { daysBefore } from './filters/values.ts'
import type { ExplainSegmentAnswer } from './schema.ts'
import { countEvents, sumPurchases } from './store.ts'

export async function explainSegment(
  ctx: SegmentsContext,
  appId: AppId,
  node: FilterNode,
  aliasLabel: string,
  aliasId: string,
): Promise<ExplainSegmentAnswer> {
  const user = await ctx.reader.user(appId, readUserRef(aliasLabel, aliasId))
  if (!user) throw userNotFound()
  const subscriptions = await explainSubscriptions(ctx, appId, user, node)
  return { onesignal_id: user.id, matches: subscriptions.some((it) => it.matches), subscriptions }
}

/** Evaluates each subscription of a user separately, as of now. */
export async function explainSubscriptions(
  ctx: SegmentsContext,
  appId: AppId,
  user: User,
  node: FilterNode,
): Promise<ExplainSegmentAnswer['subscriptions']> {
  const now = ctx.now()
  const facts = await loadFacts(ctx, appId, user, node, now)
  return [...user.subscriptions.values()].map((subscription) => {
    const subject: FilterSubject = { user, subscription, ...facts }
    return {
      id: subscription.id,
      type: subscription.typeSpelling,
      matches: matchesFilter(node, subject, now),
      clauses: evaluateClauses(node, subject, now).map(({ clause, matches, value: seen }) => ({
        entry: clause.entry,
        filter: clause.filter,
        matches,
        value: seen,
      })),
    }
  })
}

/** Loads what the clauses need beyond what the user record contains. */
async function loadFacts({ db }: SegmentsContext, appId: AppId, { id }: User, node: FilterNode, now: Date) {
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
