// Holds and resumes the sending of all apps.

import { SYSTEM } from '../apps/app.ts'
import { findAllApps, insertOrganizationAuditEntries } from '../apps/store.ts'
import { AppError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { type ControlContext, enqueueResumeAll } from './control.ts'
import { lockServerSending, type ServerSending, updateServerSending } from './store.ts'

/** Batches that are being handed to a provider at this moment still go out. Pausing again has no effect. */
export function pauseServer({ db, now }: ControlContext): Promise<ServerSending> {
  const at = now()
  return db.transaction(async (db) => {
    const before = await lockServerSending(db)
    if (before.pausedAt) return before
    const after = { ...before, pausedAt: at }
    await updateServerSending(db, after)
    await recordAudit(db, 'server.sending.pause', {}, at)
    return after
  })
}

/**
 * After a restore an operator has to choose: `send` what the database considers due, or `discard` what was due before
 * now. A single job wakes the senders: there may be many apps, and the command does not wait for all of them.
 */
export function resumeServer({ db, now }: ControlContext, choice?: 'send' | 'discard'): Promise<ServerSending> {
  const at = now()
  return db.transaction(async (db) => {
    const before = await lockServerSending(db)
    if (before.restoredAt && !choice)
      throw conflict(
        'the database was restored or copied: messages in it may have been sent already; choose --send to send what is due, or --discard to give it up',
      )
    if (!before.restoredAt && choice === 'discard')
      throw conflict('the database was not restored, so nothing is discarded; cancel messages instead')
    if (!before.restoredAt && !before.pausedAt) return before
    const after: ServerSending = {
      ...before,
      pausedAt: null,
      restoredAt: null,
      discardBefore: choice === 'discard' ? at : before.discardBefore,
    }
    await updateServerSending(db, after)
    await recordAudit(db, 'server.sending.resume', { ...(choice && { choice }) }, at)
    await enqueueResumeAll(db, at)
    return after
  })
}

const conflict = (title: string) => new AppError('conflict', { code: 'sending-0', title })

/** Every organization can see in its audit log why its apps did not send. */
async function recordAudit(db: Db, action: string, detail: Record<string, unknown>, at: Date) {
  const organizations = new Set((await findAllApps(db)).map(({ organizationId }) => organizationId))
  for (const id of organizations)
    await insertOrganizationAuditEntries(
      db,
      id,
      [{ id: newId(), actor: SYSTEM, action, targetType: 'organization', targetId: id, detail }],
      at,
    )
}
