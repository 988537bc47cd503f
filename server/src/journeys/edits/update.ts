// ChangeUsers a journey by a merge patch. Reading and checking happen before the row is locked; the write looks whether it is as it was.

import type { RequestOrigin } from '../../apps/audit/actor.ts'
import { AppError } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneysContext } from '../context.ts'
import { findBrokenReferences } from '../document/check-references.ts'
import { DOCUMENT_FIELDS, readDocument, referencesOf, refuseReadOnly } from '../document/read-document.ts'
import { type Fields, isPresent } from '../document/reader.ts'
import type { DocumentReading, Reference } from '../document/reading.ts'
import { refreshTriggers } from '../entry/follow-journey.ts'
import { clearJob } from '../jobs.ts'
import {
  concurrencyKey,
  type Journey,
  type JourneyDocument,
  type JourneyId,
  type JourneyState,
  journeyNotFound,
  journeyObject,
} from '../journey.ts'
import { checkLiquid, recordChange } from '../save.ts'
import {
  changedFields,
  checkEdits,
  findObstacles,
  journeyNotReady,
  nextState,
  REQUESTABLE_STATES,
} from '../states/transitions.ts'
import { findJourney, lockJourney, updateJourneyRow } from '../store.ts'
import { mergePatch } from './merge-patch.ts'
import { recheckWaits } from './recheck-waits.ts'
import { relocateRuns } from './relocate-runs.ts'

/** A change that lost a race is computed again. So many losses in a row mean that something is wrong. */
const ATTEMPTS = 10

const journeyStale = () =>
  new AppError('conflict', {
    code: 'journey-stale',
    title: 'The journey was changed meanwhile: view it again, and send its new concurrency_key',
  })

export const updateJourney = (ctx: JourneysContext, appId: AppId, id: JourneyId, body: Fields, by: RequestOrigin) =>
  changeJourney(ctx, appId, id, body, by, (before) => {
    const patch = Object.fromEntries(
      DOCUMENT_FIELDS.flatMap((name) => (Object.hasOwn(body, name) ? [[name, body[name]]] : [])),
    )
    return { given: mergePatch(before.document, patch) as Fields, state: body.state, readOnly: body }
  })

/** The journey that is wanted. `readOnly`: the request, which may repeat read-only fields but not change them. */
export type RequestedChange = { given: Fields; state?: unknown; readOnly?: Fields }

/** `wish` is asked again when somebody else was faster. */
export function changeJourney(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyId,
  { concurrency_key: key }: Fields,
  by: RequestOrigin,
  wish: (before: Journey) => RequestedChange,
): Promise<Journey> {
  return ctx.inTurn(`${appId} ${id}`, async () => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const before = await findJourney(ctx.db, appId, id)
      if (!before) throw journeyNotFound()
      if (isPresent(key) && key !== concurrencyKey(before)) throw journeyStale()
      const read = readWish(ctx, appId, before, wish(before))
      await checkLiquid(ctx, appId, read.reading)
      const after = await ctx.db.transaction(async (db) => {
        const now = await lockJourney(db, appId, id)
        if (now?.version !== before.version || now.state !== before.state) return undefined
        return write(ctx, db, appId, before, read, by)
      })
      if (after) return after
    }
    throw new AppError('conflict', {
      code: 'journey-stale',
      title: 'The journey is being changed by others; try again',
    })
  })
}

type Read = { document: JourneyDocument; state: JourneyState | undefined; reading: DocumentReading }

function readWish(
  ctx: JourneysContext,
  appId: AppId,
  before: Journey,
  { given, state, readOnly = {} }: RequestedChange,
): Read {
  const { document, reading } = readDocument(given, {
    before: before.document,
    now: ctx.now(),
    minWaitSeconds: ctx.minWaitSeconds,
    newId: ctx.newId,
  })
  refuseReadOnly(reading, readOnly, journeyObject(appId, before))
  // A client that sends back what it was shown may have been shown `processing`.
  const wanted =
    isPresent(state) && state !== before.state ? reading.reader.oneOf('state', state, REQUESTABLE_STATES) : before.state
  return { document, state: wanted, reading }
}

async function write(ctx: JourneysContext, db: Db, appId: AppId, before: Journey, read: Read, by: RequestOrigin) {
  const { document, reading } = read
  const now = ctx.now()
  const known = new Set(referencesOf(before.document).map(keyOf))
  const bad = await findBrokenReferences(db, appId, reading.references)
  // A reference that was broken before does not keep an author from changing the rest.
  for (const { reference, demand } of bad)
    if (!known.has(keyOf(reference))) reading.reader.report(reference.path, demand)
  reading.reader.finish()

  const state = nextState(before.state, read.state)
  checkEdits(state === 'draft' ? 'draft' : before.state, before.document, document)
  const isStart = state !== before.state && (state === 'processing' || state === 'scheduled')
  if (isStart || state === 'scheduled') {
    const obstacles = [
      ...findObstacles(document, state === 'scheduled' ? 'later' : 'now', now),
      ...bad.map(({ reference, demand }) => ({ field: reference.path, title: `${reference.path} ${demand}` })),
    ]
    if (obstacles.length > 0) throw journeyNotReady(obstacles)
  }

  const fields: string[] = changedFields(before.document, document)
  if (state !== before.state) fields.push('state')
  if (fields.length === 0) return before
  const after: Journey = {
    ...before,
    document,
    state,
    version: before.version + 1,
    scheduleError: null,
    updatedAt: now,
    ...(state === 'archived' && { archivedAt: now }),
  }
  await updateJourneyRow(db, appId, after)
  if (before.state === 'active' && state === 'active') {
    await relocateRuns(ctx, db, appId, before, after)
    await recheckWaits(ctx, db, appId, before, after)
  }
  // A journey that goes back to draft or is stopped leaves runs behind.
  const hasRun = before.state === 'active' || before.state === 'processing'
  if (hasRun && state !== before.state) await ctx.queue.enqueue(db, [clearJob(appId, after.id)])
  await recordChange(ctx, db, appId, {
    journey: after,
    references: reading.references,
    fields,
    by,
    action: 'journey.update',
    detail: { fields },
  })
  await refreshTriggers(ctx, db, appId, before.state, after, fields)
  return after
}

const keyOf = ({ kind, id, channel }: Reference) => `${kind} ${id} ${channel ?? ''}`
