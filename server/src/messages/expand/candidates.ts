// SQL on candidates: the subscriptions that may become deliveries of a message.

import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import { rows, type Sql, sql } from '../../storage/sql.ts'
import type { MessageId, RunId } from '../message.ts'

/** A recipient that a message names. An alias may lead to several subscriptions, and several names to one. */
export type NamedRecipient = {
  messageId: MessageId
  subscriptionId?: SubscriptionId
  userId?: string
  label?: string
  value?: string
}

/**
 * A user in a run. `step` is the position of this message among all that the run sends, from 1: a delivery waits until
 * those of the same run and subscription with a lower step are settled. 0 means that nothing can come before or after
 * it.
 */
export type RunRecipient = { messageId: MessageId; userId: UserId; runId: RunId; step: number }

/**
 * Rows have the id of their message, unless they `areOfOneMessage`. With `haveRuns`, they also have their run.
 * `areNamed` candidates are looked up one by one, so one plan is prepared and kept: planning took a fifth of the time
 * for seventy of them.
 */
export type Candidates = { rows: Sql; areOfOneMessage?: true; haveRuns?: true; areNamed?: true }

/** The subscriptions that names lead to, each once per message. */
export const candidatesByName = (appId: AppId, names: readonly NamedRecipient[]): Candidates => ({
  rows: sql`
    select distinct on (r."messageId", s.id) r."messageId" as message_id, s.id, s.user_id, s.type, s.token, s.enabled,
      s.notification_types, s.timezone_seconds, s.created_at
    from jsonb_to_recordset(${rows(names)}::jsonb)
      as r("messageId" uuid, "subscriptionId" uuid, "userId" uuid, label text, value text)
    cross join lateral (
      select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
      from subscriptions s where s.app_id = ${appId} and s.id = r."subscriptionId"
      union all
      select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
      from subscriptions s where s.app_id = ${appId} and s.user_id = coalesce(r."userId", (
        select l.user_id from aliases l where l.app_id = ${appId} and l.label = r.label and l.value = r.value))
    ) s`,
  areNamed: true,
})

/**
 * Subscriptions of one message that were found before; deleted ones are left out. `ids` is an array in PostgreSQL's own
 * notation. `offset 0` makes the planner look up each by itself: without statistics it would scan the app's
 * subscriptions for each.
 */
export const candidatesById = (appId: AppId, ids: string): Candidates => ({
  rows: sql`
    select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
    from unnest(${ids}::uuid[]) f(id)
    cross join lateral (
      select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
      from subscriptions s where s.app_id = ${appId} and s.id = f.id offset 0) s`,
  areOfOneMessage: true,
})

/** All subscriptions of the users, once for each of their runs. */
export const candidatesInRuns = (appId: AppId, recipients: readonly RunRecipient[]): Candidates => ({
  rows: sql`
    select r."messageId" as message_id, r."runId" as run_id, r.step, s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds,
      s.created_at
    from jsonb_to_recordset(${rows(recipients)}::jsonb) as r("messageId" uuid, "runId" uuid, "userId" uuid, step integer)
    cross join lateral (
      select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
      from subscriptions s where s.app_id = ${appId} and s.user_id = r."userId" offset 0) s`,
  haveRuns: true,
  areNamed: true,
})

/** All subscriptions of users for whom no deliveries are written. */
export const candidatesOfUsers = (appId: AppId, userIds: readonly UserId[]): Pick<Candidates, 'rows'> => ({
  rows: sql`select s.type, s.token from subscriptions s where s.app_id = ${appId} and s.user_id = any(${userIds}::uuid[])`,
})
