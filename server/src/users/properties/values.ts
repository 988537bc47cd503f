// Validates single values of a request. Null and "" clear.

import { isIP } from 'node:net'
import { invalid } from '../../lib/errors.ts'

const LANGUAGE = /^[a-z]{2,3}([-_][a-z0-9]{2,8})*$/i

export function readLanguage(value: string | null): string | null {
  if (!value) return null
  if (!LANGUAGE.test(value)) throw invalid(`language "${value}" is not a language code`)
  return value
}

export function readCountry(value: string | null): string | null {
  if (!value) return null
  if (!/^[a-z]{2}$/i.test(value)) throw invalid(`country "${value}" is not a country code of two letters`)
  return value
}

/** Caches the answers for names that were checked: the list of time zones is long, and requests repeat the same few. */
const knownTimeZones = new Map<string, boolean>()

export function isTimeZone(name: string): boolean {
  let known = knownTimeZones.get(name)
  if (known === undefined) {
    // Intl also accepts offsets such as "+01:00", which are not zone identifiers.
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

export function readTimeZone(value: string | null): string | null {
  if (!value) return null
  if (!isTimeZone(value)) throw invalid(`timezone_id "${value}" is not an IANA time zone`)
  return value
}

export function readIp(value: string | null): string | null {
  if (!value) return null
  if (isIP(value) === 0) throw invalid(`ip "${value}" is not an IP address`)
  return value
}

const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/

export const readNumber =
  (name: string, min: number, max: number) =>
  (value: number | string | null): number | null => {
    if (value === null || value === '') return null
    const number = typeof value === 'number' ? value : DECIMAL.test(value) ? Number(value) : Number.NaN
    if (!(number >= min && number <= max)) throw invalid(`${name} must be a number from ${min} to ${max}`)
    return number
  }
