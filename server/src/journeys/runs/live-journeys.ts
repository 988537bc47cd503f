// A cache of active journeys, compiled once for each version. An entry is only used for the version that the row names.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneyId } from '../journey.ts'
import {
  type ActiveVersion,
  findActive,
  findJourneysById,
  lockActiveForShare,
  lockAllActiveForShare,
} from '../store.ts'
import { type CompiledJourney, compileJourney } from './compile-journey.ts'

export type LiveJourneys = {
  /** Until the transaction ends the journey stays active and unchanged. Undefined when it is not active. */
  lockForShare(db: Db, appId: AppId, id: JourneyId): Promise<CompiledJourney | undefined>
  /** The same for all journeys of an app, in the order of their ids. */
  lockAllForShare(db: Db, appId: AppId): Promise<CompiledJourney[]>
  /** Reads it without a lock. */
  find(db: Db, appId: AppId, id: JourneyId): Promise<CompiledJourney | undefined>
}

export function createLiveJourneys(): LiveJourneys {
  const apps = new Map<AppId, Map<JourneyId, CompiledJourney>>()

  const isCurrent = ({ id, version, startedAt }: ActiveVersion, known: ReadonlyMap<JourneyId, CompiledJourney>) => {
    const compiled = known.get(id)
    return compiled?.version === version && compiled.startedAt?.getTime() === startedAt?.getTime()
  }

  async function compiledOf(
    db: Db,
    appId: AppId,
    marked: readonly ActiveVersion[],
  ): Promise<Map<JourneyId, CompiledJourney>> {
    const known = apps.get(appId) ?? new Map<JourneyId, CompiledJourney>()
    const missing = marked.filter((it) => !isCurrent(it, known)).map(({ id }) => id)
    const found = missing.length > 0 ? await findJourneysById(db, appId, missing) : []
    const fresh = new Map(found.map((journey) => [journey.id, compileJourney(journey)]))
    return new Map(
      marked.flatMap(({ id }): [JourneyId, CompiledJourney][] => {
        const compiled = fresh.get(id) ?? known.get(id)
        return compiled ? [[id, compiled]] : []
      }),
    )
  }

  async function one(
    db: Db,
    appId: AppId,
    id: JourneyId,
    marked: readonly ActiveVersion[],
  ): Promise<CompiledJourney | undefined> {
    const compiled = (await compiledOf(db, appId, marked)).get(id)
    if (compiled) apps.set(appId, new Map(apps.get(appId)).set(id, compiled))
    return compiled
  }

  return {
    lockForShare: async (db, appId, id) => one(db, appId, id, await lockActiveForShare(db, appId, id)),
    find: async (db, appId, id) => one(db, appId, id, await findActive(db, appId, id)),
    async lockAllForShare(db, appId) {
      const compiled = await compiledOf(db, appId, await lockAllActiveForShare(db, appId))
      // Evicts journeys that are no longer active.
      if (compiled.size > 0) apps.set(appId, compiled)
      else apps.delete(appId)
      return [...compiled.values()]
    },
  }
}
