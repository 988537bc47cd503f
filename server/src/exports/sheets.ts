// The content of each kind of export: its columns, and how the next batch of lines is read.

import type { AppId, SubscriptionId } from '../lib/ids.ts'
import { findMessage } from '../messages/store.ts'
import { type AudienceMember, pageStatement } from '../segments/audience.ts'
import type { FilterNode } from '../segments/filters/tree.ts'
import { filterTreeOf } from '../segments/read.ts'
import type { ScanAudience } from '../segments/scan.ts'
import type { Db } from '../storage/db.ts'
import { isReachable } from '../users/subscriptions/reachable.ts'
import { deviceNumberOfType, type SubscriptionType } from '../users/subscriptions/subscription.ts'
import type { Cell } from './csv.ts'
import type { ExportRequest, SubscriptionsRequest } from './export.ts'
import {
  type DeliveryRow,
  type DeliveryRowCursor,
  findDeliveryRows,
  findSubscriptionRows,
  type SubscriptionRow,
} from './rows-store.ts'

/**
 * A batch of lines, and the position where the next batch begins; undefined after the last one. `nextSize` is the
 * number of subscriptions that the next batch is to examine.
 */
export type SheetBatch = { lines: Cell[][]; cursor: unknown; nextSize?: number }
export type Sheet = {
  columns: string[]
  next(ctx: SheetContext, appId: AppId, place: unknown, now: Date): Promise<SheetBatch>
}
export type SheetContext = { db: Db; scanAudience: ScanAudience; signal: AbortSignal; size: number | undefined }

const ROWS_AT_ONCE = 5_000

type Columns<Row> = Record<string, (row: Row) => Cell>
const linesOf = <Row>(columns: Columns<Row>, rows: Row[]) =>
  rows.map((row) => Object.values(columns).map((cellOf) => cellOf(row)))

const iso = (time: Date | null) => time?.toISOString()
const seconds = (time: Date) => Math.floor(time.getTime() / 1000)
const truth = (value: boolean) => (value ? 't' : 'f')
const deviceType = (type: string) => deviceNumberOfType(type as SubscriptionType)

export function sheetOf(request: ExportRequest): Sheet {
  switch (request.kind) {
    case 'subscriptions':
      return subscriptionsSheet(request)
    case 'history':
      return request.events === 'clicked'
        ? deliveriesSheet(
            request.messageId,
            { ...recipientColumns, clicked_at: (it) => iso(it.clickedAt) },
            (it) => it.clickedAt,
          )
        : deliveriesSheet(
            request.messageId,
            { ...recipientColumns, sent_at: (it) => iso(it.settledAt) },
            (it) => it.state === 'sent',
          )
    case 'activity':
      return deliveriesSheet(request.messageId, activityColumns, () => true)
  }
}

const recipientColumns: Columns<DeliveryRow> = {
  subscription_id: (it) => it.subscriptionId,
  onesignal_id: (it) => it.userId,
  external_id: (it) => it.externalId,
  device_type: (it) => deviceType(it.platform),
}

const activityColumns: Columns<DeliveryRow> = {
  ...recipientColumns,
  type: (it) => it.platform,
  state: (it) => it.state,
  reason: (it) => it.reason,
  attempts: (it) => it.attempts,
  due_at: (it) => iso(it.dueAt),
  settled_at: (it) => iso(it.settledAt),
  received_at: (it) => iso(it.receivedAt),
  clicked_at: (it) => iso(it.clickedAt),
  provider_reference: (it) => it.providerRef,
  inbox_provider: (it) => it.inboxProvider,
  delivered_at: (it) => iso(it.deliveredAt),
  opened_at: (it) => iso(it.openedAt),
  bounced_at: (it) => iso(it.bouncedAt),
  complained_at: (it) => iso(it.complainedAt),
  unsubscribed_at: (it) => iso(it.unsubscribedAt),
}

const deliveriesSheet = (
  messageId: string,
  columns: Columns<DeliveryRow>,
  isMeant: (it: DeliveryRow) => unknown,
): Sheet => ({
  columns: Object.keys(columns),
  async next({ db }, appId, place) {
    const message = await findMessage(db, appId, messageId)
    // The message was not expanded yet, or it was deleted.
    if (!message?.expandAt) return { lines: [], cursor: undefined }
    const at = { id: messageId, expandAt: message.expandAt }
    const rows = await findDeliveryRows(db, appId, at, (place as DeliveryRowCursor | null) ?? undefined, ROWS_AT_ONCE)
    const last = rows.length === ROWS_AT_ONCE ? rows.at(-1) : undefined
    return {
      lines: linesOf(columns, rows.filter(isMeant)),
      cursor: last && { subscriptionId: last.subscriptionId, runId: last.runId },
    }
  },
})

/** The column names of the legacy interface. */
const subscriptionColumns: Columns<SubscriptionRow> = {
  id: (it) => it.id,
  identifier: (it) => it.token,
  session_count: (it) => it.sessionCount,
  language: (it) => it.language,
  timezone: (it) => it.timezoneSeconds,
  game_version: (it) => it.appVersion,
  device_os: (it) => it.deviceOs,
  device_type: (it) => deviceType(it.type),
  device_model: (it) => it.deviceModel,
  ad_id: (it) => it.adId,
  tags: (it) => JSON.stringify(it.tags),
  last_active: (it) => seconds(it.lastActive),
  playtime: (it) => it.sessionTime,
  amount_spent: (it) => Number(it.amountSpent),
  created_at: (it) => seconds(it.createdAt),
  invalid_identifier: (it) => truth(!isReachable(it)),
  badge_count: (it) => it.badgeCount ?? 0,
}

const extraColumns: Columns<SubscriptionRow> = {
  location: (it) => (it.lat === null || it.long === null ? null : `${it.lat},${it.long}`),
  country: (it) => it.country,
  rooted: (it) => truth(it.rooted ?? false),
  notification_types: (it) => it.notificationTypes ?? (it.enabled ? 1 : -31),
  ip: (it) => it.ip,
  external_user_id: (it) => it.externalId,
  web_auth: (it) => it.webAuth,
  web_p256: (it) => it.webP256,
}

export const EXTRA_FIELDS = Object.keys(extraColumns)

const EVERYBODY: FilterNode = { kind: 'all', of: [] }
const SUBSCRIBED = filterTreeOf({ filters: [{ field: 'subscribed', relation: '=', value: 'true' }] })

function audienceOf({ filters, isSubscribedOnly }: SubscriptionsRequest): FilterNode {
  const members = filters ? filterTreeOf({ filters }) : EVERYBODY
  return isSubscribedOnly ? { kind: 'all', of: [members, SUBSCRIBED] } : members
}

function subscriptionsSheet(request: SubscriptionsRequest): Sheet {
  const { extraFields, lastActiveSince } = request
  const extras = Object.entries(extraColumns).filter(([name]) => extraFields.includes(name))
  const columns = { ...subscriptionColumns, ...Object.fromEntries(extras) }
  const node = audienceOf(request)
  const since = lastActiveSince === undefined ? null : new Date(lastActiveSince)
  return {
    columns: Object.keys(columns),
    async next({ db, scanAudience, signal, size }, appId, place, now) {
      const after = (place as SubscriptionId | null) ?? undefined
      const scope = { appId, now }
      const { rows: members, ...next } = await scanAudience<AudienceMember>({
        scope,
        after,
        maxSize: ROWS_AT_ONCE,
        size,
        signal,
        statement: (range) => pageStatement(node, scope, range),
      })
      const ids = members.map(({ id }) => id)
      const rows = ids.length === 0 ? [] : await findSubscriptionRows(db, appId, ids, since)
      return { lines: linesOf(columns, rows), cursor: next.upTo, nextSize: next.nextSize }
    },
  }
}
