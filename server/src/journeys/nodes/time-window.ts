// A node that lets users through while a window is open: at times of the day and the week, or when they were last active.

import {
  DAY_MS,
  dayOf,
  instantOf,
  isTimeZone,
  nextTimeOfDay,
  type TimeZone,
  timeZoneOf,
  wallOf,
} from '../../lib/time-zone.ts'
import { flag, object } from '../document/json-schema.ts'
import { type Fields, isPresent, type Reader } from '../document/reader.ts'
import type { DocumentReading } from '../document/reading.ts'
import type { BaseNode } from './node.ts'
import type { NodeDecision, NodeKindDefinition, NodeVisit, ReadFields, RunQuestion } from './node-kind.ts'
import { pickNumber } from './pick.ts'
import { restUntil } from './rest.ts'

export type TimeOfDay = { hour: number; minute: number }
/** Open on every day, unless a day is given: 1 is Monday. An end that is not after the start is on the next day. */
export type TimeWindow = { start: TimeOfDay; end: TimeOfDay; day_of_week?: number }

interface LastActiveNode extends BaseNode {
  kind: 'time_window'
  relative_to: 'last_active_time'
}

interface ScheduleNode extends BaseNode {
  kind: 'time_window'
  relative_to: 'schedule_in_timezone'
  windows: TimeWindow[]
  time_zone: string
  use_user_time_zone: boolean
}

export type TimeWindowNode = LastActiveNode | ScheduleNode

const MAX_WINDOWS = 100
const MIN_WINDOW_MINUTES = 15
const DAY_MINUTES = 24 * 60
const MINUTE_MS = 60_000
const DAYS_AHEAD = 8

const point = object({
  hour: { type: 'integer', minimum: 0, maximum: 23 },
  minute: { type: 'integer', minimum: 0, maximum: 59, default: 0 },
})

export const timeWindow: NodeKindDefinition<TimeWindowNode> = {
  summary: 'users rest until a window opens',
  fields: {
    relative_to: { enum: ['schedule_in_timezone', 'last_active_time'], description: 'time_window' },
    windows: {
      type: 'array',
      description: 'time_window, for schedule_in_timezone. Each is at least 15 minutes long.',
      items: object(
        {
          start: point,
          end: { ...point, description: 'Not after the start: on the next day.' },
          day_of_week: {
            type: 'integer',
            minimum: 1,
            maximum: 7,
            description: '1 is Monday; every day without it.',
          },
        },
        ['start', 'end'],
      ),
    },
    time_zone: { type: 'string', default: 'UTC', description: 'time_window: for users whose own is not known.' },
    use_user_time_zone: flag('time_window'),
  },
  required: ['relative_to'],
  usesPresence: true,
  read: ({ reading, path, fields }) => readTimeWindow(reading, path, fields),
  decide: decideAtWindow,
}

function readTimeWindow({ reader }: DocumentReading, path: string, fields: Fields): ReadFields<TimeWindowNode> {
  const relative_to = reader.oneOf(`${path}.relative_to`, fields.relative_to, [
    'schedule_in_timezone',
    'last_active_time',
  ])
  if (relative_to !== 'schedule_in_timezone') {
    if (relative_to && isPresent(fields.windows) && reader.list(`${path}.windows`, fields.windows).length > 0)
      reader.report(`${path}.windows`, 'must be left out for last_active_time')
    return { relative_to }
  }
  const zone = isPresent(fields.time_zone) ? fields.time_zone : 'UTC'
  if (typeof zone !== 'string' || !isTimeZone(zone))
    reader.report(`${path}.time_zone`, 'must be the name of a time zone, as Europe/Berlin')
  return {
    relative_to,
    windows: reader
      .list(`${path}.windows`, fields.windows, { least: 1, most: MAX_WINDOWS })
      .map(([path, window]) => readWindow(reader, path, window) as TimeWindow),
    time_zone: zone as string,
    use_user_time_zone: reader.boolean(`${path}.use_user_time_zone`, fields.use_user_time_zone),
  }
}

function readWindow(reader: Reader, path: string, value: unknown): TimeWindow | undefined {
  const fields = reader.object(path, value)
  if (!fields) return undefined
  const start = readTimeOfDay(reader, `${path}.start`, fields.start)
  const end = readTimeOfDay(reader, `${path}.end`, fields.end)
  const day = isPresent(fields.day_of_week)
    ? reader.integer(`${path}.day_of_week`, fields.day_of_week, 1, 7)
    : undefined
  if (!start || !end) return undefined
  if (windowMinutes({ start, end }) < MIN_WINDOW_MINUTES)
    reader.report(path, `must be at least ${MIN_WINDOW_MINUTES} minutes long`)
  return { start, end, ...(day !== undefined && { day_of_week: day }) }
}

/** An end that is not after the start is on the next day. */
function windowMinutes({ start, end }: Pick<TimeWindow, 'start' | 'end'>) {
  const minutes = (end.hour - start.hour) * 60 + end.minute - start.minute
  return minutes > 0 ? minutes : minutes + DAY_MINUTES
}

function readTimeOfDay(reader: Reader, path: string, value: unknown): TimeOfDay | undefined {
  const fields = reader.object(path, value)
  if (!fields) return undefined
  const hour = reader.integer(`${path}.hour`, fields.hour, 0, 23)
  const minute = isPresent(fields.minute) ? reader.integer(`${path}.minute`, fields.minute, 0, 59) : 0
  return hour === undefined || minute === undefined ? undefined : { hour, minute }
}

const ZONE: RunQuestion = { key: 'zone', kind: 'zone' }
const PRESENCE: RunQuestion[] = [{ key: 'last active', kind: 'last active' }, ZONE]

function decideAtWindow(node: TimeWindowNode, visit: NodeVisit): NodeDecision {
  const { now, arrivedAt, facts, run } = visit
  if (arrivedAt !== undefined) return restUntil(visit, () => undefined)
  if (node.relative_to === 'last_active_time') {
    const [lastActive, zone] = [facts.get('last active'), facts.get('zone')]
    if (lastActive === undefined || zone === undefined) return { kind: 'asks', questions: PRESENCE }
    return restUntil(visit, () =>
      lastActive instanceof Date ? findSameTimeOfDay(timeZoneOf(zone as string | null), lastActive, now) : now,
    )
  }
  const ownZone = node.use_user_time_zone ? facts.get('zone') : null
  if (ownZone === undefined) return { kind: 'asks', questions: [ZONE] }
  const zone = timeZoneOf(ownZone as string | null, node.time_zone)
  return restUntil(visit, () => findOpenTime(node.windows, zone, now, pickNumber(run.id, node.id)))
}

type Opening = { start: Date; end: Date }

const timeOf = ({ hour, minute }: TimeOfDay) => (hour * 60 + minute) * MINUTE_MS

/** 1 is Monday, as in the interface. */
const weekdayOf = (dayMs: number) => ((Math.floor(dayMs / DAY_MS) + 3) % 7) + 1

/** The opening on the day that begins at `day` by the wall clock; undefined on other days of the week than the window's. */
function openingOn(zone: TimeZone, window: TimeWindow, day: number): Opening | undefined {
  if (window.day_of_week !== undefined && window.day_of_week !== weekdayOf(day)) return undefined
  const start = timeOf(window.start)
  const end = timeOf(window.end)
  return {
    start: instantOf(zone, day + start),
    end: instantOf(zone, day + end + (end <= start ? DAY_MS : 0), 'last'),
  }
}

/** Now while a window is open, else a time inside the next one; `share`, from 0 to 1, says how far into it. */
export function findOpenTime(
  windows: readonly TimeWindow[],
  zone: TimeZone,
  now: Date,
  share: number,
): Date | undefined {
  const today = dayOf(wallOf(zone, now))
  let next: Opening | undefined
  // A window of yesterday may last until today.
  for (let n = -1; n <= DAYS_AHEAD; n++)
    for (const window of windows) {
      const opening = openingOn(zone, window, today + n * DAY_MS)
      if (!opening || opening.end <= now) continue
      if (opening.start <= now) return now
      if (!next || opening.start < next.start) next = opening
    }
  return next && new Date(next.start.getTime() + Math.floor(share * (next.end.getTime() - next.start.getTime())))
}

/** When the user's clock shows the same time of day again. */
export function findSameTimeOfDay(zone: TimeZone, lastActive: Date, now: Date): Date {
  const wall = wallOf(zone, lastActive)
  return nextTimeOfDay(zone, wall - dayOf(wall), now)
}
