// Describes validation errors in the terms of the API: `subscriptions[0].type must be a string`.

import type { ErrorObject } from 'ajv'
import { ownProperty } from '../lib/own-property.ts'

export type FieldProblem = { field: string; text: string; keyword: string }

const MAX_FIELD = 200

/** Turns `/subscriptions/0/type` into `subscriptions[0].type`. */
export function fieldName(pointer: string, extra?: string): string {
  const names = pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (extra !== undefined) names.push(extra)
  let field = ''
  for (const name of names) {
    if (/^\d+$/.test(name)) field += `[${name}]`
    else field += field === '' ? name : `.${name}`
  }
  return field.length > MAX_FIELD ? `${field.slice(0, MAX_FIELD).toWellFormed()}…` : field
}

const articles: Record<string, string> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'null',
}

const formats: Record<string, string> = {
  uuid: 'a UUID',
  'date-time': 'an ISO 8601 date and time',
  date: 'a date',
  email: 'an email address',
  uri: 'an address (URI)',
}

type SchemaBranch = { type?: string | string[]; const?: unknown; enum?: unknown[] }

const listed = (words: string[]) =>
  words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

/** Lists what the branches of a union allow, when each of them is simple enough to name. */
function branchWords(branches: SchemaBranch[]): string | undefined {
  const words: string[] = []
  for (const { const: value, enum: values, type } of branches) {
    if (value !== undefined) words.push(JSON.stringify(value))
    else if (values) words.push(...values.map((item) => JSON.stringify(item)))
    else if (type !== undefined) words.push(...[type].flat().map((name) => ownProperty(articles, name) ?? name))
    else return undefined
  }
  return listed([...new Set(words)])
}

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`

function demand({ keyword, params, schema, message }: ErrorObject): string {
  switch (keyword) {
    case 'type':
      return `must be ${listed([params.type].flat().map((name: string) => ownProperty(articles, name) ?? name))}`
    case 'enum':
      return `must be ${listed(params.allowedValues.map((value: unknown) => JSON.stringify(value)))}`
    case 'const':
      return `must be ${JSON.stringify(params.allowedValue)}`
    case 'anyOf':
    case 'oneOf': {
      const words = branchWords((schema ?? []) as SchemaBranch[])
      return words === undefined ? 'has none of the allowed forms' : `must be ${words}`
    }
    case 'format':
      return `must be ${ownProperty(formats, params.format) ?? `of the form ${params.format}`}`
    case 'maxLength':
      return `must have at most ${plural(params.limit, 'character')}`
    case 'minLength':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${plural(params.limit, 'character')}`
    case 'maxItems':
      return `must have at most ${plural(params.limit, 'item')}`
    case 'minItems':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${plural(params.limit, 'item')}`
    case 'maxProperties':
      return `must have at most ${plural(params.limit, 'field')}`
    case 'minProperties':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${plural(params.limit, 'field')}`
    case 'minimum':
      return `must be at least ${params.limit}`
    case 'maximum':
      return `must be at most ${params.limit}`
    case 'exclusiveMinimum':
      return `must be more than ${params.limit}`
    case 'exclusiveMaximum':
      return `must be less than ${params.limit}`
    case 'additionalProperties':
      return 'is not allowed'
    case 'required':
      return 'is required'
    default:
      return message ?? 'is not valid'
  }
}

/**
 * Drops errors of a union's branches in favor of the union's own error, unless errors lie deeper in the value: then one
 * branch was intended, and those errors describe the problem.
 */
function withoutNoise(errors: ErrorObject[]): ErrorObject[] {
  let kept = errors
  for (const union of errors.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf')) {
    const parts = kept.filter((error) => error !== union && error.schemaPath.startsWith(`${union.schemaPath}/`))
    const deeper = parts.filter((error) => error.instancePath.length > union.instancePath.length)
    const plain = branchWords((union.schema ?? []) as SchemaBranch[]) !== undefined && deeper.length === 0
    const drop = new Set<ErrorObject>(plain || deeper.length === 0 ? parts : [union, ...parts])
    for (const error of deeper) drop.delete(error)
    kept = kept.filter((error) => !drop.has(error))
  }
  return kept
}

export function describeProblems(errors: ErrorObject[], whole: string, max: number): FieldProblem[] {
  const described = new Map<string, FieldProblem>()
  for (const error of withoutNoise(errors)) {
    const extra = error.keyword === 'required' ? error.params.missingProperty : error.params.additionalProperty
    const field = fieldName(error.instancePath, extra)
    const text = `${field || whole} ${demand(error)}`
    if (!described.has(text)) described.set(text, { field: field || whole, text, keyword: error.keyword })
    if (described.size === max) break
  }
  return [...described.values()]
}
