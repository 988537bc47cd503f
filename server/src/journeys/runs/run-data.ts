// The variable `journey` of Liquid.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { RunEvent, RunId } from './run.ts'
import { findRunData } from './run-store.ts'

/** The event by which the user entered and those that met conditions of the run; the last of each name. */
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

/** For the composition of messages. */
export async function readRunData(
  db: Db,
  appId: AppId,
  ids: readonly RunId[],
): Promise<Map<RunId, Record<string, unknown>>> {
  const found = await findRunData(db, appId, ids)
  return new Map(found.map(({ id, name, entryEvent, metEvents }) => [id, runData(name, entryEvent, metEvents)]))
}
