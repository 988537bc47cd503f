// The engine's background jobs.

import type { Handler, Handlers } from '../../queue/job.ts'
import type { Schedule } from '../../queue/schedule.ts'
import { READS_AUDIENCE } from '../../segments/scan.ts'
import { RELEASE, WAKE, WAKE_ALL } from '../../sending/control.ts'
import { auditCounts } from '../counts/audit.ts'
import { deliverLine } from '../deliver/deliver-shard.ts'
import { beginningOf, readLine } from '../delivery.ts'
import { closeOver } from '../expand/close-open-messages.ts'
import { expandMessages } from '../expand/expand.ts'
import { keepMonths } from '../expand/months.ts'
import { CLOSE, DELIVER, EXPAND, EXPAND_BULK, TELL_UNKNOWN } from '../jobs.ts'
import { releaseDeliveries } from '../release/release.ts'
import { wakeAllApps, wakeApp } from '../release/resume.ts'
import { closeCanceled } from '../settle/close-canceled.ts'
import { settleMessages } from '../settle/complete-messages.ts'
import { forgetOldMessages } from '../settle/delete-expired.ts'
import { tellUnknown } from '../settle/report-unknown.ts'
import type { Engine } from './engine.ts'

/** An outage of an hour must not need somebody to release what was given up: about a day. */
const PATIENT = { maxAttempts: 100 }
/**
 * A mail server may take five minutes over one mail, and is asked for more than one in a slice. Who is cut off before it has answered
 * leaves a slice of which nobody knows, until the answers come after all.
 */
const SLOWEST_MS = 15 * 60_000

/**
 * Lines of all apps that wait for a provider at once, in one lane; an app has four. Texts wait for somebody else in each app, and take
 * little memory while they do. Mail may wait for somebody else too, but a line has 500 mails at hand: 6 MB, when each is made for one
 * person.
 */
const MOST_LINES = { ofTexts: 40, ofOthers: 16 }

/** Direct messages never wait for a connection behind those of the bulk lane. */
const onReserved = (engine: Engine): Engine => ({ ...engine, db: engine.directDb })

function deliverInLane(engine: Engine): Handler['run'] {
  const [direct, bulk] = [deliverLine(onReserved(engine)), deliverLine(engine)]
  return (work) => (readLine(work.job.key).lane === 'direct' ? direct(work) : bulk(work))
}

const mostLinesLike = (line: string) => (readLine(line).provider === 'sms' ? MOST_LINES.ofTexts : MOST_LINES.ofOthers)

export const messageHandlers = (engine: Engine): Handlers => ({
  [EXPAND]: { run: expandMessages(onReserved(engine)), ...PATIENT },
  [EXPAND_BULK]: { run: expandMessages(engine), ...READS_AUDIENCE, ...PATIENT },
  [DELIVER]: {
    run: deliverInLane(engine),
    waitsFor: beginningOf,
    mostWaiting: mostLinesLike,
    timeLimitMs: SLOWEST_MS,
    ...PATIENT,
  },
  [CLOSE]: { run: closeCanceled(engine), ...PATIENT },
  [TELL_UNKNOWN]: { run: tellUnknown(engine), ...PATIENT },
  [RELEASE]: { run: releaseDeliveries(engine), ...PATIENT },
  [WAKE]: { run: wakeApp(engine), ...PATIENT },
  [WAKE_ALL]: { run: wakeAllApps(engine), ...PATIENT },
})

export const messageSchedules = (engine: Engine, retentionDays: number): Schedule[] => [
  { name: 'messages.close-over', everyMs: 600_000, run: () => closeOver(engine) },
  { name: 'messages.settle', everyMs: 60_000, run: () => settleMessages(engine) },
  { name: 'messages.months', everyMs: 3_600_000, run: () => keepMonths(engine.db, engine.clock.now(), retentionDays) },
  {
    name: 'messages.forget',
    dailyAt: '02:10',
    run: () => forgetOldMessages(engine.db, engine.clock.now(), retentionDays),
  },
  {
    name: 'messages.audit-counts',
    dailyAt: '03:20',
    timeLimitMs: 3_600_000,
    run: async () => void (await auditCounts(engine)),
  },
]
