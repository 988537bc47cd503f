// Who is in an audience, page by page.

import type { AppId, SubscriptionId } from '../lib/ids.ts'
import { endOfRange, findInRange, type Member } from './audience.ts'
import type { SegmentsContext } from './context.ts'
import { withinTime } from './read.ts'
import type { MembersAnswer } from './schema.ts'
import type { Node } from './tree.ts'

/** Subscriptions looked at by a page; the next ranges are larger, because few were found in the ones before. */
const FIRST_RANGE = 10_000
const LARGEST_RANGE = 160_000
/** A page may end early, even empty, so that it always comes soon; its cursor says where to go on. */
const MOST_RANGES = 8

export async function findMembers(
  { countingDb: db, now }: SegmentsContext,
  appId: AppId,
  node: Node,
  limit: number,
  cursor: SubscriptionId | undefined,
): Promise<MembersAnswer> {
  const scope = { appId, now: now() }
  const found: Member[] = []
  let after = cursor
  let size = FIRST_RANGE
  for (let i = 0; i < MOST_RANGES; i++) {
    const upTo = await endOfRange(db, scope, after, size)
    const wanted = limit - found.length
    const some = await withinTime(findInRange(db, node, scope, { after, upTo }, wanted + 1))
    found.push(...some.slice(0, wanted))
    if (some.length > wanted) return pageOf(found, found.at(-1)?.id)
    if (upTo === undefined) return pageOf(found, undefined)
    after = upTo
    if (found.length === limit) break
    size = Math.min(size * 2, LARGEST_RANGE)
  }
  return pageOf(found, after)
}

const pageOf = (members: Member[], next: SubscriptionId | undefined): MembersAnswer => ({
  members: members.map(({ id, userId }) => ({ subscription_id: id, onesignal_id: userId })),
  ...(next !== undefined && { next_cursor: next }),
})
