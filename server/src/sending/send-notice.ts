// Sends a notice to an administrator by webhook or by email. A webhook receiver recognizes a repeated notice by its id.
// The queue retries what could not be handed over.

import type { ChannelOutcome } from '../channels/channel.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { JobHandler } from '../queue/job.ts'
import type { Db } from '../storage/db.ts'
import { findEmailNotice, findWebhookNotice, type NoticeId, settleNotice, type WebhookNotice } from './notice-store.ts'
import { sealedWebhookSecret } from './webhook-secret.ts'
import { writeNoticeEmail } from './write-notice-email.ts'

/** Implemented by channels/webhook: signs according to Standard Webhooks, and sends only to public addresses. */
export type SendWebhook = (webhook: {
  url: string
  id: string
  body: string
  secrets: readonly string[]
}) => Promise<ChannelOutcome>

/** Implemented by the composition: uses the route of the app's email, without its counts and holds. */
export type SendNoticeEmail = (
  appId: AppId,
  mail: { to: string; id: NoticeId; subject: string; text: string },
) => Promise<ChannelOutcome>

type NoticeContext = { db: Db; clock: Pick<Clock, 'now'> }
export type WebhookNoticeContext = NoticeContext & { secrets: SecretBox; sendWebhook: SendWebhook }
export type EmailNoticeContext = NoticeContext & { sendEmail: SendNoticeEmail }
export type SendNoticeContext = WebhookNoticeContext & EmailNoticeContext

export const webhookNoticeHandler = (ctx: WebhookNoticeContext): JobHandler => ({
  run: ({ job }) => sendWebhookNotice(ctx, job.appId, job.key),
  waitsFor: (noticeId) => noticeId,
})
export const emailNoticeHandler = (ctx: EmailNoticeContext): JobHandler => ({
  run: ({ job }) => sendEmailNotice(ctx, job.appId, job.key),
  waitsFor: (noticeId) => noticeId,
})

async function sendWebhookNotice(ctx: WebhookNoticeContext, appId: AppId, id: NoticeId): Promise<void> {
  const notice = await findWebhookNotice(ctx.db, appId, id)
  // Already sent by an attempt that could not record it, or the administrator was removed.
  if (!notice) return
  const outcome = await ctx.sendWebhook({
    url: notice.webhookUrl,
    id: `notice_${id}`,
    body: bodyOf(appId, notice),
    secrets: [sealedWebhookSecret(ctx.secrets, appId, notice.administratorId).open(notice.webhookSecret)],
  })
  await recordOutcome(ctx, appId, id, outcome)
}

async function sendEmailNotice(ctx: EmailNoticeContext, appId: AppId, id: NoticeId): Promise<void> {
  const notice = await findEmailNotice(ctx.db, appId, id)
  if (!notice) return
  await recordOutcome(
    ctx,
    appId,
    id,
    await ctx.sendEmail(appId, { to: notice.email, id, ...writeNoticeEmail(appId, notice) }),
  )
}

async function recordOutcome(ctx: NoticeContext, appId: AppId, id: NoticeId, outcome: ChannelOutcome): Promise<void> {
  const now = ctx.clock.now()
  if (outcome.kind === 'sent') await settleNotice(ctx.db, appId, id, { state: 'sent', at: now, reason: null })
  else if (outcome.kind === 'retry' || outcome.kind === 'unknown') {
    // Keeps the reason visible while the notice is retried.
    await settleNotice(ctx.db, appId, id, { state: 'waiting', at: null, reason: outcome.reason })
    throw new Error(`the notice was not taken: ${outcome.reason}`)
  } else await settleNotice(ctx.db, appId, id, { state: 'failed', at: now, reason: outcome.reason })
}

const bodyOf = (appId: AppId, { kind, at, detail }: WebhookNotice) =>
  JSON.stringify({ type: kind, timestamp: at.toISOString(), data: { app_id: appId, ...detail } })
