import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv'
import formatsPlugin from 'ajv-formats'
import type { TSchema } from 'typebox'
import { AppError, type Problem } from '../lib/errors.ts'
import { isUuid } from '../lib/ids.ts'
import { describeProblems } from './describe-validation.ts'

/** Throws, listing everything that is wrong with the value, in the terms of the API. */
export type Validate = (value: unknown, size: number) => void

const options: Options = {
  // A string is never taken for a number, and fields that are not in the schema are left alone: handlers read only what
  // they know.
  coerceTypes: false,
  removeAdditional: false,
  strict: false,
  // The schemas are our own; checking them against the meta-schema costs a second at start-up.
  validateSchema: false,
}

const addFormats = formatsPlugin as unknown as (ajv: Ajv) => Ajv
const compilerOf = (more: Options) => narrowFormats(addFormats(new Ajv({ ...options, ...more })))

/** The library accepts some ids and times that nothing behind it can parse: `urn:uuid:…`, leap seconds, `+05`. */
function narrowFormats(ajv: Ajv): Ajv {
  const { validate } = ajv.formats['date-time'] as { validate: (text: string) => boolean }
  return ajv
    .addFormat('uuid', isUuid)
    .addFormat('date-time', (text: string) => validate(text) && !Number.isNaN(Date.parse(text)))
}

const MAX_PROBLEMS = 20
/**
 * For larger values only the first problem is reported: a list of 500,000 wrong items would create 500,000 error
 * objects.
 */
const MAX_SIZE_FOR_ALL = 16_384

export type Compilers = { body: Ajv; query: Ajv; all: Ajv }

export const createCompilers = (): Compilers => ({
  body: compilerOf({ verbose: true }),
  query: compilerOf({ verbose: true, useDefaults: true }),
  all: compilerOf({ verbose: true, allErrors: true }),
})

export function compileValidator(
  compilers: Compilers,
  part: 'body' | 'query' | 'params',
  schema: TSchema | undefined,
  usesObjects: boolean,
): Validate | undefined {
  if (!schema) return undefined
  const isValid = compilers[part === 'query' ? 'query' : 'body'].compile(schema)
  let all: ValidateFunction | undefined
  return (value, size) => {
    if (isValid(value)) return
    let errors = isValid.errors ?? []
    if (size <= MAX_SIZE_FOR_ALL) {
      all ??= compilers.all.compile(schema)
      if (!all(value)) errors = all.errors ?? []
    }
    throw new AppError('invalid', ...problemsOf(errors, part, usesObjects))
  }
}

function problemsOf(errors: ErrorObject[], part: string, usesObjects: boolean): Problem[] {
  const values = new Map(errors.map((error) => [error.instancePath, error]))
  return describeProblems(errors, part === 'body' ? 'The body' : part, MAX_PROBLEMS).map(({ field, text, keyword }) => {
    const error = values.get(`/${field}`)
    // A malformed id in a path has its own code, which names the field and returns its value.
    if (usesObjects && part === 'params' && keyword === 'format' && error?.params.format === 'uuid')
      return { code: 'request-1', title: 'Invalid UUID', meta: { [field]: error.data } }
    return { code: 'request-0', title: text, meta: { field } }
  })
}
