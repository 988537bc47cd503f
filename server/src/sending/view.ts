// The state of an app's sending, as it is shown.

import type { AppId } from '../lib/ids.ts'
import { disabledHold, expiredUntil, hasRoom, WINDOW_MS } from './application-limit.ts'
import type { SendingContext } from './context.ts'
import { findManualHold, type SendingHold } from './hold.ts'
import { type Administrator, listNotices, type Notice } from './notice-store.ts'
import { findSendingRow } from './read.ts'
import { findUsage } from './store.ts'

const NEWEST_NOTICES = 10

export async function viewSending({ db, now }: Pick<SendingContext, 'db' | 'now'>, appId: AppId) {
  const row = await findSendingRow(db, appId)
  const usage = await findUsage(db, appId, expiredUntil(now()))
  const disabled = row.disabledAt && !hasRoom(usage) ? disabledHold(row.disabledAt, usage.roomAfter) : undefined
  const hold = findManualHold(row) ?? disabled
  const { notices } = await listNotices(db, appId, { limit: NEWEST_NOTICES, offset: 0 })
  return {
    state: hold ? ('held' as const) : ('sending' as const),
    hold: hold ? holdObject(hold) : null,
    paused_since: row.pausedAt?.toISOString() ?? null,
    disabled_since: disabled?.since.toISOString() ?? null,
    enabled_at: row.enabledAt?.toISOString() ?? null,
    usage: { used: usage.used, limit: usage.allowed, window_seconds: WINDOW_MS / 1_000 },
    notices: notices.map(noticeObject),
  }
}

const holdObject = ({ reason, since, until }: SendingHold) => ({
  reason,
  since: since.toISOString(),
  until: until?.toISOString() ?? null,
})

export const noticeObject = (notice: Notice) => ({
  id: notice.id,
  at: notice.at.toISOString(),
  kind: notice.kind,
  administrator_id: notice.administratorId,
  detail: notice.detail,
  state: notice.state,
  way: notice.way,
  settled_at: notice.settledAt?.toISOString() ?? null,
  reason: notice.reason,
})

export const administratorObject = ({ id, email, webhookUrl, createdAt }: Omit<Administrator, 'webhookSecret'>) => ({
  id,
  email,
  webhook_url: webhookUrl,
  created_at: createdAt.toISOString(),
})
