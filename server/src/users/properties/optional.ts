// Optional fields of a request. SDKs send null for a value that they do not know; it means the same as leaving it out.

import Type from 'typebox'

export const optionalOrNull = <Value>(type: string, options: object = {}) =>
  Type.Optional(Type.Unsafe<Value | null>({ type: [type, 'null'], ...options }))

export const optionalText = (maxLength: number, description?: string) =>
  optionalOrNull<string>('string', { maxLength, ...(description && { description }) })

/** Android sends its numbers as text. */
export const optionalNumberOrText = (description: string) =>
  Type.Optional(Type.Unsafe<number | string | null>({ type: ['number', 'string', 'null'], description }))
