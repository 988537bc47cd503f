// The dependencies of everything that advances runs.

import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Engine } from '../../messages/engine/types.ts'
import { createQueue, type Queue } from '../../queue/enqueue.ts'
import type { Db } from '../../storage/db.ts'
import type { Merger } from '../../storage/merge.ts'
import { createFindTemplate, type FindTemplate } from '../../templates/find-template.ts'
import type { Renderer } from '../../templates/render/renderer.ts'
import { createLiveJourneys, type LiveJourneys } from './live-journeys.ts'

export type RunsContext = {
  db: Db
  now: () => Date
  newId: NewId
  log: Log
  queue: Queue
  renderer: Renderer
  findTemplate: FindTemplate
  /** The engine of messages, to which runs are added as recipients. */
  engine: Engine
  /** Compiled active journeys. */
  live: LiveJourneys
  /** Revisions of templates that no message can be made of. They stay so: a change makes another revision. */
  unsendable: Set<string>
}

export const createRunsContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  log: Log
  merger: Merger
  renderer: Renderer
  engine: Engine
}): RunsContext => {
  const { clock, merger, ...rest } = parts
  return {
    ...rest,
    now: clock.now,
    queue: createQueue(parts),
    findTemplate: createFindTemplate({ db: parts.db, merger }),
    live: createLiveJourneys(),
    unsendable: new Set(),
  }
}
