import type { RequestOrigin } from '../apps/audit/actor.ts'
import type { AppId } from '../lib/ids.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { JourneysContext } from './context.ts'
import { findBrokenReferences } from './document/check-references.ts'
import { DOCUMENT_FIELDS, readDocument, refuseReadOnly } from './document/read-document.ts'
import { type Fields, isPresent } from './document/reader.ts'
import type { DocumentReading } from './document/reading.ts'
import { DOCUMENT_DEFAULTS, type Journey, type JourneyDocument } from './journey.ts'
import { checkLiquid, recordChange } from './save.ts'
import { insertJourney } from './store.ts'

/** Where a journey came from. */
const SOURCE = 'public_api'

/** Only the name is required. A new journey is a draft. */
export async function createJourney(
  ctx: JourneysContext,
  appId: AppId,
  body: Fields,
  by: RequestOrigin,
): Promise<Journey> {
  const given = Object.fromEntries(
    DOCUMENT_FIELDS.flatMap((name) => (isPresent(body[name]) ? [[name, body[name]]] : [])),
  )
  const { newId, minWaitSeconds } = ctx
  const options = { before: undefined, now: ctx.now(), minWaitSeconds, newId }
  const { document, reading } = readDocument({ ...DOCUMENT_DEFAULTS, ...given }, options)
  refuseReadOnly(reading, body, undefined)
  for (const name of ['state', 'concurrency_key'])
    if (isPresent(ownProperty(body, name))) reading.reader.report(name, 'is set by the server')
  return insertNewJourney(ctx, appId, document, reading, { by, action: 'journey.create' })
}

type NewJourneyOptions = {
  by: RequestOrigin
  action: string
  detail?: object
  /** Whether it may refer to things that do not exist. */
  mayMiss?: boolean
}

export async function insertNewJourney(
  ctx: JourneysContext,
  appId: AppId,
  document: JourneyDocument,
  reading: DocumentReading,
  { mayMiss = false, ...making }: NewJourneyOptions,
): Promise<Journey> {
  await checkLiquid(ctx, appId, reading)
  const { reader, references } = reading
  const now = ctx.now()
  const journey: Journey = {
    id: ctx.newId(),
    document,
    state: 'draft',
    version: 1,
    createdSource: SOURCE,
    scheduleError: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    archivedAt: null,
  }
  return ctx.db.transaction(async (db) => {
    if (!mayMiss)
      for (const { reference, demand } of await findBrokenReferences(db, appId, references))
        reader.report(reference.path, demand)
    reader.finish()
    await insertJourney(db, appId, journey)
    await recordChange(ctx, db, appId, { journey, references, fields: [], ...making })
    return journey
  })
}
