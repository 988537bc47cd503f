// Who enters a journey, and who leaves it early.

import { ownProperty } from '../../lib/own-property.ts'
import type { SegmentId } from '../../segments/segment.ts'
import type { EarlyExit, JourneyAudience } from '../journey.ts'
import { MAX_EVENT_NAME, readEventMatch, readSegments, readTags } from './read-fields.ts'
import { type Fields, isPresent } from './reader.ts'
import type { DocumentReading } from './reading.ts'

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
