// What moving runs is made of, put together once.

import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Queue } from '../../queue/enqueue.ts'
import type { Db } from '../../storage/db.ts'
import type { FindTemplate } from '../../templates/find.ts'
import type { Renderer } from '../../templates/render/renderer.ts'
import type { LiveJourneys } from './live.ts'

export type RunsContext = {
  db: Db
  now: () => Date
  newId: NewId
  log: Log
  queue: Queue
  renderer: Renderer
  findTemplate: FindTemplate
  /** Journeys that are active, compiled. */
  live: LiveJourneys
}
