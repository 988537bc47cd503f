// The dependencies of the operations on sending, built once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'

export type SendingContext = {
  db: Db
  now: () => Date
  newId: NewId
  /** Seals the secrets that sign administrators' notices. */
  secrets: SecretBox
}

export const createSendingContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  secrets: SecretBox
}): SendingContext => ({ db: parts.db, now: parts.clock.now, newId: parts.newId, secrets: parts.secrets })
