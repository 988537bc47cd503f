// What the operations on templates are made of, put together once.

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
  /** Whether an active journey uses it. Asked in the transaction that changes it, behind its lock. */
  isUsed: (db: Db, appId: AppId, id: string) => Promise<boolean>
  /** Whether mails may have attachments on this server. */
  mayAttach: boolean
  /** Updates of one template: at once they would only undo each other's work. */
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
