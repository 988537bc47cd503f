// The nodes that lead several ways, and the conditions that decide.

import {
  type BranchCondition,
  type EventPair,
  type JourneyBranch,
  type JourneyNode,
  MESSAGE_ACTIONS,
} from '../nodes/node.ts'
import { readEventMatch, readSegments } from './read-audience.ts'
import { type Fields, isPresent } from './reader.ts'
import type { DocumentReading } from './reading.ts'

const LEAST_AND_MOST = { split_range: [2, 20], yes_no: [2, 2], wait_until: [1, 10] } as const
const MAX_KEY = 255
const MAX_PAIRS = 20
const WHOLE = 100

/** The published ends of a wait: a minute, which a setting may lower, and an average year. */
const LONGEST_WAIT_SECONDS = 31_556_952
export const readDuration = ({ reader, minWaitSeconds }: DocumentReading, path: string, value: unknown) =>
  reader.integer(path, value, minWaitSeconds, LONGEST_WAIT_SECONDS)

type ReadInner = (path: string, nodes: unknown) => JourneyNode[]
type Item = { path: string; given: Fields; branch: JourneyBranch & { condition?: BranchCondition; weight?: number } }

export function readBranches(
  reading: DocumentReading,
  path: string,
  given: Fields,
  node: JourneyNode,
  readInner: ReadInner,
): object {
  const { reader } = reading
  const kind = node.kind as keyof typeof LEAST_AND_MOST
  const [least, most] = LEAST_AND_MOST[kind]
  const items = reader.list(`${path}.branches`, given.branches, { least, most }).flatMap(([path, value]): Item[] => {
    const given = reader.object(path, value)
    if (!given) return []
    const branch: JourneyBranch = { id: '', nodes: readInner(`${path}.nodes`, given.nodes) }
    const givenId = isPresent(given.id) ? reader.uuid(`${path}.id`, given.id) : undefined
    reading.branches.push({ path, node, branch, givenId })
    return [{ path, given, branch }]
  })
  const branches = items.map(({ branch }) => branch)
  switch (kind) {
    case 'split_range':
      readWeights(reading, `${path}.branches`, items)
      return { randomize_on_entry: reader.boolean(`${path}.randomize_on_entry`, given.randomize_on_entry), branches }
    case 'yes_no':
      for (const [n, item] of items.entries()) {
        if (n === 0) item.branch.condition = readCondition(reading, item) as BranchCondition
        else if (isPresent(item.given.condition))
          reader.report(`${item.path}.condition`, 'must be left out: the second branch is the way of all others')
      }
      return { branches }
    case 'wait_until':
      for (const item of items) item.branch.condition = readCondition(reading, item) as BranchCondition
      if (branches.filter(({ condition }) => condition?.kind === 'on_notification_action').length > 1)
        reader.report(`${path}.branches`, 'must have one condition of the kind on_notification_action at most')
      return { branches, expiration: readExpiration(reading, `${path}.expiration`, given.expiration) }
  }
}

/** In hundredths, because 33.3, 33.3 and 33.4 are 100 as well. */
function readWeights({ reader }: DocumentReading, path: string, items: readonly Item[]): void {
  for (const { path, given, branch } of items) {
    const { weight } = given
    if (typeof weight !== 'number')
      reader.report(`${path}.weight`, isPresent(weight) ? 'must be a number' : 'is required')
    else if (weight < 0 || weight > WHOLE || Math.abs(weight * 100 - Math.round(weight * 100)) > 1e-6)
      reader.report(`${path}.weight`, 'must be from 0 to 100, with two decimals at most')
    else branch.weight = weight
  }
  const weights = items.flatMap(({ branch }) => branch.weight ?? [])
  const sum = Math.round(weights.reduce((sum, weight) => sum + weight * 100, 0)) / 100
  if (weights.length === items.length && items.length > 0 && sum !== WHOLE)
    reader.report(path, `must have weights that sum to 100, not ${sum}`)
}

function readExpiration(reading: DocumentReading, path: string, value: unknown) {
  if (!isPresent(value)) return null
  const given = reading.reader.object(path, value)
  return (
    given && {
      duration_seconds: readDuration(reading, `${path}.duration_seconds`, given.duration_seconds),
      exits: reading.reader.boolean(`${path}.exits`, given.exits),
    }
  )
}

function readCondition(reading: DocumentReading, item: Item): BranchCondition | undefined {
  const { reader } = reading
  const path = `${item.path}.condition`
  const given = reader.object(path, item.given.condition)
  const kind =
    given && reader.oneOf(`${path}.kind`, given.kind, ['segment_membership', 'on_notification_action', 'event_trigger'])
  if (!given || !kind) return undefined
  if (kind === 'event_trigger')
    return {
      kind,
      ...readEventMatch(reading, path, given),
      entry_event_match_attributes: readPairs(reading, path, given),
    }
  if (kind === 'segment_membership') {
    const included_segment_ids = readSegments(reading, `${path}.included_segment_ids`, given.included_segment_ids)
    const excluded_segment_ids = readSegments(reading, `${path}.excluded_segment_ids`, given.excluded_segment_ids)
    if (included_segment_ids.length + excluded_segment_ids.length === 0)
      reader.report(path, 'must name at least one segment')
    return { kind, included_segment_ids, excluded_segment_ids }
  }
  const action = reader.oneOf(`${path}.action`, given.action, MESSAGE_ACTIONS) as (typeof MESSAGE_ACTIONS)[number]
  const condition = { kind, action, sending_node_id: '' }
  const [hasId, hasName] = [isPresent(given.sending_node_id), isPresent(given.client_node_id)]
  if (hasId === hasName) reader.report(path, 'must have sending_node_id or client_node_id, and one of them only')
  else
    reading.senders.push({
      path,
      condition,
      nodeId: hasId ? reader.uuid(`${path}.sending_node_id`, given.sending_node_id) : undefined,
      clientNodeId: hasName ? reader.text(`${path}.client_node_id`, given.client_node_id, MAX_KEY) : undefined,
    })
  return condition
}

function readPairs({ reader, isEventJourney }: DocumentReading, path: string, given: Fields): EventPair[] {
  const field = `${path}.entry_event_match_attributes`
  const items = reader.list(field, given.entry_event_match_attributes, { most: MAX_PAIRS })
  if (items.length > 0 && !isEventJourney) reader.report(field, 'is for journeys with an event_trigger audience')
  return items.flatMap(([path, value]): EventPair[] => {
    const given = reader.object(path, value)
    if (!given) return []
    const key = reader.text(`${path}.key`, given.key, MAX_KEY) as string
    const entry = isPresent(given.entry_key) ? reader.text(`${path}.entry_key`, given.entry_key, MAX_KEY) : key
    return [{ key, entry_key: entry as string }]
  })
}
