// The nodes of a journey, each kind with its own fields; what a kind does not know is dropped.

import { ownProperty } from '../../lib/own-property.ts'
import { isTimeZone } from '../../lib/time-zone.ts'
import {
  CHANNEL_OF,
  type JourneyNode,
  NODE_KINDS,
  type NodeKind,
  sendsTemplate,
  type TimeOfDay,
  type TimeWindow,
} from '../nodes/node.ts'
import { MAX_TAGS, readTags } from './read-audience.ts'
import { readBranches, readDuration } from './read-branches.ts'
import { type Fields, isPresent } from './reader.ts'
import type { DocumentReading } from './reading.ts'

export const MAX_NODES = 500
/** Branching nodes inside each other. */
export const MAX_NESTING = 10
const MAX_CLIENT_ID = 255
const MAX_ANNOTATION = 255
const MAX_WINDOWS = 100
const SHORTEST_WINDOW_MINUTES = 15
const DAY_MINUTES = 24 * 60

export function readNodes(reading: DocumentReading, path: string, value: unknown, depth = 0): JourneyNode[] {
  const { reader } = reading
  // Each of them is a node or a problem, so that one more than may be there is enough to refuse the list.
  const items = reader.list(path, Array.isArray(value) ? value.slice(0, MAX_NODES + 1) : value)
  if (depth > MAX_NESTING && items.length > 0) {
    reader.report(path, `is nested deeper than ${MAX_NESTING} branching nodes`)
    return []
  }
  return items.flatMap(([path, item]) => {
    if (reading.nodes.length === MAX_NODES)
      reader.report(path, `is one node too many; a journey has at most ${MAX_NODES}`)
    return reading.nodes.length >= MAX_NODES ? [] : (readNode(reading, path, item, depth) ?? [])
  })
}

function readNode(reading: DocumentReading, path: string, value: unknown, depth: number): JourneyNode | undefined {
  const { reader } = reading
  const given = reader.object(path, value)
  const kind = given && reader.oneOf(`${path}.kind`, given.kind, NODE_KINDS)
  if (!given || !kind) return undefined
  const node = {
    // Given out when all nodes are known.
    id: '',
    kind,
    ...(isPresent(given.client_node_id) && {
      client_node_id: reader.text(`${path}.client_node_id`, given.client_node_id, MAX_CLIENT_ID),
    }),
    ...(isPresent(given.annotation) &&
      given.annotation !== '' && {
        annotation: reader.text(`${path}.annotation`, given.annotation, MAX_ANNOTATION),
      }),
  } as JourneyNode
  const givenId = isPresent(given.id) ? reader.uuid(`${path}.id`, given.id) : undefined
  reading.nodes.push({ path, node, givenId })
  return Object.assign(node, readFields(reading, path, given, node, depth))
}

function readFields(reading: DocumentReading, path: string, given: Fields, node: JourneyNode, depth: number): object {
  const { reader } = reading
  const kind: NodeKind = node.kind
  const use = (name: string, use: 'template' | 'webhook' | 'iam') => {
    const id = reader.uuid(`${path}.${name}`, ownProperty(given, name))
    if (id !== undefined)
      reading.uses.push({
        kind: use,
        id,
        path: `${path}.${name}`,
        ...(sendsTemplate(kind) && { channel: CHANNEL_OF[kind] }),
      })
    return { [name]: id }
  }
  switch (kind) {
    case 'wait':
      return { duration_seconds: readDuration(reading, `${path}.duration_seconds`, given.duration_seconds) }
    case 'time_window':
      return readTimeWindow(reading, path, given)
    case 'send_push':
    case 'send_email':
    case 'send_sms':
      return use('template_id', 'template')
    case 'send_iam':
      return {
        ...use('iam_id', 'iam'),
        user_ttl_seconds: isPresent(given.user_ttl_seconds)
          ? reader.integer(`${path}.user_ttl_seconds`, given.user_ttl_seconds, 1, 2_147_483_647)
          : null,
      }
    case 'send_webhook':
      return use('webhook_id', 'webhook')
    case 'tag':
      return { assignments: readAssignments(reading, `${path}.assignments`, given.assignments) }
    default:
      return readBranches(reading, path, given, node, (path, nodes) => readNodes(reading, path, nodes, depth + 1))
  }
}

function readAssignments(reading: DocumentReading, path: string, value: unknown): Record<string, string> {
  if (!isPresent(value)) reading.reader.report(path, 'is required')
  const tags = readTags(reading, path, value)
  if (isPresent(value) && Object.keys(tags).length === 0) reading.reader.report(path, `must have 1 to ${MAX_TAGS} tags`)
  return tags
}

function readTimeWindow({ reader }: DocumentReading, path: string, given: Fields): object {
  const relative_to = reader.oneOf(`${path}.relative_to`, given.relative_to, [
    'schedule_in_timezone',
    'last_active_time',
  ])
  if (relative_to !== 'schedule_in_timezone') {
    if (relative_to && isPresent(given.windows) && reader.list(`${path}.windows`, given.windows).length > 0)
      reader.report(`${path}.windows`, 'must be left out for last_active_time')
    return { relative_to }
  }
  const zone = isPresent(given.time_zone) ? given.time_zone : 'UTC'
  if (typeof zone !== 'string' || !isTimeZone(zone))
    reader.report(`${path}.time_zone`, 'must be the name of a time zone, as Europe/Berlin')
  return {
    relative_to,
    windows: reader
      .list(`${path}.windows`, given.windows, { least: 1, most: MAX_WINDOWS })
      .map(([path, window]) => readWindow(reader, path, window)),
    time_zone: zone,
    use_user_time_zone: reader.boolean(`${path}.use_user_time_zone`, given.use_user_time_zone),
  }
}

function readWindow(reader: DocumentReading['reader'], path: string, value: unknown): TimeWindow | undefined {
  const given = reader.object(path, value)
  if (!given) return undefined
  const start = readTimePoint(reader, `${path}.start`, given.start)
  const end = readTimePoint(reader, `${path}.end`, given.end)
  const day = isPresent(given.day_of_week) ? reader.integer(`${path}.day_of_week`, given.day_of_week, 1, 7) : undefined
  if (!start || !end) return undefined
  if (windowMinutes({ start, end }) < SHORTEST_WINDOW_MINUTES)
    reader.report(path, `must be at least ${SHORTEST_WINDOW_MINUTES} minutes long`)
  return { start, end, ...(day !== undefined && { day_of_week: day }) }
}

/** An end that is not after the start is on the next day. */
function windowMinutes({ start, end }: Pick<TimeWindow, 'start' | 'end'>) {
  const minutes = (end.hour - start.hour) * 60 + end.minute - start.minute
  return minutes > 0 ? minutes : minutes + DAY_MINUTES
}

function readTimePoint(reader: DocumentReading['reader'], path: string, value: unknown): TimeOfDay | undefined {
  const given = reader.object(path, value)
  if (!given) return undefined
  const hour = reader.integer(`${path}.hour`, given.hour, 0, 23)
  const minute = isPresent(given.minute) ? reader.integer(`${path}.minute`, given.minute, 0, 59) : 0
  return hour === undefined || minute === undefined ? undefined : { hour, minute }
}
