// The dependencies of the operations on messages, created once at startup.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { createQueue, type Queue } from '../queue/enqueue.ts'
import type { SegmentsContext } from '../segments/context.ts'
import { readSending } from '../sending/read.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { createFindTemplate, type FindTemplate } from '../templates/find-template.ts'
import type { Renderer } from '../templates/render/renderer.ts'
import { createFindSuspension, type FindSuspension } from '../templates/suspension.ts'
import type { EnsureContext } from '../users/subscriptions/ensure.ts'
import { createInsertMessage, type InsertMessage, type IsSendingDisabled } from './accept/insert-messages.ts'
import { createWarnUnreachable, type WarnUnreachable } from './accept/warn-unreachable.ts'

export type MessagesContext = {
  db: Db
  now: () => Date
  newId: NewId
  queue: Queue
  users: EnsureContext
  segments: SegmentsContext
  renderer: Renderer
  findTemplate: FindTemplate
  findSuspension: FindSuspension
  /** Whether emails may have attachments on this server. */
  allowsAttachments: boolean
  isSendingDisabled: IsSendingDisabled
  insertMessage: InsertMessage
  warnUnreachable: WarnUnreachable
}

export function createMessagesContext(parts: {
  db: Db
  clock: Clock
  merger: Merger
  newId: NewId
  users: EnsureContext
  segments: SegmentsContext
  renderer: Renderer
  mayAttach: boolean
}): MessagesContext {
  const { db, clock, newId, users, segments, renderer, mayAttach, merger } = parts
  const queue = createQueue({ clock, newId })
  const isDisabled: IsSendingDisabled = async (appId) =>
    (await readSending(db, appId, clock.now())).hold?.reason === 'disabled'
  return {
    db,
    now: clock.now,
    newId,
    queue,
    users,
    segments,
    renderer,
    allowsAttachments: mayAttach,
    findTemplate: createFindTemplate({ db, merger }),
    findSuspension: createFindSuspension({ db, merger, now: clock.now }),
    isSendingDisabled: isDisabled,
    insertMessage: createInsertMessage({ db, now: clock.now, queue, isDisabled, merger }),
    warnUnreachable: createWarnUnreachable({ db, clock }),
  }
}
