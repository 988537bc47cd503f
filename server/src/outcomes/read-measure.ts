// Reads the two formats in which newer and older SDKs report an outcome.

import { invalid } from '../lib/errors.ts'
import { isUuid } from '../lib/ids.ts'
import { codePoints } from '../lib/text.ts'
import { readSubscriptionType, typeOfDeviceNumber } from '../users/subscriptions/subscription.ts'
import { type Attribution, isReservedName, type Measure, SESSION_DURATION } from './measure.ts'
import type { MeasureBody, MeasureSourcesBody } from './schema.ts'

const DAY_MS = 86_400_000
/** SDKs store reports that they could not send. This is how old a stored report may be. */
const MAX_AGE_MS = 30 * DAY_MS

export function readMeasure(body: MeasureBody, now: Date): Measure {
  const { direct, notification_ids } = body
  const attribution: Attribution = direct == null ? 'unattributed' : direct ? 'direct' : 'influenced'
  return { ...readCommon(body, now), attribution, messageIds: idsIn(attribution, notification_ids) }
}

export function readMeasureSources(body: MeasureSourcesBody, now: Date): Measure {
  const { direct, indirect } = body.sources ?? {}
  const attribution: Attribution = direct ? 'direct' : indirect ? 'influenced' : 'unattributed'
  const source = direct ?? indirect
  return { ...readCommon(body, now), attribution, messageIds: idsIn(attribution, source?.notification_ids) }
}

/** Ids that are not UUIDs cannot name one of our messages, so they are ignored. */
const idsIn = (attribution: Attribution, ids: readonly string[] | null | undefined) =>
  attribution === 'unattributed' ? [] : (ids ?? []).filter(isUuid).map((id) => id.toLowerCase())

function readCommon(body: MeasureBody | MeasureSourcesBody, now: Date) {
  const { id: name, weight, session_time, timestamp } = body
  if (codePoints(name) > 128) throw invalid('id must have at most 128 characters')
  if (isReservedName(name) && name !== SESSION_DURATION) throw invalid(`"${name}" is counted by the server`)
  return {
    name,
    platform: platformOf(body),
    weight: (name === SESSION_DURATION ? session_time : weight) ?? 0,
    at: readTime(timestamp, now),
  }
}

function platformOf({ subscription, device_type }: MeasureBody | MeasureSourcesBody): string {
  if (subscription?.type) return readSubscriptionType(subscription.type)
  return device_type == null ? '' : (typeOfDeviceNumber(Number(device_type)) ?? '')
}

/** In Unix seconds; sent only when the outcome was not reported immediately. */
function readTime(timestamp: number | null | undefined, now: Date): Date {
  if (timestamp == null) return now
  const ms = timestamp * 1_000
  return ms > now.getTime() - MAX_AGE_MS && ms < now.getTime() ? new Date(ms) : now
}
