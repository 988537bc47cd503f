// SQL on what recipients did with the messages of a run.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import { UNPREPARED } from '../deliver/store.ts'
import type { MessageId, RunId } from '../message.ts'

export type RunSend = { messageId: MessageId; runId: RunId }
export type RunEngagement = { messageId: MessageId; runId: RunId; received: boolean; opened: boolean; clicked: boolean }

/**
 * Finds engagement on any subscription that the run sent to, whoever owns it now. A click opens a push message, and an
 * opened or clicked message was received.
 */
export const findRunActions = (db: Db, appId: AppId, sends: readonly RunSend[]) =>
  db.query<RunEngagement>(
    sql`
    select r."messageId" as message_id, r."runId" as run_id,
      bool_or(coalesce(d.received_at, d.delivered_at, d.opened_at, d.clicked_at) is not null or d.receipt = 'delivered')
        as received,
      bool_or(coalesce(d.opened_at, d.clicked_at) is not null) as opened,
      bool_or(d.clicked_at is not null) as clicked
    from jsonb_to_recordset(${rows(sends)}::jsonb) as r("messageId" uuid, "runId" uuid)
    join messages m on m.app_id = ${appId} and m.id = r."messageId"
    cross join lateral (
      select d.received_at, d.delivered_at, d.opened_at, d.clicked_at, d.receipt from deliveries d
      where d.app_id = ${appId} and d.expand_at = m.expand_at and d.message_id = m.id and d.run_id = r."runId"
        and d.run_id <> '00000000-0000-0000-0000-000000000000' offset 0) d
    group by r."messageId", r."runId"`,
    UNPREPARED,
  )
