// What the operations on feedback are made of, put together once.

import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { ReadRunData } from '../messages/engine/engine.ts'
import { createRecordReport, type RecordReport } from '../messages/feedback/record-reports.ts'
import type { RecordRunActions } from '../messages/feedback/run-actions.ts'
import type { SendWebhook } from '../sending/send-notice.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { ChangeUsers } from '../users/change.ts'
import { createMailContext, type MailContext, type MailParts } from './email/context.ts'
import { createTakeReceipt, type TakeReceipt } from './handle-receipts.ts'
import type { ReadTwilio } from './inbound-sms.ts'

export type FeedbackParts = {
  db: Db
  clock: Clock
  newId: NewId
  merger: Merger
  secrets: SecretBox
  /** Of users. */
  change: ChangeUsers
  readTwilio: ReadTwilio
  publicUrl: string | undefined
  sendWebhook: SendWebhook
  mail: MailParts
  /** Of whoever leads users through runs. */
  noteActions?: RecordRunActions | undefined
  readRunData?: ReadRunData | undefined
}

export type FeedbackContext = Omit<FeedbackParts, 'merger' | 'mail'> & {
  note: RecordReport
  takeReceipt: TakeReceipt
  mail: MailContext
}

export const createFeedbackContext = ({ merger, ...parts }: FeedbackParts): FeedbackContext => ({
  ...parts,
  note: createRecordReport({ ...parts, merger }),
  takeReceipt: createTakeReceipt({ ...parts, merger }),
  mail: createMailContext(parts.mail, { ...parts, merger }),
})
