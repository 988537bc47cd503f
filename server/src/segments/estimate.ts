// Estimates how many recipients a message would have, before it is created.

import { invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { readUserRef } from '../users/aliases/identity.ts'
import { findOwners } from '../users/reference-store.ts'
import { countRecipients } from './audience.ts'
import type { SegmentsContext } from './context.ts'
import { readFilters } from './filters/read-filters.ts'
import { audienceChannels, clausesOf, type FilterNode } from './filters/tree.ts'
import { type CountRequest, filterTreeOf, getSegmentsByName, runCounting } from './read.ts'
import type { EstimateAnswer, EstimateBody } from './schema.ts'

const MAX_ALIASES = 20_000
/** For all segments together. A statement can have 65,535 parameters, and a filter may take seven. */
const MAX_CLAUSES = 5_000

/** Throws when the tree is too large for one statement. */
export function checkSize(node: FilterNode): void {
  if ([...clausesOf(node)].length > MAX_CLAUSES)
    throw invalid(`The segments can have at most ${MAX_CLAUSES} filters together`)
}

export async function estimateRecipients(
  ctx: SegmentsContext,
  caller: CountRequest,
  body: EstimateBody,
): Promise<EstimateAnswer> {
  const { appId } = caller
  const { target_channel: channel } = body
  const node: FilterNode = {
    kind: 'all',
    of: [await readTarget(ctx, appId, body), await readExcluded(ctx, appId, body)],
  }
  checkSize(node)
  const counts = await runCounting(ctx, caller, (db) => countRecipients(db, node, { appId, now: ctx.now() }))
  for (const it of audienceChannels) if (channel !== undefined && it !== channel) counts[it] = 0
  const count = counts.push + counts.email + counts.sms
  return {
    count,
    uncapped_count: count,
    cap_applied: false,
    mobile_suppressed: false,
    mobile_excluded_count: 0,
    by_channel: counts,
  }
}

/** Reads the audience, which must be given in exactly one way, as in a message. */
async function readTarget(ctx: SegmentsContext, appId: AppId, body: EstimateBody): Promise<FilterNode> {
  const { included_segments, filters, include_aliases, target_channel } = body
  const given = [included_segments, filters, include_aliases].filter((it) => it !== undefined)
  if (given.length === 0)
    throw invalid('You must include which players, segments, or tags you wish to send this notification to.')
  if (given.length > 1) throw invalid('Only one of included_segments, filters and include_aliases can be given')
  if (filters) return readFilters(filters).tree
  if (included_segments) {
    if (included_segments.length === 0) throw invalid('included_segments must not be empty')
    return { kind: 'any', of: (await getSegmentsByName(ctx, appId, included_segments)).map(filterTreeOf) }
  }
  if (target_channel === undefined) throw invalid('include_aliases needs a target_channel: push, email or sms')
  return findNamedUsers(ctx, appId, include_aliases as Record<string, string[]>)
}

async function findNamedUsers(
  { db }: SegmentsContext,
  appId: AppId,
  aliases: Record<string, string[]>,
): Promise<FilterNode> {
  const refs = Object.entries(aliases).flatMap(([label, values]) => values.map((value) => readUserRef(label, value)))
  if (refs.length === 0) throw invalid('include_aliases must name at least one user')
  if (refs.length > MAX_ALIASES) throw invalid(`include_aliases can name at most ${MAX_ALIASES} users`)
  const owners = await findOwners(db, appId, refs)
  return { kind: 'users', ids: owners.filter((id) => id !== undefined) }
}

async function readExcluded(
  ctx: SegmentsContext,
  appId: AppId,
  { excluded_segments = [] }: EstimateBody,
): Promise<FilterNode> {
  return { kind: 'none', of: (await getSegmentsByName(ctx, appId, excluded_segments)).map(filterTreeOf) }
}
