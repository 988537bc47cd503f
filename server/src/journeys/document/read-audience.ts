// Who enters a journey, who leaves it early, and the conditions on events and segments that branches share with them.

import { ownProperty } from '../../lib/own-property.ts'
import type { SegmentId } from '../../segments/segment.ts'
import {
  type EarlyExit,
  EVENT_OPERATORS,
  type EventAttribute,
  type EventMatch,
  type JourneyAudience,
} from '../journey.ts'
import { type Fields, isPresent } from './reader.ts'
import type { DocumentReading } from './reading.ts'

const MAX_SEGMENTS = 50
const MAX_ATTRIBUTES = 50
const MAX_EVENT_NAME = 255
const MAX_KEY = 255
const MAX_VALUE = 1_024
export const MAX_TAGS = 100

export function readAudience(reading: DocumentReading, value: unknown): JourneyAudience | undefined {
  const { reader } = reading
  const given = reader.object('audience', value)
  const kind = given && reader.oneOf('audience.kind', given.kind, ['segment', 'event_trigger'])
  if (!given || !kind) return undefined
  if (kind === 'event_trigger') return { kind, ...readEventMatch(reading, 'audience', given) }
  return {
    kind,
    included_segment_ids: readSegments(reading, 'audience.included_segment_ids', given.included_segment_ids),
    excluded_segment_ids: readSegments(reading, 'audience.excluded_segment_ids', given.excluded_segment_ids),
    future_additions_only: reader.boolean('audience.future_additions_only', given.future_additions_only),
  }
}

export function readSegments(reading: DocumentReading, path: string, value: unknown): SegmentId[] {
  const ids = reading.reader.list(path, value, { most: MAX_SEGMENTS }).flatMap(([path, item]) => {
    const id = reading.reader.uuid(path, item)
    if (id === undefined) return []
    reading.uses.push({ kind: 'segment', id, path })
    return [id]
  })
  return [...new Set(ids)]
}

export function readEventMatch({ reader }: DocumentReading, path: string, given: Fields): EventMatch {
  const groups = reader.list(`${path}.attributes`, given.attributes)
  if (groups.length > 1) reader.report(`${path}.attributes`, 'must have one group at most')
  return {
    name: reader.text(`${path}.name`, given.name, MAX_EVENT_NAME) as string,
    attributes: groups
      .slice(0, 1)
      .map(([path, group]) =>
        reader
          .list(path, group, { least: 1, most: MAX_ATTRIBUTES })
          .map(([path, item]) => readAttribute(reader, path, item) as EventAttribute),
      ),
  }
}

function readAttribute(reader: DocumentReading['reader'], path: string, value: unknown): EventAttribute | undefined {
  const given = reader.object(path, value)
  if (!given) return undefined
  const key = reader.text(`${path}.key`, given.key, MAX_KEY) as string
  const operator = reader.oneOf(`${path}.operator`, given.operator, EVENT_OPERATORS)
  if (!operator) return undefined
  if (operator === 'exists' || operator === 'not_exists') return { key, operator }
  const operand = reader.text(`${path}.value`, given.value, MAX_VALUE)
  if (operand !== undefined && /^(less|greater)/.test(operator) && !Number.isFinite(Number(operand)))
    reader.report(`${path}.value`, `must be a number for ${operator}`)
  if (operand !== undefined && /^(before|after)$/.test(operator) && !isTime(operand))
    reader.report(`${path}.value`, `must be an ISO 8601 date, or date and time, for ${operator}`)
  return { key, operator, value: operand as string }
}

const isTime = (text: string) => /^\d{4}-\d\d-\d\d(T|$)/.test(text) && !Number.isNaN(Date.parse(text))

export function readEarlyExit(reading: DocumentReading, value: unknown): EarlyExit | null {
  const { reader } = reading
  if (!isPresent(value)) return null
  const given = reader.object('early_exit', value)
  const rules = given && reader.object('early_exit.rules', given.rules)
  if (!given || !rules) return null
  const path = 'early_exit.rules'
  const onSegment = isPresent(rules.on_segment) ? reader.object(`${path}.on_segment`, rules.on_segment) : undefined
  const onEvent = isPresent(rules.on_event) ? reader.object(`${path}.on_event`, rules.on_event) : undefined
  const read = {
    on_segment: onSegment ? { included_segment_ids: readExitSegments(reading, onSegment) } : null,
    when_not_in_audience: reader.boolean(`${path}.when_not_in_audience`, rules.when_not_in_audience),
    on_session: reader.boolean(`${path}.on_session`, rules.on_session),
    on_event: onEvent ? { name: reader.text(`${path}.on_event.name`, onEvent.name, MAX_EVENT_NAME) as string } : null,
  }
  // What is wrong with a rule was told where it stands.
  if (!Object.keys(read).some((name) => isPresent(ownProperty(rules, name)) && ownProperty(rules, name) !== false))
    reader.report(path, 'must have at least one rule; early_exit: null removes all of them')
  return { rules: read, tag_on_early_exit: readTags(reading, 'early_exit.tag_on_early_exit', given.tag_on_early_exit) }
}

function readExitSegments(reading: DocumentReading, given: Fields): SegmentId[] {
  const path = 'early_exit.rules.on_segment.included_segment_ids'
  const ids = readSegments(reading, path, given.included_segment_ids)
  if (ids.length === 0) reading.reader.report(path, 'must name at least one segment')
  return ids
}

/** Tags to be set on a user; an empty value takes one away. Values may hold Liquid. */
export function readTags({ reader, texts }: DocumentReading, path: string, value: unknown): Record<string, string> {
  const given = isPresent(value) ? reader.object(path, value) : {}
  const entries = Object.entries(given ?? {}).filter(([, value]) => value !== null)
  if (entries.length > MAX_TAGS) reader.report(path, `must have at most ${MAX_TAGS} tags`)
  for (const [key, value] of entries.slice(0, MAX_TAGS)) {
    const here = `${path}.${key.slice(0, MAX_KEY)}`
    if (reader.text(`a key of ${path}`, key, MAX_KEY) === undefined) continue
    if (typeof value !== 'string') reader.report(here, 'must be a string')
    else if (value !== '' && reader.text(here, value, MAX_VALUE) !== undefined)
      texts[here] = { kind: 'text', text: value }
  }
  return Object.fromEntries(entries) as Record<string, string>
}
