import { type Authority, forAnotherUser } from '../lib/authority.ts'
import { missingAuthorization } from '../lib/errors.ts'
import { nextTurn } from '../lib/event-loop.ts'
import type { AppId } from '../lib/ids.ts'
import { refuseOtherUser } from '../users/devices/authorize.ts'
import type { EventsContext } from './context.ts'
import { EVENTS_PER_TURN, type EventRefusal, type ReadEvent, readEvents, unknownUser } from './read-event.ts'
import type { EventBody, EventsAnswer, EventsBody } from './schema.ts'
import type { NewEvent } from './store.ts'

/** Stores the valid events; the answer names the refused ones. */
export async function recordEvents(
  ctx: EventsContext,
  appId: AppId,
  body: EventsBody,
  authority: Authority,
): Promise<EventsAnswer> {
  const now = ctx.now()
  const read = await readEvents(body, { now, oldest: ctx.months.oldest(now) }, ctx.newId)
  await checkSender(ctx, appId, body.events, authority)
  const accepted = read.map(({ event }) => event).filter(isEvent)
  const unknown = accepted.length > 0 ? await ctx.insert(appId, accepted) : new Set<number>()
  // Yields, because requests that were stored together would all continue in the same turn.
  if (read.length > EVENTS_PER_TURN) await nextTurn()
  const missing = new Set([...unknown].map((n) => accepted[n]))
  const errors = read.flatMap((it, index) => {
    const refusal = isEvent(it.event) ? missing.has(it.event) && unknownUser : it.event
    return refusal ? [failed(it, refusal, index)] : []
  })
  return errors.length > 0 ? { errors } : {}
}

const isEvent = (event: ReadEvent['event']): event is NewEvent => !('code' in event)

const failed = ({ userId, key }: ReadEvent, refusal: EventRefusal, index: number) => ({
  event_user_id: userId,
  event_id: key,
  error: { ...refusal, meta: { index } },
})

/** A device must name users by id, which nobody can guess; a verified user can only be itself. */
async function checkSender(ctx: EventsContext, appId: AppId, events: EventBody[], authority: Authority) {
  if (authority.kind === 'key') return
  const ids = new Set(events.flatMap(({ onesignal_id }) => onesignal_id?.toLowerCase() ?? []))
  if (authority.kind === 'device') {
    if (events.some(({ onesignal_id }) => onesignal_id == null)) throw missingAuthorization()
    return
  }
  const isStranger = ({ external_id }: EventBody) => external_id != null && external_id !== authority.externalId
  if (ids.size > 1 || events.some(isStranger)) throw forAnotherUser()
  for (const id of ids) {
    const found = await ctx.reader.identity(appId, { id })
    if (found) refuseOtherUser({ aliases: new Map(Object.entries(found.aliases ?? {})) }, authority)
  }
}
