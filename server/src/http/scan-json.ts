// One look over the text of a body before JSON.parse sees it. JSON.parse takes 100,000 nested arrays without complaint, and
// everything that walks the result afterwards (a validator, JSON.stringify) overflows its stack.

export type JsonProblem = 'too deep' | 'too many keys' | 'number out of range'

const QUOTE = 34
const BACKSLASH = 92
const COLON = 58

/** Linear and without recursion. Text that is no JSON at all is left for JSON.parse to refuse. */
export function scanJson(text: string, maxDepth: number, maxKeys: number): JsonProblem | undefined {
  const end = text.length
  let depth = 0
  let keys = 0
  for (let i = 0; i < end; i++) {
    const unit = text.charCodeAt(i)
    if (unit === QUOTE) i = endOfString(text, i, end)
    else if (unit === COLON) {
      if (++keys > maxKeys) return 'too many keys'
    } else if (unit === 123 || unit === 91) {
      if (++depth > maxDepth) return 'too deep'
    } else if (unit === 125 || unit === 93) depth--
    else if (unit >= 48 && unit <= 57) {
      const after = endOfNumber(text, i, end)
      if (after < 0) return 'number out of range'
      i = after
    }
  }
  return undefined
}

/** Where the closing quote is: the next one, unless there is a backslash before it. */
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

/** Where the number's last character is; below zero when it is beyond what a number can hold (1e999 parses to Infinity). */
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
