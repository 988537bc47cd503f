// Lists the members of an audience, page by page.

import type { SubscriptionId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { type AudienceMember, countAudience, findInRange, findRangeEnd } from './audience.ts'
import type { SegmentsContext } from './context.ts'
import type { AudienceScope } from './filters/compile.ts'
import type { FilterNode } from './filters/tree.ts'
import { type CountRequest, runCounting } from './read.ts'
import type { MembersAnswer } from './schema.ts'

/**
 * The number of subscriptions that a page reads per range: it starts at `first` and doubles, up to `largest`, while few
 * of them match. A page ends after `most` ranges, even when it is empty, so that it always answers soon; its cursor
 * says where to continue.
 */
const RANGE_SIZES = { first: 10_000, largest: 160_000, most: 8 }

type MembersPage = { limit: number; cursor: SubscriptionId | undefined }

export const findMembers = (
  ctx: Pick<SegmentsContext, 'db' | 'counting' | 'now'>,
  caller: CountRequest,
  node: FilterNode,
  page: MembersPage,
  ranges = RANGE_SIZES,
): Promise<MembersAnswer> =>
  runCounting(ctx, caller, (db) => findPage(db, node, { appId: caller.appId, now: ctx.now() }, page, ranges))

/** Counts and lists within one turn, so that a caller who was admitted to count does not wait again for the members. */
export const previewAudience = (
  ctx: Pick<SegmentsContext, 'db' | 'counting' | 'now'>,
  caller: CountRequest,
  node: FilterNode,
  page: MembersPage,
): Promise<MembersAnswer & { subscriber_count: number }> =>
  runCounting(ctx, caller, async (db) => {
    const scope = { appId: caller.appId, now: ctx.now() }
    const subscriber_count = await countAudience(db, node, scope)
    return { subscriber_count, ...(await findPage(db, node, scope, page, RANGE_SIZES)) }
  })

async function findPage(
  db: Db,
  node: FilterNode,
  scope: AudienceScope,
  { limit, cursor }: MembersPage,
  ranges: typeof RANGE_SIZES,
): Promise<MembersAnswer> {
  const found: AudienceMember[] = []
  let after = cursor
  let size = ranges.first
  for (let i = 0; i < ranges.most; i++) {
    const upTo = await findRangeEnd(db, scope, after, size)
    const wanted = limit - found.length
    const some = await findInRange(db, node, scope, { after, upTo }, wanted + 1)
    found.push(...some.slice(0, wanted))
    if (some.length > wanted) return membersAnswer(found, found.at(-1)?.id)
    if (upTo === undefined) return membersAnswer(found, undefined)
    after = upTo
    if (found.length === limit) break
    size = Math.min(size * 2, ranges.largest)
  }
  return membersAnswer(found, after)
}

const membersAnswer = (members: AudienceMember[], next: SubscriptionId | undefined): MembersAnswer => ({
  members: members.map(({ id, userId }) => ({ subscription_id: id, onesignal_id: userId })),
  ...(next !== undefined && { next_cursor: next }),
})
