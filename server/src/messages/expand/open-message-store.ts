// SQL on open messages, to which recipients can be added.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { MessageId } from '../message.ts'
import { columns, type UnexpandedMessage } from './store.ts'
import type { ExpandingMessage } from './write-deliveries.ts'

const selectOpen = (appId: AppId, ids: readonly MessageId[], now: Date) => sql`
  select ${columns} from messages m
  where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and m.state = 'expanding' and m.audience ->> 'kind' = 'recipients'
    and (m.audience ->> 'until')::timestamptz >= ${now}
  order by m.id`

/** Locks open messages so that they stay open until the transaction ends. Others may add recipients meanwhile. */
export const lockOpenForShare = (db: Db, appId: AppId, ids: readonly MessageId[], now: Date) =>
  db.query<ExpandingMessage>(sql`${selectOpen(appId, ids, now)} for key share`)

/** The same, but others have to wait: recipients of a throttled message take send times one after the other. */
export const lockOpenForUpdate = (db: Db, appId: AppId, ids: readonly MessageId[], now: Date) =>
  db.query<ExpandingMessage>(sql`${selectOpen(appId, ids, now)} for no key update`)

/** Writes until when the throttle's send times are taken. */
export const writeThrottledTo = (db: Db, appId: AppId, id: MessageId, throttledTo: Date) =>
  db.query(sql`
    update messages m set throttled_to = ${throttledTo} where m.app_id = ${appId} and m.id = ${id}`)

export type ExpiredOpenMessage = { appId: AppId } & Pick<UnexpandedMessage, 'id'>

/** Finds open messages whose time has ended by `overBy`. */
export const findExpiredOpenAcrossApps = (db: Db, overBy: Date) =>
  db.query<ExpiredOpenMessage>(
    sql`
    select m.app_id, m.id from messages m
    where m.state = 'expanding' and m.audience ->> 'kind' = 'recipients'
      and (m.audience ->> 'until')::timestamptz <= ${overBy}
    order by m.app_id, m.id`,
    { prepare: false },
  )

/** Waits for transactions that are adding recipients; afterwards, nobody can add more. */
export const lockExpanding = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query(sql`
    select m.id from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and m.state = 'expanding'
    order by m.id
    for update`)

export const markExpanded = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query(sql`
    update messages m set state = 'sending'
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and m.state = 'expanding'`)
