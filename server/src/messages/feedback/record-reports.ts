// Devices tell that a message arrived, and that somebody opened it. They do so by the hundred thousand after a broadcast, so what
// comes at once is noted in one transaction. Each delivery is received once and clicked once, however often it is told; only
// `clicks` counts every time. Of several runs of the same message each is told of by itself.

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

/** Resolves when it is written down. What names no delivery of this app changes nothing. */
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
/** How often each was told of one pair. */
type ReportTotals = PairName & { received: number; clicked: number }

const keyOf = ({ messageId, subscriptionId }: PairName) => `${messageId} ${subscriptionId}`

function sumByDelivery(reports: readonly DeviceReport[]): Map<string, ReportTotals> {
  const byPair = new Map<string, ReportTotals>()
  for (const { kind, messageId, subscriptionId } of reports) {
    const pair = { messageId, subscriptionId }
    const told = byPair.get(keyOf(pair)) ?? { ...pair, received: 0, clicked: 0 }
    told[kind]++
    byPair.set(keyOf(pair), told)
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
      const told = byPair.get(pair) as ReportTotals
      const newest = deliveries.sort(newestFirst)
      counter.add(newest[0] as ReportedDelivery, 'clicks', told.clicked)
      for (const kind of ['received', 'clicked'] as const)
        for (const delivery of newest.filter((it) => it[`${kind}At`] === null).slice(0, told[kind])) {
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

/** A device does not know of runs: what it tells is of the last that was sent to it. What was never tried comes after all others. */
function newestFirst(a: ReportedDelivery, b: ReportedDelivery): number {
  const isTried = ({ attempts }: ReportedDelivery) => (attempts > 0 ? 1 : 0)
  return isTried(b) - isTried(a) || b.dueAt.getTime() - a.dueAt.getTime()
}

const reportsOf = ({ expandAt, messageId, subscriptionId, runId, receivedAt, clickedAt }: ReportedDelivery) => ({
  ...{ expandAt, messageId, subscriptionId, runId },
  ...{ receivedAt, clickedAt },
})
