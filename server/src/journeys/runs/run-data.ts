// What Liquid sees of a run, as `journey`.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { RunEvent, RunId } from './run.ts'
import { findRunData } from './run-store.ts'

/** A run knows the event by which it came in, and those by which its conditions were met; of each name the last. */
export function runData(name: string, entry: RunEvent | null | undefined, met: readonly RunEvent[]) {
  const events = [...(entry ? [entry] : []), ...met].map(({ name, properties, at }) => ({
    name,
    properties,
    timestamp: at,
  }))
  if (events.length === 0) return { name }
  return {
    name,
    first_event: events[0],
    last_event: events.at(-1),
    event: Object.fromEntries(events.map((event) => [event.name, event])),
  }
}

/** For whoever puts messages together. */
export async function readRunData(
  db: Db,
  appId: AppId,
  ids: readonly RunId[],
): Promise<Map<RunId, Record<string, unknown>>> {
  const found = await findRunData(db, appId, ids)
  return new Map(found.map(({ id, name, entryEvent, metEvents }) => [id, runData(name, entryEvent, metEvents)]))
}
