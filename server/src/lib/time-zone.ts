// Conversions between moments and local times, with the time zones that Node knows (Intl).
//
// A local time that does not exist, because clocks were set forward over it, means the moment at which they were set
// forward. A local time that occurs twice, because clocks were set back, means the first of the two, unless a caller
// asks for the last.

/** A local time, as the milliseconds since the epoch that it would have in UTC. */
type WallMs = number

export type TimeZone = {
  name: string
  /** How far the zone is ahead of UTC. */
  offsetMs(atMs: number): number
}

/** The time since midnight, in milliseconds. */
export type TimeOfDay = number

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
export const DAY_MS = 24 * HOUR_MS

export const UTC: TimeZone = { name: 'UTC', offsetMs: () => 0 }

/** Names come from customers' users, so their number is unbounded; the cache is cleared when it is full. */
const zones = new Map<string, TimeZone | undefined>()
const MAX_ZONES = 2_000
const MAX_OFFSETS = 1_000

function findZone(name: string): TimeZone | undefined {
  if (zones.has(name)) return zones.get(name)
  if (zones.size >= MAX_ZONES) zones.clear()
  const zone = openZone(name)
  zones.set(name, zone)
  return zone
}

function openZone(name: string): TimeZone | undefined {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' })
  } catch {
    return undefined
  }
  // A batch of deliveries asks about one moment for hundreds of users; offsets change only at full minutes.
  const offsets = new Map<number, number>()
  return {
    name,
    offsetMs(atMs) {
      const minute = Math.floor(atMs / MINUTE_MS)
      let offset = offsets.get(minute)
      if (offset === undefined) {
        offset = readOffset(format.format(minute * MINUTE_MS))
        if (offsets.size >= MAX_OFFSETS) offsets.clear()
        offsets.set(minute, offset)
      }
      return offset
    },
  }
}

/** Parses text such as "1/31/2030, GMT+05:45"; GMT itself may come without a number. */
function readOffset(text: string): number {
  const [, sign, hours, minutes, seconds = '0'] = /([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  if (sign === undefined) return 0
  const ms = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS + Number(seconds) * 1_000
  return sign === '-' ? -ms : ms
}

export const isTimeZone = (name: string) => findZone(name) !== undefined

/** The first of the names that is a known zone; UTC when none is. */
export function timeZoneOf(...names: (string | null | undefined)[]): TimeZone {
  for (const name of names) {
    const zone = name ? findZone(name) : undefined
    if (zone) return zone
  }
  return UTC
}

/** "21:45", "09:45:30", "9:00AM", "9:00 pm"; undefined for anything else. */
export function readTimeOfDay(text: string): TimeOfDay | undefined {
  const [, hour, minute, second = '0', half] = /^(\d{1,2}):(\d\d)(?::(\d\d))?(?: ?([ap])m)?$/i.exec(text) ?? []
  if (hour === undefined) return undefined
  const [hours, minutes, seconds] = [Number(hour), Number(minute), Number(second)]
  if (minutes > 59 || seconds > 59) return undefined
  if (half === undefined ? hours > 23 : hours < 1 || hours > 12) return undefined
  const inDay = half === undefined ? hours : (hours % 12) + (half.toLowerCase() === 'p' ? 12 : 0)
  return inDay * HOUR_MS + minutes * MINUTE_MS + seconds * 1_000
}

export const wallOf = (zone: TimeZone, at: Date): WallMs => at.getTime() + zone.offsetMs(at.getTime())

/** The start of the local day. */
export const dayOf = (wall: WallMs): WallMs => Math.floor(wall / DAY_MS) * DAY_MS

/** The moment at which the zone has this local time. */
export function instantOf(zone: TimeZone, wall: WallMs, which: 'first' | 'last' = 'first'): Date {
  // No zone is further from UTC than a day, so a change of offset around the local time lies between these two.
  const before = zone.offsetMs(wall - DAY_MS)
  const after = zone.offsetMs(wall + DAY_MS)
  const found = [wall - before, wall - after].filter((ms) => ms + zone.offsetMs(ms) === wall)
  if (found.length > 0) return new Date(which === 'first' ? Math.min(...found) : Math.max(...found))
  return new Date(whenPutForward(zone, wall - after, wall - before))
}

/** Finds the change of offset between these two moments. */
function whenPutForward(zone: TimeZone, beforeMs: number, afterMs: number): number {
  let [low, high] = [beforeMs, afterMs]
  const later = zone.offsetMs(afterMs)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (zone.offsetMs(middle) === later) high = middle
    else low = middle
  }
  return high
}

/** The first moment, at or after `from`, at which the zone has this time of day. */
export function nextTimeOfDay(zone: TimeZone, time: TimeOfDay, from: Date): Date {
  for (let day = dayOf(wallOf(zone, from)); ; day += DAY_MS) {
    const at = instantOf(zone, day + time)
    if (at >= from) return at
  }
}
