import type { EmailContext } from '../email/context.ts'
import { recheckDomains } from '../email/domains/recheck.ts'
import { deleteExpiredHosts } from '../email/inbox-providers/hosts.ts'
import { deleteExpiredCaught } from '../email/mailbox/catch-email.ts'
import { deleteExpiredCounts, maintainPartitions as keepEmailMonths } from '../email/metrics/retention.ts'
import { deleteExpiredSoftBounces } from '../email/suppressions/delete-expired.ts'
import { deleteEventsOfUser, deleteExpiredEventKeys } from '../events/delete.ts'
import { maintainEventMonths } from '../events/months.ts'
import { deleteExpiredExports } from '../exports/delete-expired.ts'
import { MAKE_EXPORT, makeExport } from '../exports/make.ts'
import { deleteExpiredReceipts } from '../feedback/email/sources/receive-events.ts'
import { MATCH_RECEIPTS, matchReceipts } from '../feedback/handle-receipts.ts'
import {
  deleteExpiredEvents,
  enqueueDueWebhooks,
  eventWebhookHandler,
  SEND_EVENT_WEBHOOKS,
} from '../feedback/send-event-webhooks.ts'
import {
  DELETE_MESSAGE_DATA,
  deleteExpiredInAppGrants,
  deleteInAppDataOfUser,
  deleteMessageData,
} from '../in-app/delete-data.ts'
import type { JourneysContext } from '../journeys/context.ts'
import { entryHandlers } from '../journeys/entry/handlers.ts'
import { deleteExpiredRuns, deleteRunsOfUser } from '../journeys/retention.ts'
import type { RunsContext } from '../journeys/runs/context.ts'
import { runHandlers } from '../journeys/runs/handlers.ts'
import { wakeHeldRuns } from '../journeys/sends/hold.ts'
import { journeyHandlers } from '../journeys/states/activate.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { sweepIdleCounters } from '../limits/sweep-idle.ts'
import { deleteExpiredMessageKeys } from '../messages/accept/idempotency.ts'
import { deleteExpiredActivityTokens } from '../messages/activities/tokens.ts'
import { messageHandlers, messageSchedules } from '../messages/engine/handlers.ts'
import type { Engine } from '../messages/engine/types.ts'
import { resumeApp } from '../messages/release/resume.ts'
import { deleteSendsTo } from '../messages/settle/delete-expired.ts'
import { deleteExpiredOutcomeCounts } from '../outcomes/delete-expired.ts'
import type { JobHandlers } from '../queue/job.ts'
import type { Schedule } from '../queue/schedule.ts'
import { indexTags } from '../segments/index-tags.ts'
import { RESUME_DELIVERIES } from '../sending/control.ts'
import { SEND_EMAIL_NOTICE, SEND_WEBHOOK_NOTICE } from '../sending/notify-administrators.ts'
import { emailNoticeHandler, type SendNoticeContext, webhookNoticeHandler } from '../sending/send-notice.ts'
import type { Db } from '../storage/db.ts'
import type { ChangeUsers } from '../users/change.ts'
import { deleteFeedEntriesOf, enqueueLostFeedJobs } from '../users/change-feed/change-feed.ts'
import { USER_DELETED_JOB } from '../users/deletion-jobs.ts'

export type JobsContext = SendNoticeContext & {
  db: Db
  clock: Clock
  newId: NewId
  /** Changes users. */
  change: ChangeUsers
  eventRetentionDays: number
  deliveryRetentionDays: number
  engine: Engine
  journeys: JourneysContext
  runs: RunsContext
  email: EmailContext
}

export const allHandlers = (ctx: JobsContext): JobHandlers => ({
  [USER_DELETED_JOB]: {
    async run({ job }) {
      await deleteEventsOfUser(ctx.db, job.appId, job.key)
      await deleteFeedEntriesOf(ctx.db, job.appId, job.key)
      await deleteSendsTo(ctx.db, job.appId, job.key)
      await deleteInAppDataOfUser(ctx.db, job.appId, job.key)
      await deleteRunsOfUser(ctx.db, job.appId, job.key)
    },
  },
  [SEND_WEBHOOK_NOTICE]: webhookNoticeHandler(ctx),
  [SEND_EMAIL_NOTICE]: emailNoticeHandler(ctx),
  ...messageHandlers(ctx.engine),
  [RESUME_DELIVERIES]: {
    async run(work) {
      await resumeApp(ctx.engine)(work)
      await wakeHeldRuns(ctx.runs, work.job.appId)
    },
    maxAttempts: 100,
  },
  ...journeyHandlers(ctx.journeys, ctx.engine.scanAudience),
  ...entryHandlers(ctx.runs),
  ...runHandlers(ctx.runs, ctx.journeys),
  [DELETE_MESSAGE_DATA]: { run: ({ job }) => deleteMessageData(ctx.db, job.appId, job.key) },
  [SEND_EVENT_WEBHOOKS]: eventWebhookHandler(ctx),
  [MAKE_EXPORT]: makeExport({ ...ctx, scanAudience: ctx.engine.scanAudience }),
  [MATCH_RECEIPTS]: { run: ({ job }) => matchReceipts(ctx, job.appId) },
})

export const allSchedules = (ctx: JobsContext): Schedule[] => {
  const { db, clock, eventRetentionDays } = ctx
  return [
    { name: 'limits.forget', everyMs: 60_000, run: () => sweepIdleCounters(db, clock.leaseMs()) },
    { name: 'users.news', everyMs: 5_000, run: () => enqueueLostFeedJobs(ctx) },
    { name: 'events.months', everyMs: 3_600_000, run: () => maintainEventMonths(db, clock.now(), eventRetentionDays) },
    { name: 'events.keys', everyMs: 300_000, run: () => deleteExpiredEventKeys(db, clock.now()) },
    { name: 'in-app.grants', everyMs: 3_600_000, run: () => deleteExpiredInAppGrants(db, clock.now()) },
    { name: 'outcomes.forget', everyMs: 3_600_000, run: () => deleteExpiredOutcomeCounts(db, clock.now()) },
    { name: 'exports.forget', everyMs: 600_000, run: () => deleteExpiredExports(db, clock.now()) },
    { name: 'activities.tokens', everyMs: 3_600_000, run: () => deleteExpiredActivityTokens(db, clock.now()) },
    { name: 'messages.keys', everyMs: 300_000, run: () => deleteExpiredMessageKeys(db, clock.now()) },
    {
      name: 'email.domains',
      dailyAt: '03:20',
      timeLimitMs: 3_600_000,
      run: ({ signal }) => recheckDomains(ctx.email, signal),
    },
    { name: 'email.mailbox', everyMs: 3_600_000, run: () => deleteExpiredCaught(db, clock.now()) },
    { name: 'email.soft-bounces', everyMs: 3_600_000, run: () => deleteExpiredSoftBounces(db, clock.now()) },
    { name: 'email.months', everyMs: 3_600_000, run: () => keepEmailMonths(db, clock.now()) },
    { name: 'email.forget', everyMs: 3_600_000, run: () => deleteExpiredCounts(db, clock.now()) },
    { name: 'email.hosts', everyMs: 3_600_000, run: () => deleteExpiredHosts(db, clock.now()) },
    // Indexing a large table takes long; the maximum is ten indexes of an hour each.
    { name: 'segments.index-tags', everyMs: 600_000, timeLimitMs: 36_000_000, run: () => indexTags(db) },
    { name: 'feedback.webhooks', everyMs: 5_000, run: () => enqueueDueWebhooks(ctx) },
    { name: 'feedback.forget', everyMs: 3_600_000, run: () => deleteExpiredEvents(ctx) },
    { name: 'feedback.email-events', everyMs: 3_600_000, run: () => deleteExpiredReceipts(db, clock.now()) },
    {
      name: 'journeys.forget',
      dailyAt: '04:10',
      timeLimitMs: 3_600_000,
      run: () => deleteExpiredRuns(db, clock.now(), ctx.deliveryRetentionDays),
    },
    ...messageSchedules(ctx.engine, ctx.deliveryRetentionDays),
  ]
}
