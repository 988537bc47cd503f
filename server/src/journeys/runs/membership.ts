// Memberships of users in segments. A user is in a segment when any of their subscriptions is.

import type { AppId, UserId } from '../../lib/ids.ts'
import { matchUsers } from '../../segments/audience.ts'
import { clausesOf, type FilterNode } from '../../segments/filters/tree.ts'
import { filterTreeOf, getSegmentsById } from '../../segments/read.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneyAudience } from '../journey.ts'
import type { CompiledJourney } from './compile-journey.ts'

/**
 * Users in one of the included segments and in none of the excluded ones. Without included ones it means all other users; an audience
 * always has some.
 */
export type SegmentDemand = { included: readonly SegmentId[]; excluded: readonly SegmentId[] }

/** The most filters that fit into one statement. */
const MAX_CLAUSES = 2_000

/**
 * For each user whether they meet each demand. A deleted segment has no members; where one is excluded nobody meets the demand,
 * because who was in it is unknown. A user without subscriptions meets no demand.
 */
export async function findMembership(
  db: Db,
  appId: AppId,
  demands: readonly SegmentDemand[],
  userIds: readonly UserId[],
  now: Date,
): Promise<Map<UserId, boolean[]>> {
  const none = demands.map(() => false)
  const answers = new Map(userIds.map((userId) => [userId, none]))
  if (demands.length === 0 || userIds.length === 0) return answers
  const ids = [...new Set(demands.flatMap(({ included, excluded }) => [...included, ...excluded]))]
  const trees = [...(await getSegmentsById({ db }, appId, ids))].map(([id, segment]) => ({
    id,
    tree: filterTreeOf(segment),
  }))
  const known = new Set(trees.map(({ id }) => id))
  for (const [userId, isIn] of await findSegmentsOf(db, appId, trees, userIds, now))
    answers.set(
      userId,
      demands.map(
        ({ included, excluded }) =>
          (included.length === 0 || included.some((id) => isIn.has(id))) &&
          excluded.every((id) => known.has(id) && !isIn.has(id)),
      ),
    )
  return answers
}

type Tree = { id: SegmentId; tree: FilterNode }

/** Only for users who have subscriptions. */
async function findSegmentsOf(db: Db, appId: AppId, trees: readonly Tree[], userIds: readonly UserId[], now: Date) {
  const found = new Map<UserId, Set<SegmentId>>()
  for (const some of splitIntoStatements(trees)) {
    const nodes = some.map(({ tree }) => tree)
    for (const { userId, matches: holds } of await matchUsers(db, nodes, { appId, now }, userIds)) {
      const isIn = found.get(userId) ?? new Set()
      found.set(userId, isIn)
      for (const [n, { id }] of some.entries()) if (holds[n]) isIn.add(id)
    }
  }
  return found
}

/** Splits trees into lists that fit into one statement each; almost always there is one list. */
export function splitIntoStatements<T extends { tree: FilterNode }>(trees: readonly T[]): T[][] {
  const lists: T[][] = [[]]
  let size = 0
  for (const it of trees) {
    const clauses = [...clausesOf(it.tree)].length
    if (size > 0 && size + clauses > MAX_CLAUSES) {
      lists.push([])
      size = 0
    }
    lists.at(-1)?.push(it)
    size += clauses
  }
  return lists
}

export const audienceDemand = (audience: Extract<JourneyAudience, { kind: 'segment' }>): SegmentDemand => ({
  included: audience.included_segment_ids,
  excluded: audience.excluded_segment_ids,
})

/** The rules of early exit that look at segments. A run leaves when its user meets the demand, or when they do not. */
export function exitDemands({ exit, audience }: CompiledJourney): { demand: SegmentDemand; exitsWhen: boolean }[] {
  const rules: { demand: SegmentDemand; exitsWhen: boolean }[] = []
  if (exit && exit.segmentIds.length > 0)
    rules.push({ demand: { included: exit.segmentIds, excluded: [] }, exitsWhen: true })
  if (exit?.whenNotInAudience && audience.kind === 'segment')
    rules.push({ demand: audienceDemand(audience), exitsWhen: false })
  return rules
}
