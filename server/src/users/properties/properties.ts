// A user's properties: what a request may set, how it changes what is stored, and how properties are answered.

import { invalid } from '../../lib/errors.ts'
import { codePoints } from '../../lib/text.ts'
import type { Deltas, PropertiesBody, Purchase } from '../schema.ts'
import { formatAmount, multiplyAmount, parseAmount } from './amount.ts'
import { columnsToWire, readColumns, type UserColumns } from './columns.ts'
import type { StoredProperties, StoredPurchase } from './stored.ts'
import { readNumber } from './values.ts'

export const MAX_UPDATES = 100
export const MAX_PURCHASES_ANSWERED = 100

export type PropertyChange = {
  tags: Record<string, string>
  removedTags: string[]
  columns: Partial<UserColumns>
  firstActive?: string
  lastActive?: string
  /** Replaces the stored amount (only in Create user). */
  amountSpent?: string
  sessionCount: number
  sessionTime: number
  purchases: StoredPurchase[]
}

const MAX_TAG_KEY = 255
const MAX_TAG_VALUE = 1024
/** The last second of the year 9999. */
const MAX_SECONDS = 253_402_300_799

/**
 * Validates a request's properties and deltas. At most 100 updates: each tag counts as one, and so does every other
 * property.
 */
export function readProperties(
  properties: PropertiesBody = {},
  deltas: Deltas = {},
  operation: 'create' | 'update' = 'update',
): PropertyChange {
  const change: PropertyChange = {
    tags: {},
    removedTags: [],
    columns: readColumns(properties),
    sessionCount: deltas.session_count ?? 0,
    sessionTime: deltas.session_time ?? 0,
    purchases: [...(properties.purchases ?? []), ...(deltas.purchases ?? [])].map(readPurchase),
  }
  countUpdates(properties)
  for (const [key, value] of Object.entries(properties.tags ?? {})) readTag(change, key, value)
  change.firstActive = readTime('first_active', properties.first_active)
  change.lastActive = readTime('last_active', properties.last_active)
  if (operation === 'create') change.amountSpent = readAmountSpent(properties.amount_spent)
  return change
}

function countUpdates({ tags, ...others }: PropertiesBody) {
  const updates = Object.keys(tags ?? {}).length + Object.values(others).filter((value) => value !== undefined).length
  if (updates > MAX_UPDATES)
    throw invalid(`a request can change at most ${MAX_UPDATES} properties, this one changes ${updates}`)
}

function readTag(change: PropertyChange, key: string, value: string | number | boolean | null) {
  if (key === '') throw invalid('a tag key must not be empty')
  // Setting this key on a plain object would change the object's prototype instead of adding a tag.
  if (key === '__proto__') throw invalid('a tag key must not be __proto__')
  if (codePoints(key) > MAX_TAG_KEY) throw invalid(`a tag key must have at most ${MAX_TAG_KEY} characters`)
  const text = value === null ? '' : String(value)
  if (codePoints(text) > MAX_TAG_VALUE)
    throw invalid(`the value of tag "${key}" must have at most ${MAX_TAG_VALUE} characters`)
  if (text === '') change.removedTags.push(key)
  else change.tags[key] = text
}

export function readTime(name: string, value: number | string | null | undefined): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const seconds = readNumber(name, 0, MAX_SECONDS)(value) as number
  if (!Number.isInteger(seconds)) throw invalid(`${name} must be a whole number of seconds`)
  return new Date(seconds * 1000).toISOString()
}

function readAmountSpent(value: number | string | null | undefined): string | undefined {
  const number = value === undefined ? null : readNumber('amount_spent', 0, 1e15)(value)
  return number === null ? undefined : formatAmount(parseAmount(number.toFixed(9)))
}

const AMOUNT = /^\p{Sc}?(\d{1,15}(?:\.\d{1,9})?)$/u

function readPurchase(purchase: Purchase): StoredPurchase {
  if (!AMOUNT.test(purchase.amount))
    throw invalid(`purchase amount "${purchase.amount}" is not a decimal such as "33.33" or "$33.33"`)
  if (!/^[a-z]{3}$/i.test(purchase.iso))
    throw invalid(`purchase iso "${purchase.iso}" is not a currency code of three letters`)
  return { sku: purchase.sku, iso: purchase.iso, amount: purchase.amount, count: purchase.count ?? 1 }
}

const MAX_AMOUNT = parseAmount(String(Number.MAX_SAFE_INTEGER))

/** Returns what is stored after the change; does not modify the stored object. */
export function applyPropertyChange(stored: StoredProperties, change: PropertyChange, now: string): StoredProperties {
  const tags = { ...stored.tags, ...change.tags }
  for (const key of change.removedTags) delete tags[key]
  return {
    ...stored,
    ...change.columns,
    tags,
    sessionCount: addSessions(stored.sessionCount, change.sessionCount),
    sessionTime: addSessions(stored.sessionTime, change.sessionTime),
    firstActive: change.firstActive ?? stored.firstActive,
    lastActive: change.lastActive ?? (change.sessionCount > 0 ? now : stored.lastActive),
    amountSpent: change.amountSpent ?? addPurchases(stored.amountSpent, change.purchases),
    purchases:
      change.purchases.length === 0
        ? stored.purchases
        : [...stored.purchases, ...change.purchases].slice(-MAX_PURCHASES_ANSWERED),
  }
}

/** Adds sessions, or their seconds. Above this sum JSON numbers are no longer exact. */
export function addSessions(stored: number, added: number): number {
  const sum = stored + added
  if (sum > Number.MAX_SAFE_INTEGER) throw invalid('the sum of the sessions would exceed 2^53-1')
  return sum
}

export const costOf = ({ amount, count }: StoredPurchase) => multiplyAmount(amount.replace(/^\p{Sc}/u, ''), count)

function addPurchases(amountSpent: string, purchases: StoredPurchase[]): string {
  if (purchases.length === 0) return amountSpent
  let sum = parseAmount(amountSpent)
  for (const purchase of purchases) sum += costOf(purchase)
  if (sum > MAX_AMOUNT) throw invalid('the sum of the purchases would exceed 2^53-1')
  return formatAmount(sum)
}

const seconds = (iso: string) => Math.floor(Date.parse(iso) / 1000)

export function propertiesObject(stored: StoredProperties): Record<string, unknown> {
  const properties: Record<string, unknown> = { tags: stored.tags }
  for (const [name, value] of Object.entries(columnsToWire(stored))) if (value !== null) properties[name] = value
  properties.first_active = seconds(stored.firstActive)
  properties.last_active = seconds(stored.lastActive)
  properties.session_count = stored.sessionCount
  properties.session_time = stored.sessionTime
  properties.amount_spent = Number(stored.amountSpent)
  properties.purchases = stored.purchases
  return properties
}
