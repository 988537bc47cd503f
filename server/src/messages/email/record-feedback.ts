// Records what is reported about emails: that they were opened, clicked, delivered or bounced, and that recipients
// complained or unsubscribed. After a broadcast, hundreds of thousands of reports arrive, more than once and in any
// order; concurrent ones are recorded in one transaction. For each delivery, every kind of report is recorded once;
// opens and clicks are also counted each time. Any report about a delivery with an unknown outcome proves that it was
// sent.

import type { BounceClass } from '../../channels/email/classify-bounce.ts'
import { countEmails, writerParts } from '../../email/metrics/count.ts'
import type { EmailCount } from '../../email/metrics/facts.ts'
import type { EmailReference } from '../../email/reference.ts'
import { recordSoftBounces } from '../../email/suppressions/store.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { Merger } from '../../storage/merge.ts'
import { type Fact, factCounter } from '../counts/fact.ts'
import { type CountChange, changeCounts, transitionsFrom } from '../counts/store.ts'
import type { DeliveryEvent } from '../feedback/delivery-event.ts'
import { insertDeliveryEvents } from '../feedback/delivery-event-store.ts'
import { type RecordRunActions, reportRunActions } from '../feedback/run-actions.ts'
import type { MessageId } from '../message.ts'
import {
  type EmailDelivery,
  type EmailTimes,
  findEmailAddresses,
  lockEmailDeliveries,
  updateEmailDeliveries,
} from './store.ts'

export type EmailFeedback = { reference: EmailReference; at: Date } & (
  | { kind: 'opened'; isMachine: boolean }
  | { kind: 'clicked'; isMachine: boolean }
  | { kind: 'delivered' }
  | { kind: 'bounced'; class: BounceClass; reason?: string }
  | { kind: 'complained' }
  | { kind: 'unsubscribed' }
)

export type RecordedEmailFeedback = {
  messageId: MessageId
  subscriptionId: SubscriptionId
  userId: UserId
  /**
   * The current address, for feedback after which it may have to be suppressed; null after the subscription was
   * deleted.
   */
  address: string | null
  /** False if the same was reported before. */
  isNews: boolean
}

/** Returns undefined if the delivery does not exist (any more). */
export type RecordEmailFeedback = (appId: AppId, news: EmailFeedback) => Promise<RecordedEmailFeedback | undefined>

type Parts = { db: Db; clock: Clock; merger: Merger; recordRunActions?: RecordRunActions | undefined }

export function createRecordEmailFeedback({ db, clock, merger, recordRunActions }: Parts): RecordEmailFeedback {
  return merger.merged<EmailFeedback, RecordedEmailFeedback | undefined>({
    name: 'messages.note-email',
    run: async (appId, news) =>
      (await noteAll(db, appId, news, clock.now(), recordRunActions)).map((value) => ({ value })),
  })
}

/**
 * The part of a message's counts that is written here. One part is enough: writers have locked the message's deliveries
 * before, and wait for each other only briefly.
 */
const FACTS_PART = 0

const nameOf = ({ month, id }: Pick<EmailReference, 'month' | 'id'>) => `${month.getTime()} ${id}`

/** Feedback which shows that a person got the email or acted on it. */
const ACTIONS: readonly EmailFeedback['kind'][] = ['delivered', 'opened', 'clicked']

function noteAll(
  db: Db,
  appId: AppId,
  list: readonly EmailFeedback[],
  now: Date,
  recordRunActions: RecordRunActions | undefined,
): Promise<(RecordedEmailFeedback | undefined)[]> {
  return db.transaction(async (db) => {
    const known = await lockAll(
      db,
      appId,
      list.map(({ reference }) => reference),
    )
    const counter = factCounter()
    const counts: EmailCount[] = []
    const events: DeliveryEvent[] = []
    const changed = new Set<EmailDelivery>()
    const resolved: CountChange[] = []
    const acted = new Set<EmailDelivery>()
    const noted = list.map((news) => {
      const delivery = known.get(nameOf(news.reference))
      if (!delivery) return undefined
      const isNews = take(delivery, news)
      if (isNews && delivery.state === 'unknown') {
        resolved.push(...transitionsFrom({ state: 'unknown', reason: delivery.reason ?? '' }, [resolve(delivery)]))
        counts.push(...sentOf(delivery, news.at))
      }
      if (isNews) {
        changed.add(delivery)
        events.push(eventOf(delivery, news))
        if (ACTIONS.includes(news.kind)) acted.add(delivery)
      }
      for (const fact of factsOf(news, isNews)) counter.add(delivery, fact)
      counts.push(...countsOf(delivery, news, isNews))
      return { delivery, isNews }
    })
    if (changed.size > 0) await updateEmailDeliveries(db, appId, [...changed])
    const facts = counter.list().map(({ fact, ...it }): CountChange => ({ ...it, state: fact, reason: null }))
    await changeCounts(db, appId, FACTS_PART, [...resolved, ...facts])
    if (counts.length > 0) await countEmails(db, appId, writerParts.feedback, counts)
    await insertDeliveryEvents(db, appId, events)
    await reportRunActions(recordRunActions, db, appId, acted)
    const addresses = await findMeant(db, appId, list, known)
    const answers = noted.map((it): RecordedEmailFeedback | undefined => {
      if (!it) return undefined
      const { messageId, subscriptionId, userId } = it.delivery
      return { messageId, subscriptionId, userId, address: addresses.get(subscriptionId) ?? null, isNews: it.isNews }
    })
    await recordSoftBounces(db, appId, softlyBounced(list, answers), now)
    return answers
  })
}

/** Locks month by month, in order. Nearly always there is only one month. */
async function lockAll(db: Db, appId: AppId, references: readonly EmailReference[]) {
  const known = new Map<string, EmailDelivery>()
  const months = Map.groupBy(references, ({ month }) => month.getTime())
  for (const [ms, of] of [...months].sort(([a], [b]) => a - b)) {
    const month = new Date(ms)
    const ids = [...new Set(of.map(({ id }) => id))]
    for (const it of await lockEmailDeliveries(db, appId, month, ids)) known.set(nameOf({ month, id: it.id }), it)
  }
  return known
}

const TIMES = {
  opened: 'openedAt',
  clicked: 'clickedAt',
  delivered: 'deliveredAt',
  bounced: 'bouncedAt',
  complained: 'complainedAt',
  unsubscribed: 'unsubscribedAt',
} as const satisfies Record<EmailFeedback['kind'], keyof EmailTimes>

/** A server that will retry has not refused the email. */
const isNothing = (news: EmailFeedback) => news.kind === 'bounced' && news.class === 'transient'

/** Applies feedback to the delivery. Returns true the first time. */
function take(delivery: EmailDelivery, news: EmailFeedback): boolean {
  const time = TIMES[news.kind]
  if (delivery[time] !== null || isNothing(news)) return false
  // The report of a bounce may precede the moment at which the answer was recorded.
  const isEarly = news.kind === 'bounced' && delivery.deliveredAt !== null && news.at < delivery.deliveredAt
  delivery[time] = isEarly ? delivery.deliveredAt : news.at
  return true
}

function factsOf(news: EmailFeedback, isNews: boolean): Fact[] {
  const once: Fact[] = isNews ? [news.kind] : []
  if (news.kind === 'opened') return [...once, 'opens', ...(news.isMachine ? (['machine_opens'] as const) : [])]
  if (news.kind === 'clicked') return [...once, 'clicks', ...(news.isMachine ? (['machine_clicks'] as const) : [])]
  return once
}

function resolve(delivery: EmailDelivery): EmailDelivery {
  return Object.assign(delivery, { state: 'sent', reason: null })
}

const sentOf = ({ sendingDomain: domain, inboxProvider: provider }: EmailDelivery, at: Date): EmailCount[] =>
  domain === null || provider === null ? [] : [{ domain, provider, at, sent: 1 }]

/** Test messages have no domain to be counted under. */
function countsOf({ sendingDomain, inboxProvider }: EmailDelivery, news: EmailFeedback, isNews: boolean): EmailCount[] {
  if (sendingDomain === null || inboxProvider === null) return []
  const under = { domain: sendingDomain, provider: inboxProvider, at: news.at }
  const once = isNews ? 1 : 0
  switch (news.kind) {
    case 'opened':
      return [{ ...under, opened: 1, unique_opened: once }]
    case 'clicked':
      return [{ ...under, clicked: 1, unique_clicked: once }]
    case 'unsubscribed':
      return []
    default:
      return isNews ? [{ ...under, [news.kind]: 1 }] : []
  }
}

const eventOf = (
  { messageId, subscriptionId, userId, platform }: EmailDelivery,
  news: EmailFeedback,
): DeliveryEvent => ({
  kind: news.kind,
  at: news.at,
  messageId,
  subscriptionId,
  userId,
  platform,
  reason: reasonOf(news),
})

/** For an open or a click, the reason says that it was made by a machine. */
function reasonOf(news: EmailFeedback): string | undefined {
  if (news.kind === 'bounced') return news.reason ?? news.class
  return 'isMachine' in news && news.isMachine ? 'machine' : undefined
}

/** Finds the addresses for feedback after which an address may have to be suppressed. Opens and clicks need none. */
async function findMeant(
  db: Db,
  appId: AppId,
  list: readonly EmailFeedback[],
  known: ReadonlyMap<string, EmailDelivery>,
): Promise<ReadonlyMap<SubscriptionId, string>> {
  const ids = list.flatMap(({ kind, reference }) => {
    const delivery = known.get(nameOf(reference))
    return delivery && (kind === 'bounced' || kind === 'complained' || kind === 'unsubscribed')
      ? [delivery.subscriptionId]
      : []
  })
  return ids.length === 0 ? new Map() : findEmailAddresses(db, appId, [...new Set(ids)])
}

/**
 * Soft bounces are counted in the transaction that records them: a retry would find them recorded already, and not
 * count them.
 */
function softlyBounced(
  list: readonly EmailFeedback[],
  noted: readonly (RecordedEmailFeedback | undefined)[],
): string[] {
  return list.flatMap((news, n) => {
    const it = noted[n]
    const isSoft = news.kind === 'bounced' && (news.class === 'soft' || news.class === 'full')
    return isSoft && it?.isNews && it.address !== null ? [it.address.toLowerCase()] : []
  })
}
