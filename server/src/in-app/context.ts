// What the operations on in-app messages are made of, put together once.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { createQueue, type Queue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { Renderer } from '../templates/render/renderer.ts'
import type { UserReader } from '../users/read.ts'
import { type CountReport, createCountReport } from './count.ts'
import { createFindMessages, type FindMessages } from './serve.ts'

export type InAppContext = {
  db: Db
  now: () => Date
  newId: NewId
  queue: Queue
  renderer: Renderer
  users: UserReader
  /** Whether an active journey uses it. Asked in the transaction that changes it, behind its lock. */
  isUsed: (db: Db, appId: AppId, id: string) => Promise<boolean>
  findMessages: FindMessages
  countReport: CountReport
}

export function createInAppContext(parts: {
  db: Db
  clock: Clock
  merger: Merger
  newId: NewId
  renderer: Renderer
  users: UserReader
  isUsed: InAppContext['isUsed']
}): InAppContext {
  const { db, clock, newId, renderer, users, isUsed } = parts
  return {
    db,
    now: clock.now,
    newId,
    queue: createQueue(parts),
    renderer,
    users,
    isUsed,
    findMessages: createFindMessages(parts),
    countReport: createCountReport(parts),
  }
}
