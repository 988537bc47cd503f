// All SQL on in-app messages, except for what devices report: see interaction-store.ts.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { InAppMessage, InAppMessageId, InAppSummary, InAppVariant, VariantId } from './message.ts'

const columns = sql`m.id, m.name, m.state, m.display_location, m.display_duration, m.remove_height_margin,
  m.remove_width_margin, m.triggers, m.audience, m.included_segments, m.excluded_segments, m.platforms, m.redisplay_limit,
  m.redisplay_delay, m.start_time, m.end_time, m.has_liquid, m.click_labels, m.page_labels, m.created_at, m.updated_at`

export const insertMessage = (db: Db, appId: AppId, it: InAppMessage) =>
  db.query(sql`
    insert into in_app_messages (app_id, id, name, state, display_location, display_duration, remove_height_margin,
      remove_width_margin, triggers, audience, included_segments, excluded_segments, platforms, redisplay_limit,
      redisplay_delay, start_time, end_time, has_liquid, click_labels, page_labels, created_at, updated_at)
    select a.id, ${it.id}::uuid, ${it.name}, ${it.state}, ${it.displayLocation}, ${it.displayDuration}::float8,
      ${it.removeHeightMargin}::boolean, ${it.removeWidthMargin}::boolean, ${JSON.stringify(it.triggers)}::jsonb,
      ${it.audience}, ${it.includedSegments}::uuid[], ${it.excludedSegments}::uuid[], ${it.platforms}::text[],
      ${it.redisplayLimit}::integer, ${it.redisplayDelay}::integer, ${it.startTime}::timestamptz,
      ${it.endTime}::timestamptz, ${it.hasLiquid}::boolean, ${it.clickLabels}::text[], ${it.pageLabels}::text[],
      ${it.createdAt}::timestamptz, ${it.updatedAt}::timestamptz
    from apps a
    where a.id = ${appId}`)

/** Nobody else can change or delete the message until the transaction ends. */
export async function lockMessage(db: Db, appId: AppId, id: InAppMessageId): Promise<InAppMessage | undefined> {
  const [found] = await db.query<InAppMessage>(sql`
    select ${columns} from in_app_messages m where m.app_id = ${appId} and m.id = ${id} for update`)
  return found
}

export const updateMessage = (db: Db, appId: AppId, it: InAppMessage) =>
  db.query(sql`
    update in_app_messages
    set name = ${it.name}, state = ${it.state}, display_location = ${it.displayLocation},
      display_duration = ${it.displayDuration}, remove_height_margin = ${it.removeHeightMargin},
      remove_width_margin = ${it.removeWidthMargin}, triggers = ${JSON.stringify(it.triggers)}, audience = ${it.audience},
      included_segments = ${it.includedSegments}, excluded_segments = ${it.excludedSegments},
      platforms = ${it.platforms}, redisplay_limit = ${it.redisplayLimit}, redisplay_delay = ${it.redisplayDelay},
      start_time = ${it.startTime}, end_time = ${it.endTime}, has_liquid = ${it.hasLiquid}, click_labels = ${it.clickLabels},
      page_labels = ${it.pageLabels}, updated_at = ${it.updatedAt}
    where app_id = ${appId} and id = ${it.id}`)

/** Returns the name of the message that this very call deleted. Its variants are deleted with it. */
export async function deleteMessage(db: Db, appId: AppId, id: InAppMessageId): Promise<string | undefined> {
  const [deleted] = await db.query<{ name: string }>(sql`
    delete from in_app_messages where app_id = ${appId} and id = ${id} returning name`)
  return deleted?.name
}

/** An existing language keeps its variant id. */
export const upsertVariants = (db: Db, appId: AppId, id: InAppMessageId, variants: readonly InAppVariant[]) =>
  db.query(sql`
    insert into in_app_variants (app_id, in_app_message_id, language, id, content)
    select a.id, ${id}::uuid, r.language, r.id, r.content
    from apps a cross join jsonb_to_recordset(${rows(variants)}::jsonb) as r(id uuid, language text, content jsonb)
    where a.id = ${appId}
    on conflict (app_id, in_app_message_id, language) do update set content = excluded.content`)

export const deleteOtherVariants = (db: Db, appId: AppId, id: InAppMessageId, languages: readonly string[]) =>
  db.query(sql`
    delete from in_app_variants
    where app_id = ${appId} and in_app_message_id = ${id} and language <> all(${languages}::text[])`)

export async function findMessage(db: Db, appId: AppId, id: InAppMessageId): Promise<InAppMessage | undefined> {
  const [found] = await db.query<InAppMessage>(sql`
    select ${columns} from in_app_messages m where m.app_id = ${appId} and m.id = ${id}`)
  return found
}

/** Returns those that exist. Nobody can change or delete them until the transaction ends. */
export const lockMessagesForShare = (db: Db, appId: AppId, ids: readonly InAppMessageId[]) =>
  db.query<{ id: InAppMessageId }>(sql`
    select m.id from in_app_messages m where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) order by m.id for share`)

/** English first, then by language. */
export const findVariants = (db: Db, appId: AppId, id: InAppMessageId) =>
  db.query<InAppVariant>(sql`
    select v.id, v.language, v.content from in_app_variants v
    where v.app_id = ${appId} and v.in_app_message_id = ${id}
    order by v.language <> 'en', v.language collate "C"`)

/** Newest last, so that a message created while somebody pages through the list is appended at the end. */
export async function listMessages(
  db: Db,
  appId: AppId,
  limit: number,
  offset: number,
): Promise<{ total: number; messages: InAppSummary[] }> {
  const found = await db.query<InAppSummary & { total: number }>(sql`
    with counted as materialized (
      select count(*)::integer as total from in_app_messages m where m.app_id = ${appId}
    ), page as materialized (
      select m.id, m.name, m.state, m.start_time, m.end_time, m.created_at, m.updated_at
      from in_app_messages m
      where m.app_id = ${appId}
      order by m.created_at, m.id
      limit ${limit} offset ${offset}
    )
    select counted.total, page.id, page.name, page.state, page.start_time, page.end_time, page.created_at, page.updated_at
    from counted left join page on true
    order by page.created_at, page.id`)
  return { total: found[0]?.total ?? 0, messages: found.filter(({ id }) => id !== null) }
}

/** Counts live messages that have not ended, except one. */
export async function countOtherLiveMessages(db: Db, appId: AppId, except: InAppMessageId, now: Date): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql`
    select count(*) as total from in_app_messages m
    where m.app_id = ${appId} and m.state = 'live' and m.id <> ${except}
      and (m.end_time is null or m.end_time > ${now}::timestamptz)`)
  return row?.total ?? 0
}

export type LiveMessage = InAppMessage & { /** Ids by language. */ variants: Record<string, VariantId> }

/** Messages that can be shown at this time, to anybody. */
export const findLiveMessages = (db: Db, appId: AppId, now: Date) =>
  db.query<LiveMessage>(sql`
    select ${columns}, (
      select jsonb_object_agg(v.language, v.id) from in_app_variants v
      where v.app_id = ${appId} and v.in_app_message_id = m.id) as variants
    from in_app_messages m
    where m.app_id = ${appId} and m.state = 'live' and (m.start_time is null or m.start_time <= ${now}::timestamptz)
      and (m.end_time is null or m.end_time > ${now}::timestamptz)
    order by m.created_at, m.id`)

export type ShownVariant = Pick<
  InAppMessage,
  'displayLocation' | 'displayDuration' | 'removeHeightMargin' | 'removeWidthMargin' | 'hasLiquid'
> & { content: InAppVariant['content'] }

const shown = sql`m.display_location, m.display_duration, m.remove_height_margin, m.remove_width_margin, m.has_liquid, v.content`

/** A variant of a message that can be shown at this time. */
export async function findShownVariant(
  db: Db,
  appId: AppId,
  { id, variantId, now }: { id: InAppMessageId; variantId: VariantId; now: Date },
): Promise<ShownVariant | undefined> {
  const [found] = await db.query<ShownVariant>(sql`
    select ${shown}
    from in_app_messages m join in_app_variants v on v.app_id = ${appId} and v.in_app_message_id = m.id
    where m.app_id = ${appId} and m.id = ${id} and v.id = ${variantId} and m.state = 'live'
      and (m.start_time is null or m.start_time <= ${now}::timestamptz)
      and (m.end_time is null or m.end_time > ${now}::timestamptz)`)
  return found
}

/** A variant, whatever the state of its message. */
export async function findPreviewedVariant(
  db: Db,
  appId: AppId,
  variantId: VariantId,
): Promise<ShownVariant | undefined> {
  const [found] = await db.query<ShownVariant>(sql`
    select ${shown}
    from in_app_variants v join in_app_messages m on m.app_id = ${appId} and m.id = v.in_app_message_id
    where v.app_id = ${appId} and v.id = ${variantId}`)
  return found
}

export type InAppGrant = {
  userId: UserId
  messageId: InAppMessageId /** Null: for as long as the message is live. */
  expiresAt: Date | null
}

/** Grants to users that exist. A user who already has a grant keeps the one that lasts longer. */
export const upsertGrants = (db: Db, appId: AppId, grants: readonly InAppGrant[]) =>
  db.query(sql`
    insert into in_app_grants (app_id, user_id, in_app_message_id, expires_at)
    select a.id, r.user_id, r.message_id, max(coalesce(r.expires_at, 'infinity'))
    from apps a cross join jsonb_to_recordset(${rows(
      grants.map(({ userId, messageId, expiresAt }) => ({
        user_id: userId,
        message_id: messageId,
        expires_at: expiresAt,
      })),
    )}::jsonb) as r(user_id uuid, message_id uuid, expires_at timestamptz)
    where a.id = ${appId}
      and exists (select 1 from users u where u.app_id = ${appId} and u.id = r.user_id)
      and exists (select 1 from in_app_messages m where m.app_id = ${appId} and m.id = r.message_id)
    group by a.id, r.user_id, r.message_id
    order by r.user_id, r.message_id
    on conflict (app_id, user_id, in_app_message_id)
      do update set expires_at = greatest(in_app_grants.expires_at, excluded.expires_at)`)

export const findGrants = (db: Db, appId: AppId, userIds: readonly UserId[], now: Date) =>
  db.query<{ userId: UserId; messageId: InAppMessageId }>(sql`
    select g.user_id, g.in_app_message_id as message_id from in_app_grants g
    where g.app_id = ${appId} and g.user_id = any(${userIds}::uuid[]) and g.expires_at > ${now}::timestamptz`)

/** Deletes some of the expired grants. A result below `limit` means that none are left. */
export async function deleteGrantsExpiredBefore(db: Db, appId: AppId, now: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from in_app_grants
    where app_id = ${appId} and ctid = any(array(
      select ctid from in_app_grants
      where app_id = ${appId} and expires_at <= ${now}
      order by expires_at
      limit ${limit}
      for update skip locked))
    returning user_id`)
  return deleted.length
}

export const deleteGrantsOfMessage = (db: Db, appId: AppId, id: InAppMessageId) =>
  db.query(sql`delete from in_app_grants where app_id = ${appId} and in_app_message_id = ${id}`)

export const deleteGrantsOfUser = (db: Db, appId: AppId, userId: UserId) =>
  db.query(sql`delete from in_app_grants where app_id = ${appId} and user_id = ${userId}`)
