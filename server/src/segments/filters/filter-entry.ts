// Reads the operands of one filter as its field requires them.

import { type AppError, invalid } from '../../lib/errors.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { codePoints } from '../../lib/text.ts'
import type { SegmentFilter } from './tree.ts'
import { isDecimal } from './values.ts'

const MAX_LIST = 20
const MAX_TEXT = 1024

/** One filter and its position, so that every error can name the position. */
export class FilterEntry {
  readonly filter: SegmentFilter
  readonly entry: string
  constructor(filter: SegmentFilter, entry: string) {
    this.filter = filter
    this.entry = entry
  }

  error(says: string): AppError {
    return invalid(`${this.entry}: ${says}`, { field: this.entry })
  }

  has(name: string): boolean {
    return ownProperty(this.filter, name) !== undefined && ownProperty(this.filter, name) !== null
  }

  text(name: string, max = MAX_TEXT): string {
    return this.asText(name, ownProperty(this.filter, name), max)
  }

  asText(name: string, value: unknown, max: number): string {
    if (value === undefined || value === null) throw this.error(`${name} is required`)
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
      throw this.error(`${name} must be text or a number`)
    const text = String(value)
    if (codePoints(text) > max) throw this.error(`${name} must have at most ${max} characters`)
    return text
  }

  name(name: string, max: number): string {
    const value = ownProperty(this.filter, name)
    if (typeof value !== 'string' || value === '') throw this.error(`${name} is required, as text`)
    return this.text(name, max)
  }

  /** Reads a number, or the text of one, as exact text. */
  decimal(name: string): string {
    const text = this.text(name)
    if (typeof ownProperty(this.filter, name) === 'boolean' || !isDecimal(text))
      throw this.error(`${name} must be a decimal number of at most 20 digits before and after the point`)
    return text
  }

  number(name: string, min: number, max: number): number {
    const number = Number(this.decimal(name))
    if (!(number >= min && number <= max)) throw this.error(`${name} must be from ${min} to ${max}`)
    return number
  }

  /** Reads a comma-separated text, or a list whose items may contain commas. */
  list(name: string): string[] {
    const given = ownProperty(this.filter, name)
    const texts = Array.isArray(given)
      ? given.map((item) => this.asText(name, item, MAX_TEXT))
      : this.text(name, MAX_LIST * (MAX_TEXT + 2))
          .split(',')
          .map((item) => item.trim())
    if (texts.length > MAX_LIST) throw this.error(`${name} must have at most ${MAX_LIST} values`)
    if (texts.length === 0 || texts.includes('')) throw this.error(`${name} must not have empty values`)
    for (const text of texts)
      if (codePoints(text) > MAX_TEXT) throw this.error(`${name} must have values of at most ${MAX_TEXT} characters`)
    return [...new Set(texts)]
  }
}
