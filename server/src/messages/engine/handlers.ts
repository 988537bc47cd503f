// The engine's background jobs and schedules.

import type { JobHandler, JobHandlers } from '../../queue/job.ts'
import type { Schedule } from '../../queue/schedule.ts'
import { AUDIENCE_SCAN_HANDLER } from '../../segments/scan.ts'
import { RELEASE_HELD, RESUME_ALL_DELIVERIES, RESUME_DELIVERIES } from '../../sending/control.ts'
import { auditCounts } from '../counts/audit.ts'
import { deliverShard } from '../deliver/deliver-shard.ts'
import { parseShard, shardPrefixOf } from '../delivery.ts'
import { closeOpenMessages } from '../expand/close-open-messages.ts'
import { expandMessages } from '../expand/expand.ts'
import { maintainDeliveryMonths } from '../expand/months.ts'
import { CLOSE, DELIVER, EXPAND, EXPAND_BULK, REPORT_UNKNOWN } from '../jobs.ts'
import { releaseDeliveries } from '../release/release.ts'
import { resumeAllApps, resumeApp } from '../release/resume.ts'
import { closeCanceled } from '../settle/close-canceled.ts'
import { completeMessagesAcrossApps } from '../settle/complete-messages.ts'
import { deleteExpiredMessages } from '../settle/delete-expired.ts'
import { reportUnknown } from '../settle/report-unknown.ts'
import type { Engine } from './types.ts'

/** About a day of retries: after an outage of an hour, nobody should have to release parked jobs. */
const RETRIED_FOR_A_DAY = { maxAttempts: 100 }

/**
 * A mail server may take five minutes for one email, and gets several from a batch. A worker that is cut off earlier
 * leaves a batch with unknown outcomes until the answers arrive after all.
 */
const MAX_BATCH_MS = 15 * 60_000

/**
 * How many shards of all apps together may wait for one provider at once, in one lane. One app has four shards. An SMS
 * shard waits for its own app's message centre and takes little memory meanwhile. A shard of emails holds up to 500,
 * which is 6 MB if each has its own content.
 */
const MAX_WAITING_SHARDS = { sms: 40, others: 16 }

const maxWaitingShards = (shard: string) =>
  parseShard(shard).provider === 'sms' ? MAX_WAITING_SHARDS.sms : MAX_WAITING_SHARDS.others

/** Direct messages never wait for a connection behind the bulk lane. */
const onReservedConnections = (engine: Engine): Engine => ({ ...engine, db: engine.directDb })

function deliverInLane(engine: Engine): JobHandler['run'] {
  const deliverDirect = deliverShard(onReservedConnections(engine))
  const deliverBulk = deliverShard(engine)
  return (work) => (parseShard(work.job.key).lane === 'direct' ? deliverDirect(work) : deliverBulk(work))
}

export const messageHandlers = (engine: Engine): JobHandlers => ({
  [EXPAND]: { run: expandMessages(onReservedConnections(engine)), ...RETRIED_FOR_A_DAY },
  [EXPAND_BULK]: { run: expandMessages(engine), ...AUDIENCE_SCAN_HANDLER, ...RETRIED_FOR_A_DAY },
  [DELIVER]: {
    run: deliverInLane(engine),
    waitsFor: shardPrefixOf,
    maxWaiting: maxWaitingShards,
    timeLimitMs: MAX_BATCH_MS,
    ...RETRIED_FOR_A_DAY,
  },
  [CLOSE]: { run: closeCanceled(engine), ...RETRIED_FOR_A_DAY },
  [REPORT_UNKNOWN]: { run: reportUnknown(engine), ...RETRIED_FOR_A_DAY },
  [RELEASE_HELD]: { run: releaseDeliveries(engine), ...RETRIED_FOR_A_DAY },
  [RESUME_DELIVERIES]: { run: resumeApp(engine), ...RETRIED_FOR_A_DAY },
  [RESUME_ALL_DELIVERIES]: { run: resumeAllApps(engine), ...RETRIED_FOR_A_DAY },
})

export const messageSchedules = (engine: Engine, retentionDays: number): Schedule[] => [
  { name: 'messages.close-over', everyMs: 600_000, run: () => closeOpenMessages(engine) },
  { name: 'messages.settle', everyMs: 60_000, run: () => completeMessagesAcrossApps(engine) },
  {
    name: 'messages.months',
    everyMs: 3_600_000,
    run: () => maintainDeliveryMonths(engine.db, engine.clock.now(), retentionDays),
  },
  {
    name: 'messages.forget',
    dailyAt: '02:10',
    run: () => deleteExpiredMessages(engine.db, engine.clock.now(), retentionDays),
  },
  {
    name: 'messages.audit-counts',
    dailyAt: '03:20',
    timeLimitMs: 3_600_000,
    run: async () => void (await auditCounts(engine)),
  },
]
