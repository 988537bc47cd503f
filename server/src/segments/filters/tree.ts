// Who is meant: conditions on one subscription and its user, joined by all, any and none. Filters are read into this;
// compile.ts makes SQL of it, evaluate.ts judges one subscription by it.

import type { UserId } from '../../lib/ids.ts'

/** One entry of a filter list as it was given, without fields that mean nothing to it. */
export type SegmentFilter = Record<string, unknown>

export type Comparison = '>' | '<' | '=' | '!=' | '>=' | '<='

/** What a clause asks of the value it sees. `want` is false for the negated relations, which also hold without a value. */
export type ClauseTest =
  | { kind: 'present'; want: boolean }
  | { kind: 'oneOf'; values: string[]; want: boolean }
  | { kind: 'is'; want: boolean }
  | { kind: 'number'; relation: Comparison; value: string }
  | { kind: 'version'; relation: Comparison; value: string }
  /** The value is a moment in Unix seconds, as text. */
  | { kind: 'elapsed'; relation: '>' | '<'; seconds: string }
  /** The value is a moment; `>` is longer ago. */
  | { kind: 'ago'; relation: '>' | '<'; hours: number }
  | { kind: 'within'; metres: number; lat: number; long: number }
  | { kind: 'happened'; relation: Comparison; count: number; days: number | undefined }

export type FilterField =
  | 'tag'
  | 'country'
  | 'language'
  | 'external_user_id'
  | 'device_type'
  | 'app_version'
  | 'session_count'
  | 'session_time'
  | 'last_session'
  | 'first_session'
  | 'amount_spent'
  | 'bought_sku'
  | 'location'
  | 'email'
  | 'rooted'
  | 'test_users'
  | 'subscribed'
  | 'event'

export type FilterClause = {
  kind: 'clause'
  /** Where it stands: `filters[3]`. */
  entry: string
  filter: SegmentFilter
  field: FilterField
  /** The key of a tag, an SKU, an email address (hashed), the name of an event; empty for other fields. */
  key: string
  test: ClauseTest
}

export const audienceChannels = ['push', 'email', 'sms'] as const
export type AudienceChannel = (typeof audienceChannels)[number]

export type FilterNode =
  | FilterClause
  | { kind: 'all' | 'any' | 'none'; of: FilterNode[] }
  | { kind: 'users'; ids: UserId[] }
  | { kind: 'channel'; channel: AudienceChannel }

export function* clausesOf(node: FilterNode): Generator<FilterClause> {
  if (node.kind === 'clause') yield node
  else if ('of' in node) for (const inner of node.of) yield* clausesOf(inner)
}

/** Whether somebody can come to be meant, or no longer be, by waiting alone. */
export function dependsOnTime(node: FilterNode): boolean {
  for (const { test } of clausesOf(node))
    if (test.kind === 'ago' || test.kind === 'elapsed' || (test.kind === 'happened' && test.days !== undefined))
      return true
  return false
}
