// Reads an author's settings of a message from the wire. Given fields replace existing ones, and null restores the
// default.

import { invalid } from '../lib/errors.ts'
import type { NewId } from '../lib/ids.ts'
import type { InAppSettings } from './message.ts'
import type { UpdateInAppBody } from './schema.ts'
import { readTriggers } from './triggers.ts'

export const DEFAULTS: InAppSettings = {
  displayLocation: 'center',
  displayDuration: null,
  removeHeightMargin: false,
  removeWidthMargin: false,
  triggers: [],
  audience: 'segments',
  includedSegments: [],
  excludedSegments: [],
  platforms: [],
  redisplayLimit: null,
  redisplayDelay: null,
  startTime: null,
  endTime: null,
}

/** Without the segments, which have to be looked up. */
export function readSettings(body: UpdateInAppBody, newId: NewId): Partial<InAppSettings> {
  return {
    ...given(body.display_location, (displayLocation) => ({ displayLocation })),
    ...given(body.display_duration, (displayDuration) => ({ displayDuration })),
    ...given(body.styles, (styles) => ({
      removeHeightMargin: styles?.remove_height_margin ?? null,
      removeWidthMargin: styles?.remove_width_margin ?? null,
    })),
    ...given(body.triggers, (triggers) => ({ triggers: triggers && readTriggers(triggers, newId) })),
    ...given(body.audience, (audience) => ({ audience })),
    ...given(body.platforms, (platforms) => ({ platforms })),
    ...given(body.redisplay, (redisplay) => ({
      redisplayLimit: redisplay?.limit ?? null,
      redisplayDelay: redisplay?.delay ?? null,
    })),
    ...given(body.start_time, (time) => ({ startTime: time === null ? null : readTime(time, 'start_time') })),
    ...given(body.end_time, (time) => ({ endTime: time === null ? null : readTime(time, 'end_time') })),
  }
}

type OrNull<Fields> = { [Name in keyof Fields]: Fields[Name] | null }

function given<Value, Name extends keyof InAppSettings>(
  value: Value | undefined,
  read: (value: Value) => OrNull<Pick<InAppSettings, Name>>,
): Partial<InAppSettings> {
  if (value === undefined) return {}
  const fields = Object.entries(read(value)) as [Name, InAppSettings[Name] | null][]
  return Object.fromEntries(fields.map(([name, it]) => [name, it ?? DEFAULTS[name]]))
}

/** The format check of the schema accepts times that do not exist, such as the 61st second of a minute. */
function readTime(text: string, field: string): Date {
  const time = new Date(text)
  const year = time.getUTCFullYear()
  if (!(year >= 1970 && year <= 9999)) throw invalid(`${field} must be a time from 1970 to 9999`, { field })
  return time
}

/** Checks the fields against each other. */
export function checkWindow({ startTime, endTime }: Pick<InAppSettings, 'startTime' | 'endTime'>): void {
  if (startTime && endTime && startTime >= endTime)
    throw invalid('end_time must be later than start_time', { field: 'end_time' })
}
