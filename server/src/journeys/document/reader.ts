// Reads the values of a request and collects all problems with their paths: `nodes[2].branches[0].nodes[1].duration_seconds must …`.
// A value that cannot be read is undefined; nobody sees it, because `finish` throws when there are problems.

import { AppError, type Problem } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { codePoints } from '../../lib/text.ts'

export type Fields = Record<string, unknown>

/** More would not help an author. */
const MAX_PROBLEMS = 100

export type Reader = {
  /** Collects a problem. */
  report(path: string, demand: string): undefined
  object(path: string, value: unknown): Fields | undefined
  /** The items with their paths; none when the value is not a list. */
  list(path: string, value: unknown, limits?: { least?: number; most?: number }): [string, unknown][]
  /** Neither empty nor too long. */
  text(path: string, value: unknown, most: number): string | undefined
  integer(path: string, value: unknown, least: number, most: number): number | undefined
  /** Defaults to false. */
  boolean(path: string, value: unknown): boolean
  oneOf<Word extends string>(path: string, value: unknown, words: readonly Word[]): Word | undefined
  uuid(path: string, value: unknown): string | undefined
  /** An ISO 8601 time, normalized to UTC. */
  time(path: string, value: unknown): string | undefined
  problems: readonly Problem[]
  finish(): void
}

/** Null means the same as leaving the field out. */
export const isPresent = (value: unknown) => value !== undefined && value !== null

const TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i

/** NaN for days that do not exist: `Date.parse` would read 30 February as a day in March. */
function parseTime(text: string): number {
  const day = TIME.exec(text)?.[1]
  const isDay = day !== undefined && new Date(Date.parse(day) || 0).toISOString().startsWith(day)
  return isDay ? Date.parse(text) : Number.NaN
}

export function createReader(): Reader {
  const problems: Problem[] = []
  const say = (path: string, demand: string): undefined => {
    if (problems.length < MAX_PROBLEMS)
      problems.push({ code: 'request-0', title: `${path} ${demand}`, meta: { field: path } })
  }
  /** The value is missing, or of another type. */
  const wrong = (path: string, value: unknown, kind: string) =>
    say(path, isPresent(value) ? `must be ${kind}` : 'is required')

  return {
    report: say,
    object: (path, value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? (value as Fields)
        : wrong(path, value, 'an object'),
    list(path, value, { least = 0, most = Number.POSITIVE_INFINITY } = {}) {
      if (!Array.isArray(value)) {
        if (isPresent(value) || least > 0) wrong(path, value, 'a list')
        return []
      }
      if (value.length < least || value.length > most) say(path, `must have ${bounds(least, most)} items`)
      return value.slice(0, most).map((item, n) => [`${path}[${n}]`, item])
    },
    text(path, value, most) {
      if (typeof value !== 'string') return wrong(path, value, 'a string')
      if (value.trim() === '') return say(path, 'must not be empty')
      return codePoints(value) > most ? say(path, `must have at most ${most} characters`) : value
    },
    integer(path, value, least, most) {
      if (!Number.isInteger(value)) return wrong(path, value, 'an integer')
      const number = value as number
      return number < least || number > most ? say(path, `must be from ${least} to ${most}`) : number
    },
    boolean(path, value) {
      if (isPresent(value) && typeof value !== 'boolean') say(path, 'must be true or false')
      return value === true
    },
    oneOf: (path, value, words) =>
      words.find((word) => word === value) ?? wrong(path, value, `one of ${words.join(', ')}`),
    uuid: (path, value) =>
      typeof value === 'string' && isUuid(value) ? value.toLowerCase() : wrong(path, value, 'a UUID'),
    time(path, value) {
      const ms = typeof value === 'string' ? parseTime(value) : Number.NaN
      return Number.isNaN(ms) ? wrong(path, value, 'an ISO 8601 date and time') : new Date(ms).toISOString()
    },
    problems,
    finish() {
      if (problems.length > 0) throw new AppError('invalid', ...problems)
    },
  }
}

function bounds(least: number, most: number): string {
  if (least === most) return `exactly ${least}`
  if (least === 0) return `at most ${most}`
  return most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`
}
