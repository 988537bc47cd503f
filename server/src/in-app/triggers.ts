// When a device shows a message: in any of several lists, all triggers must hold. The server stores and validates
// triggers; devices evaluate them.

import { invalid } from '../lib/errors.ts'
import type { NewId } from '../lib/ids.ts'
import { codePoints } from '../lib/text.ts'

export const KINDS = ['custom', 'session_time', 'min_time_since'] as const
export const COMPARISONS = ['equal', 'not_equal', 'greater', 'greater_or_equal', 'less', 'less_or_equal'] as const
export const OPERATORS = [...COMPARISONS, 'exists', 'not_exists', 'in'] as const

export type Trigger = {
  id: string
  kind: (typeof KINDS)[number]
  /** The app's name for it; triggers by time have none. */
  property?: string
  operator: (typeof OPERATORS)[number]
  value?: string | number | boolean
}

const MAX_LISTS = 20
const MAX_TRIGGERS = 20
const MAX_TEXT = 256
/** In seconds; one year. */
const MAX_TIME = 31_536_000

export function readTriggers(given: unknown, newId: NewId): Trigger[][] {
  return readList(given, 'triggers', MAX_LISTS).map((list, i) => {
    const place = `triggers[${i}]`
    const all = readList(list, place, MAX_TRIGGERS)
    if (all.length === 0) throw wrong(place, 'must have at least one trigger')
    return all.map((it, j) => ({ id: newId(), ...readTrigger(it, `${place}[${j}]`) }))
  })
}

function readList(given: unknown, place: string, most: number): unknown[] {
  if (!Array.isArray(given)) throw wrong(place, 'must be a list')
  if (given.length > most) throw wrong(place, `must have at most ${most} entries`)
  return given
}

function readTrigger(given: unknown, place: string): Omit<Trigger, 'id'> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw wrong(place, 'must be an object')
  const { kind: word = 'custom', property, operator, value } = given as Record<string, unknown>
  // Accepts the documented name as well as the one that devices use.
  const kind = oneOf(KINDS, word === 'time_since_last_in_app' ? 'min_time_since' : word, `${place}.kind`)
  if (kind !== 'custom') {
    const comparison = oneOf(COMPARISONS, operator ?? 'greater_or_equal', `${place}.operator`)
    if (typeof value !== 'number' || value < 0 || value > MAX_TIME)
      throw wrong(`${place}.value`, `must be a number of seconds from 0 to ${MAX_TIME}`)
    return { kind, operator: comparison, value }
  }
  const name = readText(property, `${place}.property`)
  if (name === '') throw wrong(`${place}.property`, 'must not be empty')
  const custom = { kind, property: name, operator: oneOf(OPERATORS, operator, `${place}.operator`) }
  if (custom.operator === 'exists' || custom.operator === 'not_exists') return custom
  if (typeof value === 'number' || typeof value === 'boolean') return { ...custom, value }
  return { ...custom, value: readText(value, `${place}.value`) }
}

function oneOf<Word extends string>(words: readonly Word[], given: unknown, place: string): Word {
  if (!words.includes(given as Word)) throw wrong(place, `must be one of ${words.join(', ')}`)
  return given as Word
}

function readText(given: unknown, place: string): string {
  if (typeof given !== 'string') throw wrong(place, 'must be a string')
  if (codePoints(given) > MAX_TEXT) throw wrong(place, `must have at most ${MAX_TEXT} characters`)
  return given
}

const wrong = (place: string, says: string) => invalid(`${place} ${says}`, { field: place })

/**
 * The representation for devices. On iOS, SDKs drop a message whose trigger lacks a property, or has a value where none
 * is expected.
 */
export const deviceTriggerObject = ({ id, kind, property, operator, value }: Trigger) => ({
  id,
  kind,
  property: property ?? kind,
  operator,
  ...(operator !== 'exists' && { value: value ?? '' }),
})
