// Requests a file. It is created in the background, and its address is returned at once.

import { randomBytes } from 'node:crypto'
import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries } from '../apps/store.ts'
import { invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { sha256 } from '../lib/secrets.ts'
import { getMessage } from '../reports/get-message.ts'
import { getSegmentsByName } from '../segments/read.ts'
import type { ExportsContext } from './context.ts'
import type { ExportRequest } from './export.ts'
import { MAKE_EXPORT } from './make.ts'
import type { SubscriptionsBody } from './schema.ts'
import { insertExport } from './store.ts'

/** Returns the path of the file. Whoever knows the path can download the file, so it contains 256 random bits. */
async function requestExport(
  { db, now, newId, queue }: ExportsContext,
  appId: AppId,
  request: ExportRequest,
  by: RequestOrigin,
): Promise<string> {
  const id = newId()
  const secret = randomBytes(32).toString('base64url')
  const at = now()
  await db.transaction(async (db) => {
    if (!(await insertExport(db, appId, { id, request, secretHash: sha256(secret), now: at })))
      throw invalid('An export of this kind is being made already. Ask again when it is ready.')
    const entry = {
      id: newId(),
      actor: actorOf(by),
      action: 'export.create',
      targetType: 'export',
      targetId: id,
    } as const
    await insertAuditEntries(db, appId, [{ ...entry, detail: { kind: request.kind } }], at)
    await queue.enqueue(db, [{ appId, name: MAKE_EXPORT, key: id }])
  })
  return `/exports/${appId}/${id}/${secret}.csv.gz`
}

export async function exportHistory(
  ctx: ExportsContext,
  appId: AppId,
  messageId: string,
  events: 'sent' | 'clicked',
  by: RequestOrigin,
): Promise<string> {
  const { id } = await getMessage(ctx.db, appId, messageId)
  return requestExport(ctx, appId, { kind: 'history', messageId: id, events }, by)
}

export async function exportActivity(ctx: ExportsContext, appId: AppId, messageId: string, by: RequestOrigin) {
  const { id } = await getMessage(ctx.db, appId, messageId)
  return requestExport(ctx, appId, { kind: 'activity', messageId: id }, by)
}

export async function exportSubscriptions(
  ctx: ExportsContext,
  appId: AppId,
  body: SubscriptionsBody,
  by: RequestOrigin,
) {
  const { extra_fields, last_active_since, segment_name, include_unsubscribed } = body
  const [segment] = segment_name ? await getSegmentsByName(ctx.segments, appId, [segment_name]) : []
  const request: ExportRequest = {
    kind: 'subscriptions',
    extraFields: extra_fields ?? [],
    ...(last_active_since && { lastActiveSince: readTime(last_active_since) }),
    ...(segment && { filters: segment.filters }),
    ...(segment && include_unsubscribed !== true && { isSubscribedOnly: true }),
  }
  return requestExport(ctx, appId, request, by)
}

/** Reads Unix seconds, given as text. */
const readTime = (text: string) => new Date(Number(text) * 1000).toISOString()
