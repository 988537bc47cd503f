import { isUtf8 } from 'node:buffer'
import { invalid } from '../../lib/errors.ts'
import { nextTurn, runAtOnce, runInTurns, type Steps } from '../../lib/event-loop.ts'
import { type JsonLimits, type JsonProblem, JsonScan } from '../../lib/scan-json.ts'
import { findUnstorable } from '../../lib/text.ts'

/**
 * Larger bodies are parsed in steps, with a turn of the event loop between them, and have a memory budget of their own.
 */
export const LARGE_BODY_BYTES = 65_536
/** Scanning this many characters takes about 2 ms. */
const SLICE_CHARACTERS = 262_144

/**
 * Parses bytes into a JSON value that is safe to traverse, copy and store. Undefined for an empty body.
 * A byte order mark is dropped: some platforms write one, and it carries no meaning in UTF-8.
 */
export function parseBody(bytes: Buffer, limits: JsonLimits, pause = nextTurn): unknown {
  const steps = parseSteps(bytes, limits)
  return bytes.length > LARGE_BODY_BYTES ? runInTurns(steps, pause) : runAtOnce(steps)
}

function* parseSteps(bytes: Buffer, limits: JsonLimits): Steps<unknown> {
  if (bytes.length === 0) return undefined
  const text = decodeBody(bytes)
  const scan = new JsonScan(text, limits)
  while (scan.advance(SLICE_CHARACTERS)) yield
  if (scan.problem) throw refused(scan.problem, limits)
  yield
  const value = parse(text)
  const hasEscapes = text.includes('\\u')
  // Only an escape can produce text that PostgreSQL cannot store: a raw U+0000 is invalid JSON, and raw lone surrogates
  // are invalid UTF-8.
  if (hasEscapes) {
    yield
    const field = findUnstorable(value)
    if (field !== undefined) throw unstorable(field)
  }
  // JSON.parse keeps `__proto__` as plain data, but a later copy by assignment would change a prototype.
  if (hasEscapes || text.includes('__proto__')) {
    yield
    if (hasKey(value, '__proto__')) throw invalid('The key "__proto__" is not allowed')
  }
  return value
}

export function decodeBody(bytes: Buffer): string {
  // Without this check, decoding would turn different byte strings into the same text (U+FFFD), and so two aliases into
  // one.
  if (!isUtf8(bytes)) throw invalid('The body is not valid UTF-8')
  return bytes.toString('utf8', startsWithMark(bytes) ? 3 : 0)
}

export const unstorable = (field: string) =>
  invalid(`${field.slice(0, 200).toWellFormed()} contains U+0000 or half of a surrogate pair`)

const startsWithMark = (bytes: Buffer) => bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the body, which may contain anything.
    throw invalid('The body is not valid JSON')
  }
}

function refused(problem: JsonProblem, { maxKeys, maxDepth, maxValues }: JsonLimits) {
  if (problem === 'too deep') return invalid(`The body is nested deeper than ${maxDepth} levels`)
  if (problem === 'too many keys') return invalid(`The body has more than ${maxKeys} keys`)
  if (problem === 'too many values') return invalid(`The body has more than ${maxValues} values`)
  return invalid('A number in the body is out of range')
}

function hasKey(value: unknown, key: string): boolean {
  if (value === null || typeof value !== 'object') return false
  if (Array.isArray(value)) return value.some((item) => hasKey(item, key))
  return Object.hasOwn(value, key) || Object.values(value).some((child) => hasKey(child, key))
}
