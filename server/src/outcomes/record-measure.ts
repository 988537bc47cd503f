// Records outcomes that SDKs report. They increment few rows, so concurrent reports are merged into one statement.

import { lockApp } from '../apps/store.ts'
import { invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger, MergeOutcome as Settled } from '../storage/merge.ts'
import { isReservedName, type Measure } from './measure.ts'
import { addMeasures, countNames, findNames, insertNames } from './store.ts'

export type RecordMeasure = (appId: AppId, outcome: Measure) => Promise<void>

/** SDKs have no key, so without a limit anybody could fill the tables with names. */
export const MAX_NAMES = 1_000

const tooManyNames = () => invalid(`An app can have at most ${MAX_NAMES} names of outcomes; this one would be one more`)

export function createRecordMeasure({ db, merger }: { db: Db; merger: Merger }): RecordMeasure {
  return merger.merged<Measure, void>({
    name: 'outcomes.measure',
    run: (appId, outcomes) =>
      db.transaction(async (db): Promise<Settled<void>[]> => {
        const names = [...new Set(outcomes.map(({ name }) => name))].filter((name) => !isReservedName(name))
        const refused = await admitNames(db, appId, names)
        const counted = outcomes.filter(({ name }) => !refused.has(name))
        if (counted.length > 0) await addMeasures(db, appId, counted)
        return outcomes.map(({ name }) => (refused.has(name) ? { error: tooManyNames() } : { value: undefined }))
      }),
  })
}

/**
 * Returns the names that exceed the limit. New names are rare, so requests with new names are handled one after the
 * other.
 */
async function admitNames(db: Db, appId: AppId, names: readonly string[]): Promise<Set<string>> {
  if (names.length === 0) return new Set()
  const isNew = async () => {
    const known = await findNames(db, appId, names)
    return names.filter((name) => !known.has(name))
  }
  if ((await isNew()).length === 0) return new Set()
  await lockApp(db, appId)
  const fresh = await isNew()
  const room = Math.max(0, MAX_NAMES - (await countNames(db, appId)))
  const admitted = fresh.slice(0, room)
  if (admitted.length > 0) await insertNames(db, appId, admitted)
  return new Set(fresh.slice(room))
}
