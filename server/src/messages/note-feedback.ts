// Devices tell that a message arrived, and that somebody opened it. They do so by the hundred thousand after a broadcast, so what
// comes at once is noted in one transaction. Each delivery is received once and clicked once, however often it is told; only
// `clicks` counts every time.

import type { Clock } from '../lib/clock.ts'
import type { AppId, SubscriptionId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { DeliveryEvent } from './event.ts'
import { insertDeliveryEvents } from './event-store.ts'
import { type DeliveryKey, factCounter } from './fact.ts'
import { addFacts, findExpandTimes, lockReported, type Reports, updateReported } from './feedback-store.ts'
import type { MessageId } from './message.ts'

export type Report = { kind: 'received' | 'clicked'; messageId: MessageId; subscriptionId: SubscriptionId }

/** Resolves when it is written down. What names no delivery of this app changes nothing. */
export type NoteFeedback = (appId: AppId, report: Report) => Promise<void>

export function createNoteFeedback({ db, clock, merger }: { db: Db; clock: Clock; merger: Merger }): NoteFeedback {
  return merger.merged<Report, void>({
    name: 'messages.note-feedback',
    async run(appId, reports) {
      await noteReports(db, appId, reports, clock.now())
      return reports.map(() => ({ value: undefined }))
    },
  })
}

type PairName = Omit<Report, 'kind'>
/** How often each was told of one pair. */
type Told = PairName & { received: number; clicked: number }

const keyOf = ({ messageId, subscriptionId }: PairName) => `${messageId} ${subscriptionId}`

function sumUp(reports: readonly Report[]): Map<string, Told> {
  const byPair = new Map<string, Told>()
  for (const { kind, messageId, subscriptionId } of reports) {
    const pair = { messageId, subscriptionId }
    const told = byPair.get(keyOf(pair)) ?? { ...pair, received: 0, clicked: 0 }
    told[kind]++
    byPair.set(keyOf(pair), told)
  }
  return byPair
}

async function noteReports(db: Db, appId: AppId, reports: readonly Report[], now: Date): Promise<void> {
  const byPair = sumUp(reports)
  const times = await findExpandTimes(db, appId, [...new Set(reports.map(({ messageId }) => messageId))])
  const pairs = [...byPair.values()].flatMap(({ messageId, subscriptionId }) => {
    const expandAt = times.get(messageId)
    return expandAt ? [{ expandAt, messageId, subscriptionId }] : []
  })
  if (pairs.length === 0) return
  await db.transaction(async (db) => {
    const changed: (DeliveryKey & Reports)[] = []
    const events: DeliveryEvent[] = []
    const counter = factCounter()
    for (const delivery of await lockReported(db, appId, pairs)) {
      const { expandAt, messageId, subscriptionId, runId, userId, platform, receivedAt, clickedAt } = delivery
      const told = byPair.get(keyOf(delivery)) as Told
      const news = (['received', 'clicked'] as const).filter((kind) => told[kind] > 0 && !delivery[`${kind}At`])
      counter.add(delivery, 'clicks', told.clicked)
      for (const kind of news) {
        counter.add(delivery, kind)
        events.push({ kind, at: now, messageId, subscriptionId, userId, platform })
      }
      if (news.length === 0) continue
      changed.push({
        ...{ expandAt, messageId, subscriptionId, runId },
        receivedAt: news.includes('received') ? now : receivedAt,
        clickedAt: news.includes('clicked') ? now : clickedAt,
      })
    }
    if (changed.length > 0) await updateReported(db, appId, changed)
    const facts = counter.list()
    if (facts.length > 0) await addFacts(db, appId, facts)
    await insertDeliveryEvents(db, appId, events)
  })
}
