// Suspends content that keeps hitting its time limit and notifies the administrators, once even if several workers
// detect it.

import { SYSTEM } from '../../apps/app.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import { notifyAdministrators } from '../../sending/notify-administrators.ts'
import { SUSPENSION_MS } from '../../templates/suspension.ts'
import { deleteEndedSuspensions, insertSuspension } from '../../templates/suspension-store.ts'
import type { Engine } from '../engine/types.ts'
import type { SentMessage } from './store.ts'

export async function suspendContent(
  { db, clock }: Pick<Engine, 'db' | 'clock'>,
  appId: AppId,
  fingerprint: string,
  { id: messageId, templateId, options }: SentMessage,
): Promise<void> {
  const since = clock.now()
  const until = new Date(since.getTime() + SUSPENSION_MS)
  await db.transaction(async (db) => {
    if (!(await insertSuspension(db, appId, { fingerprint, templateId, messageId, since, until }))) return
    await deleteEndedSuspensions(db, appId, since)
    const detail = {
      template_id: templateId,
      template_name: options.template?.name ?? null,
      message_id: messageId,
      until: until.toISOString(),
    }
    const target = templateId
      ? { targetType: 'template' as const, targetId: templateId }
      : { targetType: 'message' as const, targetId: messageId }
    await insertAuditEntries(
      db,
      appId,
      [{ id: newId(), actor: SYSTEM, action: 'template.suspend', detail, ...target }],
      since,
    )
    await notifyAdministrators(db, appId, 'template.suspended', detail, since)
  })
}
