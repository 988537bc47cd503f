// Sends events to webhooks, in order, up to a hundred per request. A request that was not accepted is sent again
// unchanged and under the same id, so that the receiver recognizes it. Each webhook has its own job, so a slow one does
// not delay the others.

import { SYSTEM } from '../apps/app.ts'
import { insertAuditEntries } from '../apps/store.ts'
import type { ChannelOutcome } from '../channels/channel.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { JobHandler, JobRun } from '../queue/job.ts'
import { notifyAdministrators } from '../sending/notify-administrators.ts'
import type { SendWebhook } from '../sending/send-notice.ts'
import type { Db } from '../storage/db.ts'
import { eventReceivers } from './event-receivers.ts'
import { type DisabledReason, NOT_FAILING, type StoredEvent, type Webhook, type WebhookId } from './webhook.ts'
import {
  deleteOldEvents,
  deleteTravelled,
  findDueWebhooksAcrossApps,
  findNextEvents,
  findOldEventsAcrossApps,
  findTravelling,
  findWebhook,
  lockWebhook,
  markTravelling,
  updateWebhook,
} from './webhook-store.ts'

export const SEND_EVENT_WEBHOOKS = 'feedback.webhooks'

export type EventWebhookContext = { db: Db; clock: Clock; newId: NewId; secrets: SecretBox; sendWebhook: SendWebhook }

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const EVENTS_AT_ONCE = 100
/** The limits of one run of the job, after which it yields to other jobs. */
const REQUESTS_IN_A_TURN = 20
const TURN_MS = 10 * SECOND_MS
/** The first and the longest pause between attempts. */
const RETRY_PAUSE_MS = { first: 5 * SECOND_MS, longest: HOUR_MS }
/** Events that cannot be delivered within a day are dropped. */
const EVENT_TTL_MS = DAY_MS
const MAX_FAILING_MS = 3 * DAY_MS
const DELETED_AT_ONCE = 10_000

/** An exhausted job may be dropped, because the schedule enqueues a new one for each webhook that has events. */
export const eventWebhookHandler = (ctx: EventWebhookContext): JobHandler => ({
  run: (work) => sendEvents(ctx, work),
  whenExhausted: 'drop',
  waitsFor: (webhookId) => webhookId,
})

/** Called on a schedule: enqueues a job for each webhook that has events and may be tried now. */
export async function enqueueDueWebhooks({ db, clock, newId }: EventWebhookContext): Promise<void> {
  const due = await findDueWebhooksAcrossApps(db, clock.now())
  const jobs = due.map(({ appId, id }) => ({ appId, name: SEND_EVENT_WEBHOOKS, key: id }))
  await createQueue({ clock, newId }).enqueue(db, jobs)
}

/** Called on a schedule, for events whose webhook never sends or drops them. */
export async function deleteExpiredEvents({ db, clock }: EventWebhookContext): Promise<void> {
  const before = new Date(clock.now().getTime() - 2 * EVENT_TTL_MS)
  for (const { appId, webhookId } of await findOldEventsAcrossApps(db, before))
    await dropEvents(db, appId, webhookId, before)
}

async function sendEvents(ctx: EventWebhookContext, work: JobRun): Promise<void> {
  const { appId, key: id } = work.job
  const beganMs = ctx.clock.leaseMs()
  for (let n = 0; n < REQUESTS_IN_A_TURN && !work.signal.aborted; n++) {
    const webhook = await findWebhook(ctx.db, appId, id)
    if (!webhook || webhook.disabledAt !== null) {
      await dropEvents(ctx.db, appId, id)
      return
    }
    if (webhook.nextTryAt !== null && webhook.nextTryAt > ctx.clock.now()) return
    const batch = await nextBatch(ctx, work, id)
    if (!batch) return
    const outcome = await ctx.sendWebhook({
      url: webhook.url,
      id: `events_${batch.batchId}`,
      body: bodyOf(appId, batch.events),
      secrets: eventReceivers.signingSecrets(ctx.secrets, appId, webhook, ctx.clock.now()),
    })
    if (!(await recordOutcome(ctx, work, id, batch.batchId, outcome))) return
    if (ctx.clock.leaseMs() - beganMs > TURN_MS) break
  }
  await createQueue(ctx).enqueue(ctx.db, [{ appId, name: SEND_EVENT_WEBHOOKS, key: id }])
}

/** Returns the batch that was not accepted yet, or else the events that have waited longest. */
const nextBatch = ({ db, newId }: EventWebhookContext, { job: { appId }, isStillHeld }: JobRun, id: WebhookId) =>
  db.transaction(async (db) => {
    if (!(await isStillHeld(db))) return undefined
    const travelling = await findTravelling(db, appId, id)
    if (travelling) return travelling
    const events = await findNextEvents(db, appId, id, EVENTS_AT_ONCE)
    if (events.length === 0) return undefined
    const batchId = newId()
    await markTravelling(db, appId, id, events, batchId)
    return { batchId, events }
  })

/** Returns whether more events may be sent immediately. */
async function recordOutcome(
  { db, clock, newId }: EventWebhookContext,
  { job: { appId }, isStillHeld, recordProgress }: JobRun,
  id: WebhookId,
  batchId: string,
  outcome: ChannelOutcome,
): Promise<boolean> {
  const now = clock.now()
  return db.transaction(async (db) => {
    if (!(await isStillHeld(db))) return false
    await recordProgress(db)
    if (outcome.kind === 'sent') await deleteTravelled(db, appId, id, batchId)
    const webhook = await lockWebhook(db, appId, id)
    if (!webhook) return false
    if (outcome.kind === 'sent') {
      if (webhook.failures > 0) await updateWebhook(db, appId, { ...webhook, ...NOT_FAILING })
      return true
    }
    const failed = await withFailure(db, appId, webhook, outcome, now)
    const reason = reasonToDisable(failed, outcome, now)
    if (!reason) {
      await updateWebhook(db, appId, failed)
      return false
    }
    await updateWebhook(db, appId, { ...failed, disabledAt: now, disabledReason: reason, updatedAt: now })
    const detail = { webhook_id: id, reason }
    await notifyAdministrators(db, appId, 'event_webhook.disabled', detail, now)
    await insertAuditEntries(
      db,
      appId,
      [
        {
          id: newId(),
          actor: SYSTEM,
          action: 'event_webhook.disable',
          targetType: 'event_webhook',
          targetId: id,
          detail: { reason },
        },
      ],
      now,
    )
    // The next run finds the webhook disabled and drops its events.
    return true
  })
}

function reasonToDisable({ failingSince }: Webhook, outcome: ChannelOutcome, now: Date): DisabledReason | undefined {
  if (outcome.kind === 'gone') return 'gone'
  return failingSince && now.getTime() - failingSince.getTime() >= MAX_FAILING_MS ? 'failing' : undefined
}

type FailedOutcome = Exclude<ChannelOutcome, { kind: 'sent' }>

/**
 * A refusal, a missing answer and a failed connection are treated alike, because the receiver may recover from each.
 */
async function withFailure(
  db: Db,
  appId: AppId,
  webhook: Webhook,
  outcome: FailedOutcome,
  now: Date,
): Promise<Webhook> {
  const dropped = await dropEvents(db, appId, webhook.id, new Date(now.getTime() - EVENT_TTL_MS))
  const pauseMs = Math.min(RETRY_PAUSE_MS.longest, RETRY_PAUSE_MS.first * 2 ** webhook.failures)
  const askedMs = outcome.kind === 'retry' ? (outcome.afterMs ?? 0) : 0
  return {
    ...webhook,
    failingSince: webhook.failingSince ?? now,
    failures: webhook.failures + 1,
    lastFailure: outcome.reason,
    nextTryAt: new Date(now.getTime() + Math.max(pauseMs, Math.min(askedMs, DAY_MS))),
    dropped: webhook.dropped + dropped,
  }
}

async function dropEvents(db: Db, appId: AppId, webhookId: WebhookId, before?: Date): Promise<number> {
  for (let dropped = 0; ; ) {
    const count = await deleteOldEvents(db, appId, webhookId, before, DELETED_AT_ONCE)
    dropped += count
    if (count < DELETED_AT_ONCE) return dropped
  }
}

/** Deterministic, so that a retry sends the same body. */
const bodyOf = (appId: AppId, events: readonly StoredEvent[]) =>
  JSON.stringify({
    type: 'message.events',
    timestamp: events[0]?.at.toISOString(),
    data: { app_id: appId, events: events.map(eventObject) },
  })

const eventObject = ({ id, kind, at, messageId, subscriptionId, userId, platform, reason, count }: StoredEvent) => ({
  id,
  kind,
  at: at.toISOString(),
  message_id: messageId,
  subscription_id: subscriptionId,
  onesignal_id: userId,
  subscription_type: platform,
  reason,
  ...(count !== null && { count }),
})
