// How stored text is compared as numbers, versions, letters and distances. compile.ts implements the same in SQL, with
// the same patterns and limits; a property test keeps the two equal.

/**
 * The pattern of a number: no exponent, no infinity, at most 20 digits on each side of the point. Whatever text a tag
 * contains, a cast behind this pattern can neither fail nor produce a huge value.
 */
export const DECIMAL = '^-?[0-9]{1,20}([.][0-9]{1,20})?$'
const decimal = new RegExp(DECIMAL)
const FRACTION_DIGITS = 20

export const isDecimal = (text: string) => decimal.test(text)

/** The exact number times 10^20; undefined when the text is not a number. */
export function toUnits(text: string): bigint | undefined {
  if (!isDecimal(text)) return undefined
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  const units = BigInt(whole + fraction.padEnd(FRACTION_DIGITS, '0'))
  return text.startsWith('-') ? -units : units
}

/** Numbers separated by dots: 1.10 is above 1.9, and 1.0 equals 1. */
export const VERSION = '^[0-9]{1,18}([.][0-9]{1,18}){0,9}$'
/** Trailing zero parts, which do not matter. */
export const EMPTY_PARTS = '([.]0+)+$'
const version = new RegExp(VERSION)
const emptyParts = new RegExp(EMPTY_PARTS)

export const isVersion = (text: string) => version.test(text)

export function compareVersions(left: string, right: string): number {
  const [a, b] = [left, right].map((text) => text.replace(emptyParts, '').split('.').map(BigInt)) as [
    bigint[],
    bigint[],
  ]
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] as bigint) - (b[i] as bigint)
    if (difference !== 0n) return difference < 0n ? -1 : 1
  }
  return a.length - b.length
}

/** Language and country codes are ASCII. The case of other letters depends on the locale. */
export const upperAscii = (text: string) => text.replace(/[a-z]+/g, (letters) => letters.toUpperCase())
export const lowerAscii = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** The radius of the sphere that has the Earth's volume, in meters. */
const EARTH_RADIUS_METRES = 6_371_008.8
export const RADIANS = Math.PI / 180

/**
 * The haversine of the angle that a distance spans. Haversines grow with the distance, so they can be compared in its
 * place. Every point is within half the circumference; 2 is returned there because rounding can make a haversine
 * slightly larger than 1.
 */
export const haversineOfDistance = (metres: number) =>
  metres >= Math.PI * EARTH_RADIUS_METRES ? 2 : Math.sin(metres / EARTH_RADIUS_METRES / 2) ** 2

export type GeoPoint = { lat: number; long: number }

export function haversine(from: GeoPoint, to: GeoPoint): number {
  const across = Math.sin(((to.lat - from.lat) * RADIANS) / 2)
  const along = Math.sin(((to.long - from.long) * RADIANS) / 2)
  return across * across + Math.cos(from.lat * RADIANS) * Math.cos(to.lat * RADIANS) * along * along
}

/** Unix seconds with milliseconds, as text, which is exact where a floating-point number may not be. */
export const toUnixSeconds = (time: Date) => {
  const ms = time.getTime()
  return `${Math.floor(ms / 1000)}.${String(((ms % 1000) + 1000) % 1000).padStart(3, '0')}`
}

const HOUR_MS = 3_600_000

/** The time that many hours before `now`, to the millisecond. */
export const hoursBefore = (now: Date, hours: number) => new Date(now.getTime() - Math.round(hours * HOUR_MS))
export const daysBefore = (now: Date, days: number) => hoursBefore(now, days * 24)
