// What the operations on email feedback depend on.

import type { EmailReferences } from '../../email/reference.ts'
import type { Clock } from '../../lib/clock.ts'
import { createRecordEmailFeedback, type RecordEmailFeedback } from '../../messages/email/record-feedback.ts'
import type { RecordRunActions } from '../../messages/feedback/run-actions.ts'
import type { Db } from '../../storage/db.ts'
import type { Merger } from '../../storage/merge.ts'
import type { Renderer } from '../../templates/render/renderer.ts'
import type { ClassifyBounce, FetchPage } from './ports.ts'
import { createCertificates, type FindCertificate } from './sources/ses.ts'
import { createTrackingGuard, type TrackingGuard } from './tracking-guard.ts'

export type EmailFeedbackParts = {
  references: EmailReferences
  classifyBounce: ClassifyBounce
  fetchPage: FetchPage
  renderer: Renderer
}

export type EmailFeedbackContext = EmailFeedbackParts & {
  noteEmail: RecordEmailFeedback
  trackingGuard: TrackingGuard
  findCertificate: FindCertificate
}

export const createEmailFeedbackContext = (
  parts: EmailFeedbackParts,
  {
    db,
    clock,
    merger,
    recordRunActions,
  }: { db: Db; clock: Clock; merger: Merger; recordRunActions?: RecordRunActions | undefined },
): EmailFeedbackContext => ({
  ...parts,
  noteEmail: createRecordEmailFeedback({ db, clock, merger, recordRunActions }),
  trackingGuard: createTrackingGuard(clock),
  findCertificate: createCertificates({ clock, fetchPage: parts.fetchPage }),
})
