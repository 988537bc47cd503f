// Adds one user to an active journey on request, whether or not they are in its audience.

import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import { MAX_BYTES } from '../../events/read-event.ts'
import { AppError, invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { JourneysContext } from '../context.ts'
import { advanceJob } from '../jobs.ts'
import { type JourneyAudience, type JourneyId, journeyNotFound } from '../journey.ts'
import { type RunEvent, type RunId, shardAt } from '../runs/run.ts'
import { insertRuns, wakeRuns } from '../runs/run-store.ts'
import { COUNT_SHARD, changeCounts } from '../stats-store.ts'
import { lockJourneyForShare } from '../store.ts'
import { readUserQuery, resolveUser, type UserQuery } from './resolve-user.ts'

export type AddUserInput = UserQuery & { event?: { properties?: Record<string, unknown> } }

const notActive = (state: string) =>
  new AppError('unprocessable', {
    code: 'journey-invalid-state',
    title: `Users can enter only while the journey is active; it is ${state}`,
  })

const userPresent = () =>
  new AppError('conflict', {
    code: 'journey-user-present',
    title: 'The user is in the journey, or was and may not enter it again',
  })

export async function addUser(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyId,
  body: AddUserInput,
  by: RequestOrigin,
): Promise<RunId> {
  readUserQuery(body)
  return ctx.db.transaction(async (db) => {
    const journey = await lockJourneyForShare(db, appId, id)
    if (!journey) throw journeyNotFound()
    const { audience, early_exit: early } = journey.document
    const now = ctx.now()
    const event = readEvent(audience, body, () => ({ id: ctx.newId(), at: now.toISOString() }))
    const userId = await resolveUser(db, appId, body)
    if (journey.state !== 'active') throw notActive(journey.state)
    const [run] = await insertRuns(
      db,
      appId,
      shardAt(now),
      [{ id: ctx.newId(), journeyId: id, userId, ...(event && { event }) }],
      now,
    )
    if (!run) throw userPresent()
    // As for all users who enter by the event that makes them leave.
    if (event && event.name === early?.rules.on_event?.name)
      await wakeRuns(db, appId, [run.id], { atOnce: new Set(), later: new Set([run.id]) }, now)
    await changeCounts(db, appId, id, COUNT_SHARD.changes, [{ placeId: id, fact: 'started', by: 1 }])
    await insertAuditEntries(
      db,
      appId,
      [
        {
          id: ctx.newId(),
          actor: actorOf(by),
          action: 'journey.add_user',
          targetType: 'journey',
          targetId: id,
          detail: { onesignal_id: userId, run_id: run.id },
        },
      ],
      now,
    )
    await ctx.queue.enqueue(db, [advanceJob(appId, { id, audience }, run.part)])
    return run.id
  })
}

/** The entry event, which conditions may compare with. It need not match the audience: a request overrules it. */
function readEvent(
  audience: JourneyAudience,
  { event }: AddUserInput,
  make: () => Pick<RunEvent, 'id' | 'at'>,
): RunEvent | undefined {
  if (audience.kind !== 'event_trigger') {
    if (event !== undefined) throw invalid('event is for journeys that an event triggers', { field: 'event' })
    return undefined
  }
  if (event === undefined)
    throw invalid('event is needed: users enter this journey by an event, {"properties": {…}} says which', {
      field: 'event',
    })
  const properties = event.properties ?? {}
  const bytes = Buffer.byteLength(JSON.stringify(properties))
  if (bytes > MAX_BYTES)
    throw invalid(`event.properties has ${bytes} bytes; at most ${MAX_BYTES} are taken`, { field: 'event.properties' })
  return { ...make(), name: audience.name, properties }
}
