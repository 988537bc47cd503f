import type { UserId } from '../lib/ids.ts'
import type { StoredProperties } from './properties/properties.ts'
import type { User } from './working-set.ts'

export const newProperties = (now: string): StoredProperties => ({
  tags: {},
  language: null,
  timezoneId: null,
  country: null,
  lat: null,
  long: null,
  ip: null,
  testUserName: null,
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
