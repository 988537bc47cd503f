// Matches events against conditions. Values are compared as numbers where both are numbers, else as text; times as times.

import { ownProperty } from '../../lib/own-property.ts'

import type { RunEvent } from '../runs/run.ts'
import type { EventAttribute, EventMatch, EventPair } from './node.ts'

type Properties = Record<string, unknown>

export const matchesEvent = ({ name, attributes }: EventMatch, event: Pick<RunEvent, 'name' | 'properties'>): boolean =>
  event.name === name && attributes.every((group) => group.every((it) => holds(it, valueAt(event.properties, it.key))))

/** In each pair the property of the event has the value that the property of the entry event had. */
export const matchesEntry = (pairs: readonly EventPair[], properties: Properties, entry: Properties): boolean =>
  pairs.every(({ key, entry_key }) => {
    const wanted = valueAt(entry, entry_key)
    const found = valueAt(properties, key)
    return wanted !== undefined && found !== undefined && textOf(found) === textOf(wanted)
  })

/** A key is the name of a property or, with dots, a path into one. */
function valueAt(properties: Properties, key: string): unknown {
  if (Object.hasOwn(properties, key)) return ownProperty(properties, key) ?? undefined
  let value: unknown = properties
  for (const name of key.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = ownProperty(value as Properties, name)
  }
  return value ?? undefined
}

const textOf = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value))

/** Only the negated operators hold for a missing property. */
function holds({ operator, value: wanted = '' }: EventAttribute, found: unknown): boolean {
  switch (operator) {
    case 'exists':
      return found !== undefined
    case 'not_exists':
      return found === undefined
    case 'equal':
    case 'is':
      return found !== undefined && isEqual(found, wanted)
    case 'not_equal':
    case 'is_not':
      return found === undefined || !isEqual(found, wanted)
    case 'before':
      return compared(timeOf(found), timeOf(wanted), (a, b) => a < b)
    case 'after':
      return compared(timeOf(found), timeOf(wanted), (a, b) => a > b)
    case 'less':
      return compared(numberOf(found), numberOf(wanted), (a, b) => a < b)
    case 'less_or_equal':
      return compared(numberOf(found), numberOf(wanted), (a, b) => a <= b)
    case 'greater':
      return compared(numberOf(found), numberOf(wanted), (a, b) => a > b)
    case 'greater_or_equal':
      return compared(numberOf(found), numberOf(wanted), (a, b) => a >= b)
  }
}

function isEqual(found: unknown, wanted: string): boolean {
  const [a, b] = [numberOf(found), numberOf(wanted)]
  return textOf(found) === wanted || (a !== undefined && a === b)
}

const compared = (a: number | undefined, b: number | undefined, test: (a: number, b: number) => boolean) =>
  a !== undefined && b !== undefined && test(a, b)

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

/** Numbers are Unix seconds. */
function timeOf(value: unknown): number | undefined {
  const seconds = numberOf(value)
  if (seconds !== undefined) return seconds * 1_000
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
