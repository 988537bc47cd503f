// Who is meant: conditions on one subscription and its user, joined by all, any and none. Filters are read into this;
// compile.ts makes SQL of it, evaluate.ts judges one subscription by it.

import type { UserId } from '../lib/ids.ts'

/** One entry of a filter list as it was given, without fields that mean nothing to it. */
export type Filter = Record<string, unknown>

export type Comparison = '>' | '<' | '=' | '!=' | '>=' | '<='

/** What a clause asks of the value it sees. `want` is false for the negated relations, which also hold without a value. */
export type Test =
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

/** Kinds of values, by the field that shows them. A text is null where there is none. */
export const textFields = ['tag', 'country', 'language', 'external_user_id', 'device_type', 'app_version'] as const
export const numberFields = ['session_count', 'session_time', 'amount_spent', 'bought_sku'] as const
export const timeFields = ['last_session', 'first_session'] as const
export const flagFields = ['rooted', 'test_users', 'subscribed', 'email'] as const
export const otherFields = ['location', 'event'] as const
export type Field = (
  | typeof textFields
  | typeof numberFields
  | typeof timeFields
  | typeof flagFields
  | typeof otherFields
)[number]

export type Clause = {
  kind: 'clause'
  /** Where it stands: `filters[3]`. */
  entry: string
  filter: Filter
  field: Field
  /** The key of a tag, an SKU, an email address (hashed), the name of an event; empty for other fields. */
  key: string
  test: Test
}

export const channels = ['push', 'email', 'sms'] as const
export type Channel = (typeof channels)[number]

export type Node =
  | Clause
  | { kind: 'all' | 'any' | 'none'; of: Node[] }
  | { kind: 'users'; ids: UserId[] }
  | { kind: 'channel'; channel: Channel }

export const everybody: Node = { kind: 'all', of: [] }

export function* clausesOf(node: Node): Generator<Clause> {
  if (node.kind === 'clause') yield node
  else if ('of' in node) for (const inner of node.of) yield* clausesOf(inner)
}
