import { forbidden, missingAuthorization } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { refuseStranger } from '../users/owner.ts'
import type { EventsContext } from './context.ts'
import { type ReadEvent, type Refusal, readEvents, unknownUser } from './read-event.ts'
import type { EventBody, EventsAnswer, EventsBody } from './schema.ts'
import type { NewEvent } from './store.ts'

/** An SDK has no key; with identity verification it has proved who its user is. */
export type Sender = { isSdk: boolean; provenExternalId: string | undefined }

/** What can be stored is stored; the answer names the events that are not. */
export async function recordEvents(
  ctx: EventsContext,
  appId: AppId,
  body: EventsBody,
  sender: Sender,
): Promise<EventsAnswer> {
  const now = ctx.now()
  const read = await readEvents(body, { now, oldest: ctx.months.oldest(now) }, ctx.newId)
  await checkSender(ctx, appId, body.events, sender)
  const accepted = read.map(({ event }) => event).filter(isEvent)
  const unknown = accepted.length > 0 ? await ctx.insert(appId, accepted) : new Set<number>()
  const missing = new Set([...unknown].map((n) => accepted[n]))
  const errors = read.flatMap((it, index) => {
    const refusal = isEvent(it.event) ? missing.has(it.event) && unknownUser : it.event
    return refusal ? [failed(it, refusal, index)] : []
  })
  return errors.length > 0 ? { errors } : {}
}

const isEvent = (event: ReadEvent['event']): event is NewEvent => !('code' in event)

const failed = ({ userId, key }: ReadEvent, refusal: Refusal, index: number) => ({
  event_user_id: userId,
  event_id: key,
  error: { ...refusal, meta: { index } },
})

/** Without a key a user is named by the id that nobody can guess; with proof it is the one that was proved. */
async function checkSender(ctx: EventsContext, appId: AppId, events: EventBody[], { isSdk, provenExternalId }: Sender) {
  if (!isSdk) return
  const ids = new Set(events.flatMap(({ onesignal_id }) => onesignal_id?.toLowerCase() ?? []))
  if (provenExternalId === undefined) {
    if (events.some(({ onesignal_id }) => onesignal_id == null)) throw missingAuthorization()
    return
  }
  const isStranger = ({ external_id }: EventBody) => external_id != null && external_id !== provenExternalId
  if (ids.size > 1 || events.some(isStranger)) throw forbidden('The identity token is for another user')
  for (const id of ids) {
    const found = await ctx.reader.identity(appId, { id })
    if (found) refuseStranger({ aliases: new Map(Object.entries(found.aliases ?? {})) }, provenExternalId)
  }
}
