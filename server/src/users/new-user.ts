import type { UserId } from '../lib/ids.ts'
import { EMPTY_COLUMNS } from './properties/columns.ts'
import type { StoredProperties } from './properties/stored.ts'
import type { User } from './user.ts'

export const newProperties = (now: string): StoredProperties => ({
  tags: {},
  ...EMPTY_COLUMNS,
  firstActive: now,
  lastActive: now,
  amountSpent: '0',
  sessionCount: 0,
  sessionTime: 0,
  purchases: [],
})

export const newUser = (id: UserId, now: string): User => ({
  id,
  properties: newProperties(now),
  aliases: new Map(),
  subscriptions: new Map(),
  createdAt: now,
})
