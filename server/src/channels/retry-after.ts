const LONGEST_MS = 24 * 3_600_000

/** How long a Retry-After asks us to wait: seconds, or a date. Undefined when it asks nothing that we understand. */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  const text = value?.trim() ?? ''
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : readDate(text) - now.getTime()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_MS) : undefined
}

/** All forms of HTTP begin with the day of the week; what else Date.parse would take is no date of theirs. */
const readDate = (text: string) => (/^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN)
