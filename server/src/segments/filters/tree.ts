// The filter tree: conditions on one subscription and its user, combined by all, any and none. read-filters.ts builds
// it, compile.ts turns it into SQL, and evaluate.ts evaluates it for one subscription.

import type { UserId } from '../../lib/ids.ts'

/** One entry of a filter list, without fields that have no meaning for it. */
export type SegmentFilter = Record<string, unknown>

export type Comparison = '>' | '<' | '=' | '!=' | '>=' | '<='

/**
 * The test that a clause applies to its value. `want` is false for negated relations, which also hold without a value.
 */
export type ClauseTest =
  | { kind: 'present'; want: boolean }
  | { kind: 'oneOf'; values: string[]; want: boolean }
  | { kind: 'is'; want: boolean }
  | { kind: 'number'; relation: Comparison; value: string }
  | { kind: 'version'; relation: Comparison; value: string }
  /** The value is a time in Unix seconds, as text. */
  | { kind: 'elapsed'; relation: '>' | '<'; seconds: string }
  /** The value is a time; `>` means longer ago. */
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
  /** Its position, such as `filters[3]`. */
  entry: string
  filter: SegmentFilter
  field: FilterField
  /** The key of a tag, an SKU, a hashed email address, or the name of an event; empty for other fields. */
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

/** Whether a subscription can begin or cease to match merely because time passes. */
export function dependsOnTime(node: FilterNode): boolean {
  for (const { test } of clausesOf(node))
    if (test.kind === 'ago' || test.kind === 'elapsed' || (test.kind === 'happened' && test.days !== undefined))
      return true
  return false
}
