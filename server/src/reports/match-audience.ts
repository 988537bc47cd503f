// Whether a message's audience would contain this user's subscriptions if it were expanded now. The actual recipients
// were decided when it was expanded; users may have changed since.

import type { AppId, SubscriptionId } from '../lib/ids.ts'
import { findTokens } from '../messages/activities/store.ts'
import { readSegmentTrees } from '../messages/frozen-segments.ts'
import type { Audience, Message, NamedSegment } from '../messages/message.ts'
import type { SegmentsContext } from '../segments/context.ts'
import { explainSubscriptions } from '../segments/explain.ts'
import type { FilterNode } from '../segments/filters/tree.ts'
import { filterTreeOf } from '../segments/read.ts'
import { ONESIGNAL_ID } from '../users/aliases/identity.ts'
import type { User } from '../users/user.ts'

export type AudienceMatch = {
  /** The subscriptions that match now. */
  matching: Set<SubscriptionId>
  /** Segments that were deleted since. Concerns messages that were accepted before segments were stored with them. */
  goneSegments: string[]
}

export async function matchAudience(
  ctx: SegmentsContext,
  appId: AppId,
  { audience }: Pick<Message, 'audience'>,
  user: User,
): Promise<AudienceMatch> {
  const all = [...user.subscriptions.keys()]
  switch (audience.kind) {
    case 'subscriptions':
      return { matching: new Set(all.filter((id) => audience.ids.includes(id))), goneSegments: [] }
    case 'activity': {
      const holding = await findTokens(ctx.db, appId, { purpose: 'update', name: audience.activityId }, all)
      return { matching: new Set(holding.keys()), goneSegments: [] }
    }
    case 'aliases':
      return { matching: new Set(isNamed(audience.aliases, user) ? all : []), goneSegments: [] }
    // Adding recipients creates their deliveries at once, so nobody else is meant.
    case 'recipients':
      return { matching: new Set(), goneSegments: [] }
    default: {
      const { tree, goneSegments } = await readAudienceTree(ctx, appId, audience)
      const judged = await explainSubscriptions(ctx, appId, user, tree)
      return { matching: new Set(judged.filter((it) => it.matches).map(({ id }) => id)), goneSegments }
    }
  }
}

const isNamed = (aliases: Record<string, string[]>, { id, aliases: own }: User) =>
  Object.entries(aliases).some(([label, values]) => {
    const value = label === ONESIGNAL_ID ? id : own.get(label)
    return value !== undefined && values.includes(value)
  })

async function readAudienceTree(
  { db }: Pick<SegmentsContext, 'db'>,
  appId: AppId,
  audience: Extract<Audience, { kind: 'segments' | 'filters' }>,
): Promise<{ tree: FilterNode; goneSegments: string[] }> {
  const goneSegments: string[] = []
  const treesOf = async (named: NamedSegment[]): Promise<FilterNode[]> => {
    const found = await readSegmentTrees(db, appId, named)
    goneSegments.push(...named.filter((_, n) => !found[n]).map(({ name }) => name))
    return found.filter((it) => it !== undefined)
  }
  const excluded: FilterNode = { kind: 'none', of: await treesOf(audience.excluded) }
  const included: FilterNode =
    audience.kind === 'filters' ? filterTreeOf(audience) : { kind: 'any', of: await treesOf(audience.included) }
  return { tree: { kind: 'all', of: [included, excluded] }, goneSegments }
}
