// Would a message's audience hold this user's subscriptions, were it read now? Who got a message was decided when it was
// expanded; people and segments may have changed since.

import { AppError } from '../lib/errors.ts'
import type { AppId, SubscriptionId } from '../lib/ids.ts'
import { findTokens } from '../messages/activities/store.ts'
import type { Audience, Message } from '../messages/message.ts'
import type { SegmentsContext } from '../segments/context.ts'
import { judgeSubscriptions } from '../segments/explain.ts'
import { getSegment, treeOf } from '../segments/read.ts'
import type { Segment } from '../segments/segment.ts'
import type { Node } from '../segments/tree.ts'
import { ONESIGNAL_ID } from '../users/identity.ts'
import type { User } from '../users/neighbourhood.ts'

export type Judged = {
  /** The subscriptions that it holds now. */
  matching: Set<SubscriptionId>
  /** Segments that the message names and that were deleted since. */
  goneSegments: string[]
}

export async function judgeAudience(
  ctx: SegmentsContext,
  appId: AppId,
  { audience }: Pick<Message, 'audience'>,
  user: User,
): Promise<Judged> {
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
    // Who is added has their deliveries at once: nobody else is meant.
    case 'recipients':
      return { matching: new Set(), goneSegments: [] }
    default: {
      const { tree, goneSegments } = await readTree(ctx, appId, audience)
      const judged = await judgeSubscriptions(ctx, appId, user, tree)
      return { matching: new Set(judged.filter((it) => it.matches).map(({ id }) => id)), goneSegments }
    }
  }
}

const isNamed = (aliases: Record<string, string[]>, { id, aliases: own }: User) =>
  Object.entries(aliases).some(([label, values]) => {
    const value = label === ONESIGNAL_ID ? id : own.get(label)
    return value !== undefined && values.includes(value)
  })

type Named = { id: string; name: string }

async function readTree(
  ctx: SegmentsContext,
  appId: AppId,
  audience: Extract<Audience, { kind: 'segments' | 'filters' }>,
): Promise<{ tree: Node; goneSegments: string[] }> {
  const goneSegments: string[] = []
  const treesOf = async (named: Named[]): Promise<Node[]> => {
    const found = await Promise.all(named.map((it) => findSegment(ctx, appId, it)))
    goneSegments.push(...named.filter((_, n) => !found[n]).map(({ name }) => name))
    return found.filter((it) => it !== undefined).map(treeOf)
  }
  const excluded: Node = { kind: 'none', of: await treesOf(audience.excluded) }
  const included: Node =
    audience.kind === 'filters' ? treeOf(audience) : { kind: 'any', of: await treesOf(audience.included) }
  return { tree: { kind: 'all', of: [included, excluded] }, goneSegments }
}

async function findSegment(ctx: SegmentsContext, appId: AppId, { id }: Named): Promise<Segment | undefined> {
  try {
    return await getSegment(ctx, appId, id)
  } catch (error) {
    if (error instanceof AppError && error.kind === 'not-found') return undefined
    throw error
  }
}
