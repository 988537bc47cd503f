const LONGEST_MS = 24 * 3_600_000

/** Parses Retry-After: seconds, or a date. Returns undefined if the value is invalid. */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  const text = value?.trim() ?? ''
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : readDate(text) - now.getTime()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_MS) : undefined
}

/** All HTTP date formats begin with the day of the week; Date.parse would also accept other formats. */
const readDate = (text: string) => (/^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN)
