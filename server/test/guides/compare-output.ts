// What a guide shows against what a command printed. Ids, times and secrets differ each time: where a guide has one, any of its kind will
// do, and `…` stands for whatever is there.

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
/** Milliseconds or seconds since 1970. */
const isMoment = (value: unknown) => typeof value === 'number' && value > 1_000_000_000

export function matches(shown: unknown, printed: unknown): boolean {
  if (typeof shown === 'string') return matchesText(shown, printed)
  if (isMoment(shown)) return isMoment(printed)
  if (Array.isArray(shown)) return Array.isArray(printed) && matchesList(shown, printed)
  if (typeof shown === 'object' && shown !== null)
    return typeof printed === 'object' && printed !== null && matchesObject(shown, printed)
  return shown === printed
}

function matchesText(shown: string, printed: unknown): boolean {
  if (shown === '…') return true
  if (typeof printed !== 'string') return false
  for (const kind of [UUID, TIME]) if (kind.test(shown)) return kind.test(printed)
  const pieces = shown.split('…').map((piece) => piece.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${pieces.join('[^]*')}$`).test(printed)
}

/** A last element `"…"` stands for any number of others. */
function matchesList(shown: unknown[], printed: unknown[]): boolean {
  const isOpen = shown.at(-1) === '…'
  const wanted = isOpen ? shown.slice(0, -1) : shown
  if (!isOpen && printed.length !== wanted.length) return false
  if (isOpen) return wanted.every((item) => printed.some((candidate) => matches(item, candidate)))
  return wanted.every((item, index) => matches(item, printed[index]))
}

/** A key `"…"` stands for any number of others. */
function matchesObject(shown: object, printed: object): boolean {
  const wanted = Object.entries(shown).filter(([key]) => key !== '…')
  if (!('…' in shown) && Object.keys(printed).length !== wanted.length) return false
  const values = new Map(Object.entries(printed))
  return wanted.every(([key, value]) => values.has(key) && matches(value, values.get(key)))
}

/** Several JSON values, one behind the other. */
export function readJsonValues(text: string): unknown[] {
  const values: unknown[] = []
  let piece = ''
  for (const line of text.split('\n')) {
    piece += `${line}\n`
    if (piece.trim() === '') continue
    try {
      values.push(JSON.parse(piece))
      piece = ''
    } catch {
      // A value may have many lines.
    }
  }
  if (piece.trim() !== '') throw new Error(`not JSON: ${piece.slice(0, 300)}`)
  return values
}

export function printsAsShown(prints: { kind: 'json' | 'text'; text: string }, printed: string): boolean {
  if (prints.kind === 'text') return matchesText(prints.text.trim(), printed.trim())
  try {
    return matches(readJsonValues(prints.text), readJsonValues(printed))
  } catch {
    return false
  }
}
