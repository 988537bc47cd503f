// A journey as an author sent it, or as it would be after a change, with all that is wrong with it.

import type { NewId } from '../../lib/ids.ts'
import { codePoints } from '../../lib/text.ts'
import type { Audience, Document, journeyObject, Schedule } from '../journey.ts'
import { giveIds } from './assign-ids.ts'
import { readAudience, readEarlyExit } from './read-audience.ts'
import { readNodes } from './read-nodes.ts'
import { type Fields, isGiven } from './reader.ts'
import { createReading, type Reading, type Use } from './reading.ts'

const MAX_NAME = 300
const MAX_DESCRIPTION = 1_024
const MIN_REENTRY_SECONDS = 600
const MAX_REENTRY_SECONDS = 315_569_520
/** A start lies at least so far ahead: time to see the mistake. */
const START_AHEAD_MS = 5 * 60_000

export const DOCUMENT_FIELDS = [
  'name',
  'description',
  'audience',
  'early_exit',
  'reentry_rules',
  'schedule',
  'nodes',
] as const satisfies readonly (keyof Document)[]

/** `state` can be asked for in a change. */
const READ_ONLY = ['id', 'app_id', 'created_at', 'updated_at', 'started_at', 'archived_at', 'created_source'] as const

export type ReadOptions = {
  /** What it was before: its nodes keep their ids, its moments need not lie ahead any more. */
  before: Document | undefined
  now: Date
  minWaitSeconds: number
  newId: NewId
}

export function readDocument(given: Fields, { before, now, minWaitSeconds, newId }: ReadOptions) {
  const kind = (given.audience as Partial<Audience> | null | undefined)?.kind
  const reading = createReading(minWaitSeconds, kind === 'event_trigger')
  const { reader } = reading
  if (!isGiven(given.nodes)) reader.say('nodes', 'must be a list')
  const document = {
    name: reader.text('name', given.name, MAX_NAME),
    description: readDescription(reading, given.description),
    audience: readAudience(reading, given.audience),
    early_exit: readEarlyExit(reading, given.early_exit),
    reentry_rules: readReentry(reading, given.reentry_rules),
    schedule: readSchedule(reading, given.schedule, before?.schedule ?? null, now),
    nodes: readNodes(reading, 'nodes', given.nodes),
  } as Document
  giveIds(reading, before?.nodes ?? [], newId)
  return { document, reading }
}

/** Somebody may send back what they were shown, but not something else. */
export function refuseReadOnly({ reader }: Reading, given: Fields, before: Shown | undefined): void {
  for (const name of READ_ONLY)
    if (isGiven(given[name]) && given[name] !== before?.[name]) reader.say(name, 'is read-only')
  const error = (given.schedule as Fields | null | undefined)?.error
  if (isGiven(error) && error !== before?.schedule?.error) reader.say('schedule.error', 'is read-only')
}

type Shown = ReturnType<typeof journeyObject>

/** All that a journey refers to, which was read before and need not be judged again. */
export const usesOf = (document: Document): Use[] =>
  readDocument(document, { before: document, now: new Date(0), minWaitSeconds: 1, newId: () => '' }).reading.uses

function readDescription({ reader }: Reading, value: unknown): string {
  if (!isGiven(value)) return ''
  if (typeof value !== 'string') reader.say('description', 'must be a string')
  else if (codePoints(value) > MAX_DESCRIPTION)
    reader.say('description', `must have at most ${MAX_DESCRIPTION} characters`)
  return value as string
}

function readReentry({ reader, isEventJourney }: Reading, value: unknown): Document['reentry_rules'] {
  if (!isGiven(value)) return null
  const given = reader.object('reentry_rules', value)
  if (!given) return null
  if (isEventJourney)
    reader.say('reentry_rules', 'is for segment audiences: a journey that events trigger can always be entered again')
  const path = 'reentry_rules.duration_seconds'
  const seconds = reader.integer(path, given.duration_seconds, MIN_REENTRY_SECONDS, MAX_REENTRY_SECONDS)
  return { duration_seconds: seconds as number }
}

function readSchedule({ reader }: Reading, value: unknown, before: Schedule | null, now: Date): Schedule | null {
  if (!isGiven(value)) return null
  const given = reader.object('schedule', value)
  if (!given) return null
  const read = (name: 'start_at' | 'stop_at', aheadMs: number, demand: string) => {
    const path = `schedule.${name}`
    const at = isGiven(given[name]) ? reader.moment(path, given[name]) : undefined
    if (at !== undefined && at !== before?.[name] && Date.parse(at) < now.getTime() + aheadMs) reader.say(path, demand)
    return at ?? null
  }
  const start_at = read('start_at', START_AHEAD_MS, 'must be at least 5 minutes ahead')
  const stop_at = read('stop_at', 1, 'must be in the future')
  if (start_at !== null && stop_at !== null && stop_at <= start_at)
    reader.say('schedule.stop_at', 'must be after schedule.start_at')
  return start_at === null && stop_at === null ? null : { start_at, stop_at }
}
