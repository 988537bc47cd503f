const FIRST_MS = 1_000
const LONGEST_MS = 15 * 60_000

/**
 * 12 attempts span 16 to 32 minutes: longer than a provider's short outage, short enough that people still want the
 * result.
 */
export const MAX_ATTEMPTS = 12

/** Doubles with each attempt. Half of the delay is random, so that jobs that failed together do not retry together. */
export function retryDelayMs(attempt: number, random: () => number): number {
  const delay = Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempt - 1))
  return Math.round(delay * (0.5 + random() / 2))
}
