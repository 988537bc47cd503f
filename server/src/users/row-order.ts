// Rows are written sorted by key, so that two batches with the same keys wait for each other instead of deadlocking.

import type { Alias } from './aliases/identity.ts'
import type { Subscription } from './subscriptions/subscription.ts'

export const sortedAliases = <Row extends Alias>(aliases: Row[]) =>
  aliases.toSorted((a, b) => compare(a.label, b.label) || compare(a.value, b.value))

export const sortedSubscriptions = (subscriptions: Subscription[]) =>
  subscriptions.toSorted((a, b) => compare(a.type, b.type) || compare(a.tokenHash ?? '', b.tokenHash ?? ''))

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
