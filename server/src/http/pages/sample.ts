// Generates the smallest value that a schema allows, for operations without an example of their own.

import type { ApiDescription, JsonSchema } from '../openapi.ts'
import { variable } from './variable.ts'

type Shape = JsonSchema & {
  type?: string | string[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  enum?: unknown[]
}

const TEXTS: Record<string, string> = {
  'date-time': '2030-01-01T09:00:00Z',
  date: '2030-01-01',
  email: 'you@example.com',
  uri: 'https://example.com',
}

export function sampleOf(schema: JsonSchema, api: ApiDescription, name = 'value'): unknown {
  const shape = resolve(schema, api)
  if (shape.const !== undefined) return shape.const
  if (Array.isArray(shape.enum)) return shape.enum.find((value) => value !== null)
  if (shape.default !== undefined && shape.default !== null) return shape.default
  if (shape.anyOf) return sampleOf(shape.anyOf.find((branch) => branch.type !== 'null') ?? {}, api, name)
  const type = Array.isArray(shape.type) ? shape.type.find((one) => one !== 'null') : shape.type
  switch (type) {
    case 'object':
      return sampleObject(shape, api)
    case 'array':
      return shape.items ? [sampleOf(shape.items, api, name.replace(/s$/, ''))] : []
    case 'integer':
    case 'number':
      return shape.minimum ?? 1
    case 'boolean':
      return true
    case 'string':
      return sampleText(shape, name)
    default:
      return 'value'
  }
}

/** Includes the required fields or, where none are required, the first writable field. */
function sampleObject({ properties = {}, required = [] }: Shape, api: ApiDescription): Record<string, unknown> {
  const writable = Object.keys(properties).filter(
    (name) => resolve(properties[name] as JsonSchema, api).readOnly !== true,
  )
  const names = required.length > 0 ? required : writable.slice(0, 1)
  return Object.fromEntries(names.map((name) => [name, sampleOf(properties[name] ?? {}, api, name)]))
}

function sampleText({ format, minLength = 0 }: Shape, name: string): string {
  if (format === 'uuid' || name.endsWith('_id')) return variable(name)
  const known = typeof format === 'string' && Object.hasOwn(TEXTS, format) ? TEXTS[format] : undefined
  return known ?? name.padEnd(Number(minLength), '0')
}

function resolve(schema: JsonSchema, api: ApiDescription): Shape {
  const name = typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
  return ((name && api.components.schemas[name]) || schema) as Shape
}
