// Converts an event as it was sent into an event to store, or into the reason for refusing it.

import { hash } from 'node:crypto'
import { invalid } from '../lib/errors.ts'
import { mapInTurns } from '../lib/event-loop.ts'
import { isUuid, type NewId, type UserId } from '../lib/ids.ts'
import { EXTERNAL_ID, type UserRef } from '../users/aliases/identity.ts'
import type { EventBody, EventsBody } from './schema.ts'
import type { NewEvent } from './store.ts'

/** Of the event's JSON in UTF-8, without whitespace. */
export const MAX_BYTES = 2_024
/** Reading this many takes about 5 ms of the event loop. */
export const EVENTS_PER_TURN = 1_000

export type EventRefusal = { code: 'not found' | 'too large' | 'too old'; title: string }
export const unknownUser: EventRefusal = { code: 'not found', title: 'User not found' }

export type ReadEvent = {
  /** As the event gave them, to be repeated in the error. */
  userId: string
  key: string | null
  /** The event to store, or why it is refused. */
  event: NewEvent | EventRefusal
}

/** When the events are received, and how far back they are accepted. */
export type ReceptionTimes = { now: Date; oldest: Date }

/** All events of a request, in order. One malformed event refuses the whole request. */
export async function readEvents(body: EventsBody, moment: ReceptionTimes, newId: NewId): Promise<ReadEvent[]> {
  const requestKey = readKey(body.idempotency_key, 'idempotency_key')
  return mapInTurns(body.events, EVENTS_PER_TURN, (event, i) => readEvent(event, i, requestKey, moment, newId))
}

function readEvent(
  body: EventBody,
  index: number,
  requestKey: string | undefined,
  { now, oldest }: ReceptionTimes,
  newId: NewId,
): ReadEvent {
  const field = (name: string) => `events[${index}].${name}`
  const user = readUser(body, `events[${index}]`)
  const key = readKey(body.idempotency_key, field('idempotency_key'))
  const happened = body.timestamp == null ? now : new Date(body.timestamp)
  const at = happened > now ? now : happened
  const bytes = Buffer.byteLength(JSON.stringify(body))
  const read = { userId: body.onesignal_id ?? body.external_id ?? '', key: key ?? null }
  if (bytes > MAX_BYTES)
    return {
      ...read,
      event: { code: 'too large', title: `The event has ${bytes} bytes; at most ${MAX_BYTES} are taken` },
    }
  if (at < oldest)
    return { ...read, event: { code: 'too old', title: `Events from before ${oldest.toISOString()} are not taken` } }
  const event: NewEvent = {
    id: newId(),
    key: key ?? (requestKey && keyOfPlace(requestKey, index)),
    user,
    name: body.name,
    at,
    properties: body.properties ?? body.payload ?? {},
  }
  return { ...read, event }
}

function readUser({ onesignal_id, external_id }: EventBody, where: string): UserRef {
  if (onesignal_id != null) return { id: readUuid(onesignal_id, `${where}.onesignal_id`) as UserId }
  if (external_id != null) return { label: EXTERNAL_ID, value: external_id }
  throw invalid(`${where} needs an external_id or a onesignal_id`, { field: where })
}

const readKey = (key: string | null | undefined, field: string) => (key == null ? undefined : readUuid(key, field))

function readUuid(text: string, field: string): string {
  if (!isUuid(text)) throw invalid(`${field} must be a UUID`, { field })
  return text.toLowerCase()
}

/** The key of a request applies to each of its events, so their indexes tell them apart. */
function keyOfPlace(requestKey: string, index: number): string {
  const digits = hash('sha256', `${requestKey} ${index}`, 'hex')
  return digits.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
