// Whether people are in the segments that a journey asks about, at virtual moments. Users do not change in a dry run but for the
// tags that the journey itself sets; so they are asked about once, or once a day where a segment looks at the time.

import type { AppId, UserId } from '../../lib/ids.ts'
import { matchUsers } from '../../segments/audience.ts'
import { assumeTags } from '../../segments/filters/assume-tags.ts'
import { clausesOf, dependsOnTime, type FilterNode as Tree } from '../../segments/filters/tree.ts'
import { filterTreeOf, getSegmentsById } from '../../segments/read.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { Db } from '../../storage/db.ts'
import { hasLiquid } from '../../templates/render/source.ts'
import { conditionalBranchesOf } from '../nodes/kinds.ts'
import type { BranchId } from '../nodes/node.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import { audienceDemand, exitDemands, type SegmentDemand, splitIntoStatements } from '../runs/membership.ts'
import { DAY_MS } from './options.ts'
import type { SimulatedUser } from './simulated-user.ts'

export type SegmentAnswers = {
  /** The segments of the audience; undefined where nobody can be in it. */
  audience: { included: Tree; excluded: Tree | undefined } | undefined
  /** Whether one of the segments looks at the time. */
  isTimed: boolean
  /** Whether time alone can lead somebody to an early exit, or to what a branch waits for. */
  isExitTimed: boolean
  isBranchTimed(branchId: BranchId): boolean
  isKnown(person: SimulatedUser, day: number): boolean
  /** Finds out what the journey may ask about them on that day. */
  judge(people: readonly SimulatedUser[], day: number): Promise<void>
  mustExit(person: SimulatedUser): boolean
  isInAudience(person: SimulatedUser): boolean
  meets(person: SimulatedUser, branchId: BranchId): boolean
  /** Whoever was tagged is another one to segments that look at these tags. */
  tag(person: SimulatedUser, assignments: Record<string, string>): void
}

export async function createSegmentAnswers(
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  startAt: Date,
): Promise<SegmentAnswers> {
  const { audience } = journey
  const demands: SegmentDemand[] = []
  const exits = exitDemands(journey).map(({ demand, exitsWhen }) => ({ place: demands.push(demand) - 1, exitsWhen }))
  const entry = audience.kind === 'segment' ? demands.push(audienceDemand(audience)) - 1 : undefined
  const places = new Map<BranchId, number>()
  for (const { id, condition } of journey.nodes.flatMap(conditionalBranchesOf)) {
    if (condition.kind !== 'segment_membership') continue
    const { included_segment_ids: included, excluded_segment_ids: excluded } = condition
    places.set(id, demands.push({ included, excluded }) - 1)
  }
  const ids = [...new Set(demands.flatMap(({ included, excluded }) => [...included, ...excluded]))]
  const segments = ids.length > 0 ? await getSegmentsById({ db }, appId, ids) : new Map()
  const trees = new Map<SegmentId, Tree>([...segments].map(([id, segment]) => [id, filterTreeOf(segment)]))
  const timed = new Set([...trees].flatMap(([id, tree]) => (dependsOnTime(tree) ? id : [])))
  const isTimed = timed.size > 0
  const isTimedAt = (place: number | undefined) => {
    const { included, excluded } = demands[place ?? -1] ?? { included: [], excluded: [] }
    return [...included, ...excluded].some((id) => timed.has(id))
  }
  const watched = new Set(
    [...trees.values()].flatMap((tree) =>
      [...clausesOf(tree)].flatMap(({ field, key }) => (field === 'tag' ? key : [])),
    ),
  )

  const meetsDemand = ({ included, excluded }: SegmentDemand, isIn: ReadonlySet<SegmentId>) =>
    (included.length === 0 || included.some((id) => isIn.has(id))) &&
    excluded.every((id) => trees.has(id) && !isIn.has(id))
  const nameOf = ({ tags }: SimulatedUser, day: number) =>
    `${isTimed ? day : ''} ${tags.size > 0 ? JSON.stringify([...tags].sort()) : ''}`
  const holds = (person: SimulatedUser, place: number | undefined) =>
    place !== undefined && (person.holds[place] ?? false)

  async function judgeAlike(people: readonly SimulatedUser[], judgedAs: string, now: Date): Promise<void> {
    const { tags } = people[0] as SimulatedUser
    const list = [...trees].map(([id, tree]) => ({ id, tree: tags.size > 0 ? assumeTags(tree, tags, now) : tree }))
    const userIds = [...new Set(people.map(({ userId }) => userId))]
    const found = new Map<UserId, Set<SegmentId>>()
    for (const some of list.length > 0 ? splitIntoStatements(list) : []) {
      const nodes = some.map(({ tree }) => tree)
      for (const { userId, matches: holds } of await matchUsers(db, nodes, { appId, now }, userIds)) {
        const isIn = found.get(userId) ?? new Set()
        found.set(userId, isIn)
        for (const [n, { id }] of some.entries()) if (holds[n]) isIn.add(id)
      }
    }
    for (const person of people) {
      const isIn = found.get(person.userId)
      person.judgedAs = judgedAs
      // Who has no subscriptions is in no segment, and meets no demand.
      person.holds = demands.map((demand) => (isIn ? meetsDemand(demand, isIn) : false))
    }
  }

  return {
    audience: audience.kind === 'segment' ? audienceTrees(audienceDemand(audience), trees) : undefined,
    isTimed,
    isExitTimed: exits.some(({ place }) => isTimedAt(place)),
    isBranchTimed: (branchId) => isTimedAt(places.get(branchId)),
    isKnown: (person, day) => person.judgedAs === nameOf(person, day),
    async judge(people, day) {
      const now = new Date(startAt.getTime() + (isTimed ? day : 0) * DAY_MS)
      for (const [name, alike] of Map.groupBy(people, (person) => nameOf(person, day)))
        await judgeAlike(alike, name, now)
    },
    mustExit: (person) => exits.some(({ place, exitsWhen }) => holds(person, place) === exitsWhen),
    isInAudience: (person) => holds(person, entry),
    meets: (person, branchId) => holds(person, places.get(branchId)),
    tag(person, assignments) {
      const changes = Object.entries(assignments).filter(([key, value]) => watched.has(key) && !hasLiquid(value))
      if (changes.length === 0) return
      person.tags = new Map([
        ...person.tags,
        ...changes.map(([key, value]): [string, string | null] => [key, value === '' ? null : value]),
      ])
    },
  }
}

/** A deleted segment has nobody in it; where one is excluded, nobody is known to be outside of it. */
function audienceTrees(
  { included, excluded }: SegmentDemand,
  trees: ReadonlyMap<SegmentId, Tree>,
): SegmentAnswers['audience'] {
  const known = (ids: readonly SegmentId[]) => ids.flatMap((id) => trees.get(id) ?? [])
  if (known(included).length === 0 || known(excluded).length < excluded.length) return undefined
  return {
    included: { kind: 'any', of: known(included) },
    excluded: excluded.length > 0 ? { kind: 'any', of: known(excluded) } : undefined,
  }
}
