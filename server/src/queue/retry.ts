const FIRST_MS = 1_000
const LONGEST_MS = 15 * 60_000

/** 12 attempts span 16 to 32 minutes: longer than a provider's bad moment, shorter than anybody's patience. */
export const MAX_ATTEMPTS = 12

/** Doubles with each attempt. Half of it is random, so that what failed together does not come back together. */
export function retryDelayMs(attempt: number, random: () => number): number {
  const delay = Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempt - 1))
  return Math.round(delay * (0.5 + random() / 2))
}
