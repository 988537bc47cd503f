// Notifies administrators. A notice is one row for the app and one for each administrator. Those with a webhook or an
// email address are sent by the queue. Rows and jobs are written in the transaction of the event that they report, so
// that neither exists without the other.

import { type AppId, newId } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { NewJob } from '../queue/job.ts'
import type { Db } from '../storage/db.ts'
import { type AdministratorId, findAdministrators, insertNotices, type NewNotice } from './notice-store.ts'

export const SEND_WEBHOOK_NOTICE = 'sending.notify'
export const SEND_EMAIL_NOTICE = 'sending.notify-by-mail'
const JOBS = { webhook: SEND_WEBHOOK_NOTICE, mail: SEND_EMAIL_NOTICE }

export const noticeKinds = [
  'sending.disabled',
  'event_webhook.disabled',
  'email.paused',
  'email.domain_failing',
  'template.suspended',
  'message.unknown',
] as const
export type NoticeKind = (typeof noticeKinds)[number]

export async function notifyAdministrators(
  db: Db,
  appId: AppId,
  kind: NoticeKind,
  detail: Record<string, unknown>,
  now: Date,
) {
  const administrators = await findAdministrators(db, appId)
  const told = (administratorId: AdministratorId, way: 'webhook' | 'mail'): NewNotice => ({
    id: newId(),
    kind,
    detail,
    administratorId,
    state: 'waiting',
    way,
  })
  const notices: NewNotice[] = [
    { id: newId(), kind, detail, administratorId: null, state: 'listed', way: null },
    ...administrators.flatMap(({ id, webhookUrl, email }) => [
      ...(webhookUrl === null ? [] : [told(id, 'webhook')]),
      ...(email === null ? [] : [told(id, 'mail')]),
    ]),
  ]
  await insertNotices(db, appId, notices, now)
  const jobs = notices.flatMap(({ id, way }): NewJob[] => (way ? [{ appId, name: JOBS[way], key: id }] : []))
  await createQueue({ clock: { now: () => now }, newId }).enqueue(db, jobs)
}
