// What the operations on templates are made of, put together once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { createTurns, type Turns } from '../lib/turns.ts'
import type { Db } from '../storage/db.ts'
import type { Reader } from '../users/read.ts'
import type { Renderer } from './render/renderer.ts'

export type TemplatesContext = {
  db: Db
  now: () => Date
  newId: NewId
  renderer: Renderer
  users: Reader
  /** Updates of one template: at once they would only undo each other's work. */
  inTurn: Turns
}

export const createTemplatesContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  renderer: Renderer
  users: Reader
}): TemplatesContext => ({
  db: parts.db,
  now: parts.clock.now,
  newId: parts.newId,
  renderer: parts.renderer,
  users: parts.users,
  inTurn: createTurns(),
})
