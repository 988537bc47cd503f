// Records what devices report: that a message was received, and that somebody clicked it. A broadcast causes hundreds
// of thousands of reports, so concurrent ones are recorded in one transaction. A delivery is received once and clicked
// once, however often it is reported; only `clicks` counts every report. Several runs of the same message are reported
// one by one.

import type { Clock } from '../../lib/clock.ts'
import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { Merger } from '../../storage/merge.ts'
import { factCounter } from '../counts/fact.ts'
import type { MessageId } from '../message.ts'
import type { DeliveryEvent } from './delivery-event.ts'
import { insertDeliveryEvents } from './delivery-event-store.ts'
import {
  addFacts,
  findExpandTimes,
  lockReportedDeliveries,
  type ReportedDelivery,
  writeReports,
} from './report-store.ts'
import { type RecordRunActions, reportRunActions } from './run-actions.ts'

export type DeviceReport = { kind: 'received' | 'clicked'; messageId: MessageId; subscriptionId: SubscriptionId }

/** Resolves when the report is committed. A report that names no delivery of this app changes nothing. */
export type RecordReport = (appId: AppId, report: DeviceReport) => Promise<void>

type Parts = { db: Db; clock: Clock; merger: Merger; recordRunActions?: RecordRunActions | undefined }

export function createRecordReport({ db, clock, merger, recordRunActions }: Parts): RecordReport {
  return merger.merged<DeviceReport, void>({
    name: 'messages.note-feedback',
    async run(appId, reports) {
      await recordReports(db, appId, reports, clock.now(), recordRunActions)
      return reports.map(() => ({ value: undefined }))
    },
  })
}

type PairName = Omit<DeviceReport, 'kind'>
/** How often each was reported for one message and subscription. */
type ReportTotals = PairName & { received: number; clicked: number }

const keyOf = ({ messageId, subscriptionId }: PairName) => `${messageId} ${subscriptionId}`

function sumByDelivery(reports: readonly DeviceReport[]): Map<string, ReportTotals> {
  const byPair = new Map<string, ReportTotals>()
  for (const { kind, messageId, subscriptionId } of reports) {
    const pair = { messageId, subscriptionId }
    const totals = byPair.get(keyOf(pair)) ?? { ...pair, received: 0, clicked: 0 }
    totals[kind]++
    byPair.set(keyOf(pair), totals)
  }
  return byPair
}

async function recordReports(
  db: Db,
  appId: AppId,
  reports: readonly DeviceReport[],
  now: Date,
  recordRunActions: RecordRunActions | undefined,
): Promise<void> {
  const byPair = sumByDelivery(reports)
  const times = await findExpandTimes(db, appId, [...new Set(reports.map(({ messageId }) => messageId))])
  const pairs = [...byPair.values()].flatMap(({ messageId, subscriptionId }) => {
    const expandAt = times.get(messageId)
    return expandAt ? [{ expandAt, messageId, subscriptionId }] : []
  })
  if (pairs.length === 0) return
  await db.transaction(async (db) => {
    const changed = new Set<ReportedDelivery>()
    const events: DeliveryEvent[] = []
    const counter = factCounter()
    for (const [pair, deliveries] of Map.groupBy(await lockReportedDeliveries(db, appId, pairs), keyOf)) {
      const totals = byPair.get(pair) as ReportTotals
      const newest = deliveries.sort(newestFirst)
      counter.add(newest[0] as ReportedDelivery, 'clicks', totals.clicked)
      for (const kind of ['received', 'clicked'] as const)
        for (const delivery of newest.filter((delivery) => delivery[`${kind}At`] === null).slice(0, totals[kind])) {
          const { messageId, subscriptionId, userId, platform } = delivery
          delivery[`${kind}At`] = now
          changed.add(delivery)
          counter.add(delivery, kind)
          events.push({ kind, at: now, messageId, subscriptionId, userId, platform })
        }
    }
    if (changed.size > 0) await writeReports(db, appId, [...changed].map(reportsOf))
    const facts = counter.list()
    if (facts.length > 0) await addFacts(db, appId, facts)
    await insertDeliveryEvents(db, appId, events)
    await reportRunActions(recordRunActions, db, appId, changed)
  })
}

/**
 * Devices do not know runs, so reports are about the last one that was sent. Deliveries that were never attempted come
 * last.
 */
function newestFirst(a: ReportedDelivery, b: ReportedDelivery): number {
  const isTried = ({ attempts }: ReportedDelivery) => (attempts > 0 ? 1 : 0)
  return isTried(b) - isTried(a) || b.dueAt.getTime() - a.dueAt.getTime()
}

const reportsOf = ({ expandAt, messageId, subscriptionId, runId, receivedAt, clickedAt }: ReportedDelivery) => ({
  ...{ expandAt, messageId, subscriptionId, runId },
  ...{ receivedAt, clickedAt },
})
