// Values that nobody would send: instead of what a schema asks for, or among it.

import fc, { type Arbitrary } from 'fast-check'
import type { TSchema } from 'typebox'

/** Names that every object has by birth. As keys, values, headers and parameters they find what nobody put there. */
export const PROTOTYPE_NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  '__defineGetter__',
]

const TEXTS = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udfff\ud800',
  '\u202e',
  '\uffff',
  '😀'.repeat(3_000),
  'x'.repeat(70_000),
  'é'.repeat(300),
  '9'.repeat(400),
  '-1',
  '0x10',
  '1e999',
  'NaN',
  'null',
  'true',
  '[]',
  '{}',
  "'; drop table users; --",
  '%00',
  '../../etc/passwd',
  '\r\nX-Injected: yes',
  '{{ user | json }}',
  '{% if %}',
  'javascript:alert(1)',
  'https://',
  'http://[::1]:1/',
  '2024-02-30T25:61:61Z',
  '+275760-09-13T00:00:00.001Z',
  '-000001-01-01T00:00:00Z',
  '00000000-0000-0000-0000-000000000000',
  'FFFFFFFF-FFFF-4FFF-BFFF-FFFFFFFFFFFF',
]

const NUMBERS = [
  0,
  -0,
  -1,
  0.1,
  1.5,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 53,
  2 ** 63,
  1e21,
  1e308,
  -1e308,
  5e-324,
]

export const hostileText: Arbitrary<string> = fc.oneof(
  fc.constantFrom(...PROTOTYPE_NAMES),
  fc.constantFrom(...TEXTS),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
)

const hostileNumber: Arbitrary<number> = fc.oneof(fc.constantFrom(...NUMBERS), fc.double({ noNaN: true }), fc.integer())

/** `JSON.parse` makes a key of `__proto__`; an object literal would not. */
const oddlyNamed: Arbitrary<unknown> = fc
  .tuple(fc.constantFrom(...PROTOTYPE_NAMES, '', '\u0000', '\ud800', 'x'.repeat(5_000)), fc.jsonValue({ maxDepth: 1 }))
  .map(([name, value]) => JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`))

function nested(levels: number, isList: boolean): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = isList ? [value] : { a: value }
  return value
}

export const hostileValue: Arbitrary<unknown> = fc.oneof(
  hostileText,
  hostileNumber,
  fc.constantFrom(null, true, false, [], {}, [null], [[]], [{}], [''], { '': '' }),
  oddlyNamed,
  oddlyNamed.map((value) => [value]),
  fc.tuple(fc.constantFrom(5, 31, 33, 500), fc.boolean()).map(([levels, isList]) => nested(levels, isList)),
  fc.jsonValue({ maxDepth: 3 }),
)

export type Schema = TSchema & {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  format?: string
  minimum?: number
  maximum?: number
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
}

/** Of all values of a schema, so many are hostile instead. */
const HOSTILE_SHARE = { arbitrary: hostileValue, weight: 1 }
const LAWFUL_WEIGHT = 7
const MAX_LEVELS = 6

/** A value as the schema asks for it, for the most part. */
export function valueFor(schema: Schema, components: Record<string, Schema> = {}, level = 0): Arbitrary<unknown> {
  if (level > MAX_LEVELS) return hostileValue
  return fc.oneof({ arbitrary: lawful(schema, components, level), weight: LAWFUL_WEIGHT }, HOSTILE_SHARE)
}

function lawful(schema: Schema, components: Record<string, Schema>, level: number): Arbitrary<unknown> {
  const below = (child: Schema) => valueFor(child, components, level + 1)
  if (schema.$ref !== undefined) {
    const target = components[schema.$ref.split('/').at(-1) as string]
    return target ? below(target) : hostileValue
  }
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(below))
  const types = Array.isArray(schema.type) ? schema.type : [schema.type]
  return fc.oneof(...types.map((type) => ofType(type, schema, below)))
}

function ofType(type: string | undefined, schema: Schema, below: (child: Schema) => Arbitrary<unknown>) {
  switch (type) {
    case 'object':
      return objectFor(schema, below)
    case 'array':
      return schema.items ? fc.array(below(schema.items), { maxLength: 4 }) : fc.constant([])
    case 'integer':
      return fc.integer({
        min: bound(schema.minimum, -10),
        max: Math.max(bound(schema.maximum, 1_000), bound(schema.minimum, -10)),
      })
    case 'number':
      return fc.double({ noNaN: true, min: bound(schema.minimum, -10), max: bound(schema.maximum, 1_000) })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'string':
      return schema.format === 'uuid' ? fc.uuid({ version: 4 }) : fc.string({ maxLength: 20 })
    default:
      return hostileValue
  }
}

const bound = (given: number | undefined, fallback: number) => given ?? fallback

export function objectFor(
  { properties = {}, required = [] }: Schema,
  below: (child: Schema) => Arbitrary<unknown>,
): Arbitrary<object> {
  const fields = Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, below(child)]))
  const requiredKeys = required.filter((name) => Object.hasOwn(fields, name))
  return fc.record(fields, { requiredKeys })
}
