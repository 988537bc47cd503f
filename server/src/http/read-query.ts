import type { TSchema } from 'typebox'
import { invalid } from '../lib/errors.ts'
import { isStorable } from '../lib/text.ts'
import { unstorable } from './body/parse.ts'

export type Query = Record<string, unknown>

/** Parses a query string, decoding strictly. A name that occurs more than once becomes a list. */
export function readQuery(text: string): Query {
  const query: Query = Object.create(null)
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const cut = pair.indexOf('=')
    const name = decode(cut < 0 ? pair : pair.slice(0, cut))
    const value = cut < 0 ? '' : decode(pair.slice(cut + 1))
    if (!isStorable(name) || !isStorable(value)) throw unstorable(isStorable(name) ? name : 'query')
    const before = query[name]
    if (before === undefined) query[name] = value
    else if (Array.isArray(before)) before.push(value)
    else query[name] = [before, value]
  }
  return query
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalid('The query string is not correctly encoded')
  }
}

type Convert = (text: string) => unknown
export type Conversions = Map<string, { isList: boolean; convert: Convert }>

// Text that does not look like a value of the type stays text, and the validator reports it. This is stricter than
// Number(): "0x10", " 1" and "" are not integers.
const converters: Record<string, Convert> = {
  integer: (text) => (/^-?\d{1,16}$/.test(text) ? Number(text) : text),
  number: (text) => (/^-?\d{1,16}(\.\d{1,16})?$/.test(text) ? Number(text) : text),
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  string: (text) => text,
  // An unencoded plus arrives as a space, and in an offset from UTC it cannot mean anything else.
  'date-time': (text) => text.replace(/ (?=\d\d:\d\d$)/, '+'),
}

type QueryProperty = { type?: string; format?: string; items?: { type?: string } }

/** Query strings contain only text. Which names are numbers, booleans or lists is read from the schema once. */
export function conversionsOf(schema: TSchema | undefined): Conversions {
  const properties = (schema as { properties?: Record<string, QueryProperty> } | undefined)?.properties ?? {}
  const found: Conversions = new Map()
  for (const [name, property] of Object.entries(properties)) {
    const isList = property.type === 'array'
    const kind = isList ? property.items?.type : property.format === 'date-time' ? property.format : property.type
    const convert = converters[kind ?? '']
    if (convert && (isList || convert !== converters.string)) found.set(name, { isList, convert })
  }
  return found
}

export function convertQuery(query: Query, conversions: Conversions): void {
  for (const [name, { isList, convert }] of conversions) {
    const value = query[name]
    if (value === undefined) continue
    if (isList) query[name] = (Array.isArray(value) ? value : [value]).map(convert)
    else if (typeof value === 'string') query[name] = convert(value)
  }
}
