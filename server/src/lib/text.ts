// Rules for text that are the same in TypeScript and SQL: lengths count code points, as PostgreSQL's length() does.

/** Code points, not UTF-16 units: 128 emoji are 128 characters. */
export function codePoints(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit <= 0xdbff) {
      const next = text.charCodeAt(i + 1)
      if (next >= 0xdc00 && next <= 0xdfff) {
        count--
        i++
      }
    }
  }
  return count
}

/** PostgreSQL stores neither U+0000 nor unpaired surrogates; both would surface as a database error. */
export const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()

/** The path of the first string in a parsed JSON value that cannot be stored; undefined when all can. */
export function findUnstorable(value: unknown, path = ''): string | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : path || 'body'
  if (value === null || typeof value !== 'object') return undefined
  for (const [key, child] of Object.entries(value)) {
    const here = path ? `${path}.${key}` : key
    if (!isStorable(key)) return path || 'body'
    const found = findUnstorable(child, here)
    if (found !== undefined) return found
  }
  return undefined
}
