// Turns the targeting of a request into the audience that is stored with the message.

import type { AppId } from '../../lib/ids.ts'
import { checkSize } from '../../segments/estimate.ts'
import { readFilters } from '../../segments/filters/read-filters.ts'
import { filterTreeOf, getSegmentsByName } from '../../segments/read.ts'
import type { Segment } from '../../segments/segment.ts'
import { sendingDisabled } from '../../sending/hold.ts'
import { ONESIGNAL_ID } from '../../users/aliases/identity.ts'
import { ensureSubscriptions } from '../../users/subscriptions/ensure.ts'
import type { MessagesContext } from '../context.ts'
import type { Audience, NamedSegment } from '../message.ts'
import type { Targeting } from './read-targeting.ts'
import type { MessageTarget } from './submission.ts'

type AudienceContext = Pick<MessagesContext, 'users' | 'segments' | 'isSendingDisabled'>

/** Looks up segments, and creates subscriptions for unknown tokens and addresses. */
export async function resolveAudience(ctx: AudienceContext, appId: AppId, targeting: Targeting): Promise<Audience> {
  switch (targeting.kind) {
    case 'aliases':
      return targeting
    case 'subscriptions':
      return { kind: 'subscriptions', field: targeting.field, given: [], ids: targeting.ids }
    case 'tokens': {
      // Checked first: otherwise subscriptions would be created for a message that is then refused.
      if (await ctx.isSendingDisabled(appId)) throw sendingDisabled()
      const { field, type, tokens } = targeting
      const ids = await ensureSubscriptions(ctx.users, appId, type, tokens)
      return { kind: 'subscriptions', field, given: tokens, ids }
    }
    case 'segments': {
      const included = await getSegmentsByName(ctx.segments, appId, targeting.included)
      const excluded = await getSegmentsByName(ctx.segments, appId, targeting.excluded)
      checkSize({ kind: 'all', of: [...included, ...excluded].map(filterTreeOf) })
      return { kind: 'segments', included: included.map(namedSegment), excluded: excluded.map(namedSegment) }
    }
    case 'filters': {
      const excluded = await getSegmentsByName(ctx.segments, appId, targeting.excluded)
      checkSize({ kind: 'all', of: [readFilters(targeting.filters).tree, ...excluded.map(filterTreeOf)] })
      return { kind: 'filters', filters: targeting.filters, excluded: excluded.map(namedSegment) }
    }
  }
}

const namedSegment = ({ id, name, filters }: Segment): NamedSegment => ({ id, name, filters })

/** Returns undefined for segments and filters, which name no recipients. */
export function targetsOf(audience: Audience): MessageTarget[] | undefined {
  if (audience.kind === 'subscriptions') return audience.ids.map((subscriptionId) => ({ subscriptionId }))
  if (audience.kind !== 'aliases') return undefined
  return Object.entries(audience.aliases).flatMap(([label, values]) =>
    values.map((value) => (label === ONESIGNAL_ID ? { id: value } : { label, value })),
  )
}
