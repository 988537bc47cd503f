// A user's properties: what a request may set, how the change meets what is stored, how it is answered.

import { isIP } from 'node:net'
import { invalid } from '../../lib/errors.ts'
import { codePoints } from '../../lib/text.ts'
import type { Deltas, PropertiesBody, Purchase } from '../schema.ts'
import { formatAmount, multiplyAmount, parseAmount } from './amount.ts'

export const MAX_UPDATES = 100
export const MAX_PURCHASES_ANSWERED = 100

export type StoredPurchase = { sku: string; iso: string; amount: string; count: number }

/** The part of a user that properties are made of, as stored. Times are ISO texts, amounts exact decimals. */
export type StoredProperties = {
  tags: Record<string, string>
  language: string | null
  timezoneId: string | null
  country: string | null
  lat: number | null
  long: number | null
  ip: string | null
  testUserName: string | null
  firstActive: string
  lastActive: string
  amountSpent: string
  sessionCount: number
  sessionTime: number
  /** The newest 100, in the order they were bought. */
  purchases: StoredPurchase[]
}

export type PropertyChange = {
  tags: Record<string, string>
  removedTags: string[]
  columns: Partial<
    Pick<StoredProperties, 'language' | 'timezoneId' | 'country' | 'lat' | 'long' | 'ip' | 'testUserName'>
  >
  firstActive?: string
  lastActive?: string
  /** Replaces the stored amount (create alone). */
  amountSpent?: string
  sessionCount: number
  sessionTime: number
  purchases: StoredPurchase[]
}

const MAX_TAG_KEY = 255
const MAX_TAG_VALUE = 1024
/** The last second of the year 9999. */
const MAX_SECONDS = 253_402_300_799

/** A request's properties and deltas, checked. At most 100 updates: each tag counts one, every other property one. */
export function readProperties(
  properties: PropertiesBody = {},
  deltas: Deltas = {},
  operation: 'create' | 'update' = 'update',
): PropertyChange {
  const change: PropertyChange = {
    tags: {},
    removedTags: [],
    columns: {},
    sessionCount: deltas.session_count ?? 0,
    sessionTime: deltas.session_time ?? 0,
    purchases: [...(properties.purchases ?? []), ...(deltas.purchases ?? [])].map(readPurchase),
  }
  countUpdates(properties)
  for (const [key, value] of Object.entries(properties.tags ?? {})) readTag(change, key, value)
  const { columns } = change
  if (properties.language !== undefined) columns.language = readLanguage(properties.language)
  if (properties.timezone_id !== undefined) columns.timezoneId = readTimeZone(properties.timezone_id)
  if (properties.country !== undefined) columns.country = readCountry(properties.country)
  if (properties.lat !== undefined) columns.lat = readNumber('lat', properties.lat, -90, 90)
  if (properties.long !== undefined) columns.long = readNumber('long', properties.long, -180, 180)
  if (properties.ip !== undefined) columns.ip = readIp(properties.ip)
  if (properties.test_user_name !== undefined) columns.testUserName = properties.test_user_name || null
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
  // As a key of a plain object it would not be a tag but the object's prototype.
  if (key === '__proto__') throw invalid('a tag key must not be __proto__')
  if (codePoints(key) > MAX_TAG_KEY) throw invalid(`a tag key must have at most ${MAX_TAG_KEY} characters`)
  const text = value === null ? '' : String(value)
  if (codePoints(text) > MAX_TAG_VALUE)
    throw invalid(`the value of tag "${key}" must have at most ${MAX_TAG_VALUE} characters`)
  if (text === '') change.removedTags.push(key)
  else change.tags[key] = text
}

const LANGUAGE = /^[a-z]{2,3}([-_][a-z0-9]{2,8})*$/i

function readLanguage(value: string | null): string | null {
  if (!value) return null
  if (!LANGUAGE.test(value)) throw invalid(`language "${value}" is not a language code`)
  return value
}

function readCountry(value: string | null): string | null {
  if (!value) return null
  if (!/^[a-z]{2}$/i.test(value)) throw invalid(`country "${value}" is not a country code of two letters`)
  return value
}

/** Names asked for so far; the list of known ones is long and every request brings the same few. */
const knownTimeZones = new Map<string, boolean>()

export function isTimeZone(name: string): boolean {
  let known = knownTimeZones.get(name)
  if (known === undefined) {
    // Intl also takes offsets such as "+01:00", which are no identifiers of zones.
    known = /^[A-Za-z]/.test(name) && canFormat(name)
    if (knownTimeZones.size > 2_000) knownTimeZones.clear()
    knownTimeZones.set(name, known)
  }
  return known
}

function canFormat(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone })
    return true
  } catch {
    return false
  }
}

function readTimeZone(value: string | null): string | null {
  if (!value) return null
  if (!isTimeZone(value)) throw invalid(`timezone_id "${value}" is not an IANA time zone`)
  return value
}

function readIp(value: string | null): string | null {
  if (!value) return null
  if (isIP(value) === 0) throw invalid(`ip "${value}" is not an IP address`)
  return value
}

const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/

function readNumber(name: string, value: number | string | null, min: number, max: number): number | null {
  if (value === null || value === '') return null
  const number = typeof value === 'number' ? value : DECIMAL.test(value) ? Number(value) : Number.NaN
  if (!(number >= min && number <= max)) throw invalid(`${name} must be a number from ${min} to ${max}`)
  return number
}

export function readTime(name: string, value: number | string | null | undefined): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const seconds = readNumber(name, value, 0, MAX_SECONDS) as number
  if (!Number.isInteger(seconds)) throw invalid(`${name} must be a whole number of seconds`)
  return new Date(seconds * 1000).toISOString()
}

function readAmountSpent(value: number | string | null | undefined): string | undefined {
  const number = value === undefined ? null : readNumber('amount_spent', value, 0, 1e15)
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

/** What is stored after the change; the stored object itself is left alone. */
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

/** Sessions, or their seconds; above this sum JSON numbers are no longer exact. */
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
  const optional = {
    language: stored.language,
    timezone_id: stored.timezoneId,
    country: stored.country,
    lat: stored.lat,
    long: stored.long,
    ip: stored.ip,
    test_user_name: stored.testUserName,
  }
  const properties: Record<string, unknown> = { tags: stored.tags }
  for (const [name, value] of Object.entries(optional)) if (value !== null) properties[name] = value
  properties.first_active = seconds(stored.firstActive)
  properties.last_active = seconds(stored.lastActive)
  properties.session_count = stored.sessionCount
  properties.session_time = stored.sessionTime
  properties.amount_spent = Number(stored.amountSpent)
  properties.purchases = stored.purchases
  return properties
}
