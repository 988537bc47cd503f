// From the way a request names people to the audience that is stored, and to the places where each of them is looked for.

import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { checkSize } from '../../segments/estimate.ts'
import { readFilters } from '../../segments/filters/read-filters.ts'
import { filterTreeOf, getSegmentsByName } from '../../segments/read.ts'
import type { Segment } from '../../segments/segment.ts'
import { ONESIGNAL_ID } from '../../users/aliases/identity.ts'
import { ensureSubscriptions } from '../../users/subscriptions/ensure.ts'
import type { MessagesContext } from '../context.ts'
import type { Audience, NamedSegment } from '../message.ts'
import type { Targeting } from './read-targeting.ts'

/** At hand at once where the request itself names them. */
export function resolveAudience(
  ctx: MessagesContext,
  appId: AppId,
  targeting: Targeting,
): Audience | Promise<Audience> {
  switch (targeting.kind) {
    case 'aliases':
      return targeting
    case 'subscriptions':
      return { kind: 'subscriptions', field: targeting.field, given: [], ids: targeting.ids }
    default:
      return findAudience(ctx, appId, targeting)
  }
}

type Sought = Exclude<Targeting, { kind: 'aliases' | 'subscriptions' }>

async function findAudience(ctx: MessagesContext, appId: AppId, targeting: Sought): Promise<Audience> {
  switch (targeting.kind) {
    case 'tokens': {
      const { field, type, tokens } = targeting
      const ids = await ensureSubscriptions(ctx.users, appId, type, tokens)
      return { kind: 'subscriptions', field, given: tokens, ids }
    }
    case 'segments': {
      const included = await getSegmentsByName(ctx.segments, appId, targeting.included)
      const excluded = await getSegmentsByName(ctx.segments, appId, targeting.excluded)
      checkSize({ kind: 'all', of: [...included, ...excluded].map(filterTreeOf) })
      return { kind: 'segments', included: included.map(named), excluded: excluded.map(named) }
    }
    case 'filters': {
      const excluded = await getSegmentsByName(ctx.segments, appId, targeting.excluded)
      checkSize({ kind: 'all', of: [readFilters(targeting.filters).tree, ...excluded.map(filterTreeOf)] })
      return { kind: 'filters', filters: targeting.filters, excluded: excluded.map(named) }
    }
  }
}

const named = ({ id, name, filters }: Segment): NamedSegment => ({ id, name, filters })

/** Where somebody who is named is looked for. */
export type MessageTarget = { id: UserId } | { label: string; value: string } | { subscriptionId: SubscriptionId }

/** Undefined where nobody is named. */
export function targetsOf(audience: Audience): MessageTarget[] | undefined {
  if (audience.kind === 'subscriptions') return audience.ids.map((subscriptionId) => ({ subscriptionId }))
  if (audience.kind !== 'aliases') return undefined
  return Object.entries(audience.aliases).flatMap(([label, values]) =>
    values.map((value) => (label === ONESIGNAL_ID ? { id: value } : { label, value })),
  )
}

const ERRORS: Record<string, string> = {
  email_to: 'invalid_email_tokens',
  include_email_tokens: 'invalid_email_tokens',
  include_phone_numbers: 'invalid_phone_numbers',
  include_external_user_ids: 'invalid_external_user_ids',
}

/** Who is there and not subscribed, under the name and in the words of the request; `places` among the targets. */
export function unsubscribedErrors(targeting: Targeting, places: readonly number[]): object | undefined {
  if (places.length === 0) return undefined
  if (targeting.kind === 'aliases' && targeting.field === 'include_aliases') {
    const flat = Object.entries(targeting.aliases).flatMap(([label, values]) =>
      values.map((value) => ({ label, value })),
    )
    const byLabel: Record<string, string[]> = Object.create(null)
    for (const place of places) {
      const { label, value } = flat[place] as { label: string; value: string }
      byLabel[label] = [...(ownProperty(byLabel, label) ?? []), value]
    }
    return { invalid_aliases: byLabel }
  }
  const { field, given } = listed(targeting)
  return { [ownProperty(ERRORS, field) ?? 'invalid_player_ids']: places.map((place) => given[place]) }
}

function listed(targeting: Targeting): { field: string; given: string[] } {
  if (targeting.kind === 'subscriptions') return { field: targeting.field, given: targeting.ids }
  if (targeting.kind === 'tokens') return { field: targeting.field, given: targeting.tokens }
  if (targeting.kind === 'aliases') return { field: targeting.field, given: Object.values(targeting.aliases).flat() }
  throw new Error('segments and filters name nobody')
}
