// What the operations on in-app messages depend on, assembled once.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { createQueue, type Queue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { Renderer } from '../templates/render/renderer.ts'
import type { UserReader } from '../users/read.ts'
import { createFindDeviceMessages, type FindDeviceMessages } from './list-for-device.ts'
import { createRecordInteraction, type RecordInteraction } from './record-interaction.ts'

export type InAppContext = {
  db: Db
  now: () => Date
  newId: NewId
  queue: Queue
  renderer: Renderer
  users: UserReader
  /**
   * Whether an active journey uses the message. Called in the transaction that changes the message and holds its lock.
   */
  isUsedByJourney: (db: Db, appId: AppId, id: string) => Promise<boolean>
  findDeviceMessages: FindDeviceMessages
  recordInteraction: RecordInteraction
}

export function createInAppContext(parts: {
  db: Db
  clock: Clock
  merger: Merger
  newId: NewId
  renderer: Renderer
  users: UserReader
  isUsed: InAppContext['isUsedByJourney']
}): InAppContext {
  const { db, clock, newId, renderer, users, isUsed } = parts
  return {
    db,
    now: clock.now,
    newId,
    queue: createQueue(parts),
    renderer,
    users,
    isUsedByJourney: isUsed,
    findDeviceMessages: createFindDeviceMessages(parts),
    recordInteraction: createRecordInteraction(parts),
  }
}
