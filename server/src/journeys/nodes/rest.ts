// Rests that end at a time which is fixed on arrival.

import type { DocumentReading } from '../document/reading.ts'
import type { NodeDecision, NodeVisit } from './node-kind.ts'

/** The published limits: a minute, which a setting may lower, and an average year. */
const MAX_WAIT_SECONDS = 31_556_952
export const secondsSchema = { type: 'integer', minimum: 60, maximum: MAX_WAIT_SECONDS }

export const readDuration = ({ reader, minWaitSeconds }: DocumentReading, path: string, value: unknown) =>
  reader.integer(path, value, minWaitSeconds, MAX_WAIT_SECONDS)

export const secondsAfter = (time: Date, seconds: number) => new Date(time.getTime() + seconds * 1_000)

export function restUntil({ now, arrivedAt, untilAt }: NodeVisit, findEnd: () => Date | undefined): NodeDecision {
  const end = arrivedAt === undefined ? findEnd() : untilAt
  return end && end <= now ? { kind: 'continues' } : { kind: 'rests', untilAt: end, dueAt: end }
}
