// What the operations on templates depend on, assembled once.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { createKeyedMutex, type KeyedMutex } from '../lib/keyed-mutex.ts'
import type { Db } from '../storage/db.ts'
import type { UserReader } from '../users/read.ts'
import type { Renderer } from './render/renderer.ts'

export type TemplatesContext = {
  db: Db
  now: () => Date
  newId: NewId
  renderer: Renderer
  users: UserReader
  /**
   * Whether an active journey uses the template. Called in the transaction that changes the template and holds its
   * lock.
   */
  isUsed: (db: Db, appId: AppId, id: string) => Promise<boolean>
  /** Whether emails may have attachments on this server. */
  mayAttach: boolean
  /** Serializes updates of one template, because concurrent ones would only invalidate each other. */
  inTurn: KeyedMutex
}

export const createTemplatesContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  renderer: Renderer
  users: UserReader
  isUsed: TemplatesContext['isUsed']
  mayAttach: boolean
}): TemplatesContext => ({
  db: parts.db,
  now: parts.clock.now,
  newId: parts.newId,
  renderer: parts.renderer,
  users: parts.users,
  isUsed: parts.isUsed,
  mayAttach: parts.mayAttach,
  inTurn: createKeyedMutex(),
})
