// A user's properties as they are stored.

import type { UserColumns } from './columns.ts'

export type StoredPurchase = { sku: string; iso: string; amount: string; count: number }

/** Times are ISO text, amounts exact decimals. */
export type StoredProperties = UserColumns & {
  tags: Record<string, string>
  firstActive: string
  lastActive: string
  amountSpent: string
  sessionCount: number
  sessionTime: number
  /** The newest 100, in the order of purchase. */
  purchases: StoredPurchase[]
}
