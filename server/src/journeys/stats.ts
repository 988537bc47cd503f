// How many users entered, waited, completed and left, in the whole journey and at each node and branch.

import type { AppId } from '../lib/ids.ts'
import { channelStats } from '../messages/counts/summary.ts'
import type { JourneysContext } from './context.ts'
import type { JourneyId } from './journey.ts'
import { allNodes, branchesOf, definitionOf, templateChannelOf } from './nodes/kinds.ts'
import type { TemplateChannel } from './nodes/node.ts'
import { findCounts, findMessageCounts, type JourneyCount, type NodeMessageCount } from './stats-store.ts'
import { getJourney } from './view.ts'

/** Counts of runs. All other counts at a node are of its messages. */
const OF_RUNS = new Set(['started', 'waiting', 'completed', 'exited_early'])

/** Every node and branch has an entry, even if no user reached it. */
export async function viewStats(ctx: JourneysContext, appId: AppId, id: JourneyId) {
  const { document } = await getJourney(ctx, appId, id)
  const counts = await findCounts(ctx.db, appId, id)
  const messagesAt = Map.groupBy(await findMessageCounts(ctx.db, appId, id), ({ nodeId }) => nodeId)
  const countsAt = Map.groupBy(counts, ({ placeId }) => placeId)
  const at = (place: string, fact: string) => countsAt.get(place)?.find((it) => it.fact === fact)?.total ?? 0
  const nodes = allNodes(document.nodes)
  return {
    id,
    started: at(id, 'started'),
    completed: at(id, 'completed'),
    exited_early: at(id, 'exited_early'),
    nodes: Object.fromEntries(
      nodes.map((node) => [
        node.id,
        {
          kind: node.kind,
          waiting: at(node.id, 'waiting'),
          completed: at(node.id, 'completed'),
          exited_early: at(node.id, 'exited_early'),
          ...(definitionOf(node).channel && {
            message_stats: {
              totals: {
                ...totalsOf(countsAt.get(node.id) ?? []),
                ...sentBy(templateChannelOf(node.kind), messagesAt.get(node.id)),
              },
            },
          }),
        },
      ]),
    ),
    branches: Object.fromEntries(
      nodes.flatMap(branchesOf).map((branch) => [branch.id, { completed: at(branch.id, 'completed') }]),
    ),
  }
}

const totalsOf = (counts: readonly JourneyCount[]) =>
  Object.fromEntries(counts.filter(({ fact }) => !OF_RUNS.has(fact)).map(({ fact, total }) => [fact, total]))

/** The same numbers that a message has for its deliveries; none before the first is sent. */
const sentBy = (channel: TemplateChannel | undefined, counts: readonly NodeMessageCount[] | undefined) =>
  channel && counts ? channelStats(channel, counts) : {}
