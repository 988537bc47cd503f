// What the feedback operations depend on, assembled once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { ReadRunData } from '../messages/engine/types.ts'
import { createRecordReport, type RecordReport } from '../messages/feedback/record-reports.ts'
import type { RecordRunActions } from '../messages/feedback/run-actions.ts'
import type { SendWebhook } from '../sending/send-notice.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { ChangeUsers } from '../users/change.ts'
import { createEmailFeedbackContext, type EmailFeedbackContext, type EmailFeedbackParts } from './email/context.ts'
import { createHandleReceipt, type HandleReceipt } from './handle-receipts.ts'
import type { ReadTwilioWebhook } from './inbound-sms.ts'

export type FeedbackParts = {
  db: Db
  clock: Clock
  newId: NewId
  merger: Merger
  secrets: SecretBox
  /** Changes users. */
  change: ChangeUsers
  readTwilioWebhook: ReadTwilioWebhook
  publicUrl: string | undefined
  sendWebhook: SendWebhook
  emailFeedback: EmailFeedbackParts
  /** Provided by the domain that moves users through journey runs. */
  recordRunActions?: RecordRunActions | undefined
  readRunData?: ReadRunData | undefined
}

export type FeedbackContext = Omit<FeedbackParts, 'merger' | 'emailFeedback'> & {
  recordFeedback: RecordReport
  handleReceipt: HandleReceipt
  emailFeedback: EmailFeedbackContext
}

export const createFeedbackContext = ({ merger, ...parts }: FeedbackParts): FeedbackContext => ({
  ...parts,
  recordFeedback: createRecordReport({ ...parts, merger }),
  handleReceipt: createHandleReceipt({ ...parts, merger }),
  emailFeedback: createEmailFeedbackContext(parts.emailFeedback, { ...parts, merger }),
})
