// Scans the text of a body before JSON.parse. JSON.parse accepts 100,000 nested arrays, but everything that walks the
// result afterwards (a validator, JSON.stringify) overflows its stack. It also creates 1.7 million arrays from 5 MB of
// `[],`, which blocks the event loop for 400 ms; so values are counted before they are created.

export type JsonLimits = { maxDepth: number; maxKeys: number; maxValues: number }
export type JsonProblem = 'too deep' | 'too many keys' | 'too many values' | 'number out of range'

const QUOTE = 34
const BACKSLASH = 92
const COLON = 58

/**
 * Linear, without recursion, and resumable, so that a large text is scanned in slices. Text that is not JSON is left
 * for JSON.parse to refuse.
 */
export class JsonScan {
  /** The first problem found; scanning stops there. */
  problem: JsonProblem | undefined
  readonly #text: string
  readonly #limits: JsonLimits
  #at = 0
  #depth = 0
  #keys = 0
  #values = 0

  constructor(text: string, limits: JsonLimits) {
    this.#text = text
    this.#limits = limits
  }

  /**
   * Scans about this many characters further, to the end of the token that they end in. False when nothing is left to
   * scan.
   */
  advance(characters: number): boolean {
    const text = this.#text
    const { maxDepth, maxKeys, maxValues } = this.#limits
    const end = text.length
    const until = Math.min(end, this.#at + characters)
    let i = this.#at
    let depth = this.#depth
    let keys = this.#keys
    // A key is first counted as a value, like any string, and subtracted at its colon.
    let values = this.#values
    for (; i < until; i++) {
      const unit = text.charCodeAt(i)
      if (unit === QUOTE) {
        i = endOfString(text, i, end)
        values++
      } else if (unit === COLON) {
        values--
        if (++keys > maxKeys) return this.#stop('too many keys')
      } else if (unit === 123 || unit === 91) {
        values++
        if (++depth > maxDepth) return this.#stop('too deep')
      } else if (unit === 125 || unit === 93) depth--
      else if (unit >= 48 && unit <= 57) {
        const after = endOfNumber(text, i, end)
        if (after < 0) return this.#stop('number out of range')
        i = after
        values++
      }
      // Each of true, false and null has exactly one of these letters, and no other token outside strings has any.
      else if (unit === 116 || unit === 102 || unit === 110) values++
      if (values > maxValues) return this.#stop('too many values')
    }
    this.#at = i
    this.#depth = depth
    this.#keys = keys
    this.#values = values
    return i < end
  }

  #stop(problem: JsonProblem): false {
    this.problem = problem
    return false
  }
}

/** Scans the whole text at once, for small texts. */
export function scanJson(text: string, limits: JsonLimits): JsonProblem | undefined {
  const scan = new JsonScan(text, limits)
  scan.advance(text.length)
  return scan.problem
}

/** The index of the closing quote: the next quote, unless it is escaped. */
function endOfString(text: string, open: number, end: number): number {
  const next = text.indexOf('"', open + 1)
  if (next === -1) return end
  if (text.charCodeAt(next - 1) !== BACKSLASH) return next
  let i = open + 1
  for (; i < end; i++) {
    const unit = text.charCodeAt(i)
    if (unit === BACKSLASH) i++
    else if (unit === QUOTE) break
  }
  return i
}

/** The index of the number's last character; negative if the number is out of range (1e999 parses to Infinity). */
function endOfNumber(text: string, start: number, end: number): number {
  let i = start + 1
  let hasExponent = false
  for (; i < end; i++) {
    const unit = text.charCodeAt(i)
    if (unit === 101 || unit === 69) hasExponent = true
    else if (!((unit >= 48 && unit <= 57) || unit === 46 || unit === 43 || unit === 45)) break
  }
  if ((hasExponent || i - start > 300) && Number(text.slice(start, i)) === Number.POSITIVE_INFINITY) return -1
  return i - 1
}
