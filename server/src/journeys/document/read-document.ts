// Reads a journey as an author sent it, or as it would be after a change, and collects all problems.

import type { NewId } from '../../lib/ids.ts'
import { codePoints } from '../../lib/text.ts'
import type { JourneyAudience, JourneyDocument, JourneySchedule, journeyObject } from '../journey.ts'
import { giveIds } from './assign-ids.ts'
import { readAudience, readEarlyExit } from './read-audience.ts'
import { readNodes } from './read-nodes.ts'
import { type Fields, isPresent } from './reader.ts'
import { createDocumentReading, type DocumentReading, type Reference } from './reading.ts'

const MAX_NAME = 300
const MAX_DESCRIPTION = 1_024
const MIN_REENTRY_SECONDS = 600
const MAX_REENTRY_SECONDS = 315_569_520
/** The shortest notice of a start: time to notice a mistake. */
const START_AHEAD_MS = 5 * 60_000

export const DOCUMENT_FIELDS = [
  'name',
  'description',
  'audience',
  'early_exit',
  'reentry_rules',
  'schedule',
  'nodes',
] as const satisfies readonly (keyof JourneyDocument)[]

/** `state` is missing here, because a change may request it. */
const READ_ONLY = ['id', 'app_id', 'created_at', 'updated_at', 'started_at', 'archived_at', 'created_source'] as const

export type ReadOptions = {
  /** The journey before the change: its nodes keep their ids, and its times may lie in the past. */
  before: JourneyDocument | undefined
  now: Date
  minWaitSeconds: number
  newId: NewId
}

export function readDocument(given: Fields, { before, now, minWaitSeconds, newId }: ReadOptions) {
  const kind = (given.audience as Partial<JourneyAudience> | null | undefined)?.kind
  const reading = createDocumentReading(minWaitSeconds, kind === 'event_trigger')
  const { reader } = reading
  if (!isPresent(given.nodes)) reader.report('nodes', 'must be a list')
  const document = {
    name: reader.text('name', given.name, MAX_NAME),
    description: readDescription(reading, given.description),
    audience: readAudience(reading, given.audience),
    early_exit: readEarlyExit(reading, given.early_exit),
    reentry_rules: readReentry(reading, given.reentry_rules),
    schedule: readSchedule(reading, given.schedule, before?.schedule ?? null, now),
    nodes: readNodes(reading, 'nodes', given.nodes),
  } as JourneyDocument
  giveIds(reading, before?.nodes ?? [], newId)
  return { document, reading }
}

/** A client may send back what it was shown, but no other value. */
export function refuseReadOnly({ reader }: DocumentReading, given: Fields, before: ShownJourney | undefined): void {
  for (const name of READ_ONLY)
    if (isPresent(given[name]) && given[name] !== before?.[name]) reader.report(name, 'is read-only')
  const error = (given.schedule as Fields | null | undefined)?.error
  if (isPresent(error) && error !== before?.schedule?.error) reader.report('schedule.error', 'is read-only')
}

type ShownJourney = ReturnType<typeof journeyObject>

/** Everything that a stored journey refers to. */
export const referencesOf = (document: JourneyDocument): Reference[] =>
  readDocument(document, { before: document, now: new Date(0), minWaitSeconds: 1, newId: () => '' }).reading.references

function readDescription({ reader }: DocumentReading, value: unknown): string {
  if (!isPresent(value)) return ''
  if (typeof value !== 'string') reader.report('description', 'must be a string')
  else if (codePoints(value) > MAX_DESCRIPTION)
    reader.report('description', `must have at most ${MAX_DESCRIPTION} characters`)
  return value as string
}

function readReentry({ reader, isEventJourney }: DocumentReading, value: unknown): JourneyDocument['reentry_rules'] {
  if (!isPresent(value)) return null
  const given = reader.object('reentry_rules', value)
  if (!given) return null
  if (isEventJourney)
    reader.report(
      'reentry_rules',
      'is for segment audiences: a journey that events trigger can always be entered again',
    )
  const path = 'reentry_rules.duration_seconds'
  const seconds = reader.integer(path, given.duration_seconds, MIN_REENTRY_SECONDS, MAX_REENTRY_SECONDS)
  return { duration_seconds: seconds as number }
}

function readSchedule(
  { reader }: DocumentReading,
  value: unknown,
  before: JourneySchedule | null,
  now: Date,
): JourneySchedule | null {
  if (!isPresent(value)) return null
  const given = reader.object('schedule', value)
  if (!given) return null
  const read = (name: 'start_at' | 'stop_at', aheadMs: number, demand: string) => {
    const path = `schedule.${name}`
    const at = isPresent(given[name]) ? reader.time(path, given[name]) : undefined
    if (at !== undefined && at !== before?.[name] && Date.parse(at) < now.getTime() + aheadMs)
      reader.report(path, demand)
    return at ?? null
  }
  const start_at = read('start_at', START_AHEAD_MS, 'must be at least 5 minutes ahead')
  const stop_at = read('stop_at', 1, 'must be in the future')
  if (start_at !== null && stop_at !== null && stop_at <= start_at)
    reader.report('schedule.stop_at', 'must be after schedule.start_at')
  return start_at === null && stop_at === null ? null : { start_at, stop_at }
}
