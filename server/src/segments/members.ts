// Who is in an audience, page by page.

import type { AppId, SubscriptionId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { endOfRange, findInRange, type Member } from './audience.ts'
import type { Scope } from './compile.ts'
import type { SegmentsContext } from './context.ts'
import { counted } from './read.ts'
import type { MembersAnswer } from './schema.ts'
import type { Node } from './tree.ts'

/**
 * Subscriptions that a page looks at: `first`, and while few are found twice as many, up to `largest`. After `most` ranges a
 * page ends, even empty, so that it always comes soon; its cursor says where to go on.
 */
const RANGES = { first: 10_000, largest: 160_000, most: 8 }

export const findMembers = (
  ctx: Pick<SegmentsContext, 'db' | 'countingDb' | 'now'>,
  appId: AppId,
  node: Node,
  limit: number,
  cursor: SubscriptionId | undefined,
  ranges = RANGES,
): Promise<MembersAnswer> => counted(ctx, (db) => findPage(db, node, { appId, now: ctx.now() }, limit, cursor, ranges))

async function findPage(
  db: Db,
  node: Node,
  scope: Scope,
  limit: number,
  cursor: SubscriptionId | undefined,
  ranges: typeof RANGES,
): Promise<MembersAnswer> {
  const found: Member[] = []
  let after = cursor
  let size = ranges.first
  for (let i = 0; i < ranges.most; i++) {
    const upTo = await endOfRange(db, scope, after, size)
    const wanted = limit - found.length
    const some = await findInRange(db, node, scope, { after, upTo }, wanted + 1)
    found.push(...some.slice(0, wanted))
    if (some.length > wanted) return pageOf(found, found.at(-1)?.id)
    if (upTo === undefined) return pageOf(found, undefined)
    after = upTo
    if (found.length === limit) break
    size = Math.min(size * 2, ranges.largest)
  }
  return pageOf(found, after)
}

const pageOf = (members: Member[], next: SubscriptionId | undefined): MembersAnswer => ({
  members: members.map(({ id, userId }) => ({ subscription_id: id, onesignal_id: userId })),
  ...(next !== undefined && { next_cursor: next }),
})
