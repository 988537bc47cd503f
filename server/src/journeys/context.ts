// The dependencies of all operations on journeys.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { createKeyedMutex, type KeyedMutex } from '../lib/keyed-mutex.ts'
import type { SecretBox } from '../lib/secrets.ts'
import { createQueue, type Queue } from '../queue/enqueue.ts'
import type { SendWebhook } from '../sending/send-notice.ts'
import type { Db } from '../storage/db.ts'
import type { Renderer } from '../templates/render/renderer.ts'

export type JourneysContext = {
  db: Db
  now: () => Date
  newId: NewId
  queue: Queue
  /** Checks the Liquid of tags. */
  renderer: Pick<Renderer, 'check'>
  secrets: SecretBox
  sendWebhook: SendWebhook
  minWaitSeconds: number
  /** Runs updates of one journey one after the other: concurrent ones would only make each other retry. */
  inTurn: KeyedMutex
}

export const createJourneysContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  renderer: Pick<Renderer, 'check'>
  secrets: SecretBox
  sendWebhook: SendWebhook
  minWaitSeconds: number
}): JourneysContext => {
  const { clock, ...rest } = parts
  return { ...rest, now: clock.now, queue: createQueue(parts), inTurn: createKeyedMutex() }
}
