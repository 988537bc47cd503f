// What Liquid sees of a run, as `journey`.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { RunEvent, RunId } from './run.ts'
import { findRunData } from './run-store.ts'

/** A run knows one event, by which it came in: it is the first and the last. */
export function runData(name: string, event: RunEvent | undefined): Record<string, unknown> {
  if (!event) return { name }
  const told = { name: event.name, properties: event.properties, timestamp: event.at }
  return { name, first_event: told, last_event: told, event: { [event.name]: told } }
}

/** For whoever puts messages together. */
export async function readRunData(
  db: Db,
  appId: AppId,
  ids: readonly RunId[],
): Promise<Map<RunId, Record<string, unknown>>> {
  const found = await findRunData(db, appId, ids)
  return new Map(found.map(({ id, name, entryEvent }) => [id, runData(name, entryEvent ?? undefined)]))
}
