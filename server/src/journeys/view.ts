// Views of one journey, a page of journeys, and versions.

import { AppError } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import type { JourneysContext } from './context.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { type Journey, type JourneyId, journeyNotFound, summaryObject } from './journey.ts'
import { findJourney, findJourneys, findVersion, findVersions, type VersionSummary } from './store.ts'

/** From a path: anything that is not a UUID names no journey. */
export function readJourneyId(given: string): JourneyId {
  if (!isUuid(given)) throw journeyNotFound()
  return given.toLowerCase()
}

export async function getJourney({ db }: Pick<JourneysContext, 'db'>, appId: AppId, id: JourneyId): Promise<Journey> {
  const journey = await findJourney(db, appId, id)
  if (!journey) throw journeyNotFound()
  return journey
}

export async function listJourneys({ db }: JourneysContext, appId: AppId, limit: number, cursor: string | undefined) {
  const mark = cursor === undefined ? undefined : readCursor(cursor)
  const after = mark && { createdAt: mark.at, id: mark.id }
  // One more than the page holds tells whether there is another page.
  const found = await findJourneys(db, appId, after, limit + 1)
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const hasMore = found.length > limit
  return {
    journeys: page.map((it) => summaryObject(appId, it)),
    has_more: hasMore,
    ...(hasMore && last && { next_cursor: writeCursor({ at: last.createdAt, id: last.id }) }),
  }
}

export async function listVersions(
  { db }: JourneysContext,
  appId: AppId,
  id: JourneyId,
  { limit, before }: { limit: number; before?: number },
) {
  await getJourney({ db }, appId, id)
  const versions = await findVersions(db, appId, id, before, limit)
  return { versions: versions.map(versionLine) }
}

export async function viewVersion({ db }: JourneysContext, appId: AppId, id: JourneyId, version: number) {
  await getJourney({ db }, appId, id)
  const found = await findVersion(db, appId, id, version)
  if (!found)
    throw new AppError('not-found', { code: 'journey-version-not-found', title: 'The journey has no such version' })
  return { ...versionLine(found), state: found.state, ...found.document }
}

const versionLine = (it: VersionSummary) => ({
  version: it.version,
  changed_at: it.changedAt.toISOString(),
  changed_by: { kind: it.changedByKind, id: it.changedById },
  fields: it.fields,
})
