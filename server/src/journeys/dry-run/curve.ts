// When something will happen, by how often it happened before. Pure.

/**
 * What share of users did something within so many seconds: how long ago they last did it, for some times. Looked at from any
 * moment, the next time is as far away as the last one is.
 */
export type Curve = { seconds: number; share: number }[]

/** The times that are looked at, beside those that the journey itself waits. */
const HOUR = 3_600
const DAY = 24 * HOUR
export const LONGEST = 30 * DAY
export const TIMES = [HOUR, 6 * HOUR, DAY, 3 * DAY, 7 * DAY, 14 * DAY, LONGEST]

/** After how many seconds, for whoever drew this number from 0 up to 1; undefined: not at all. Between two times evenly. */
export function secondsUntil(curve: Curve, drawn: number): number | undefined {
  let before = { seconds: 0, share: 0 }
  for (const point of curve) {
    if (drawn < point.share) {
      const part = (drawn - before.share) / (point.share - before.share)
      return before.seconds + part * (point.seconds - before.seconds)
    }
    before = point
  }
  return undefined
}

/** Shares of those who did it at all, where only some of them did it the way that is meant. */
export const scaleCurve = (curve: Curve, by: number): Curve =>
  curve.map(({ seconds, share }) => ({ seconds, share: share * by }))
