// The whole of an app's rows against the model's whole state.

import type { AppId } from '../../src/lib/ids.ts'
import type { Db } from '../../src/storage/db.ts'
import { sql } from '../../src/storage/sql.ts'
import type { Bindings } from './answers.ts'
import type { State } from './model.ts'

export type Row = Record<string, unknown> & { id: string; subscriptions: { id: string }[] }

/** Users with what they own. */
export async function storedRows(db: Db, appId: AppId): Promise<Row[]> {
  const stored = await db.query<{ row: Row }>(sql`
    select jsonb_build_object(
      'id', u.id, 'tags', u.tags, 'language', u.language, 'spent', round(u.amount_spent * 100),
      'alias_count', u.alias_count, 'subscription_count', u.subscription_count,
      'first_active', extract(epoch from u.first_active),
      'last_active', extract(epoch from coalesce(v.last_active, u.created_at)),
      'session_count', coalesce(v.session_count, 0), 'session_time', coalesce(v.session_time, 0),
      'aliases', coalesce((
        select jsonb_object_agg(a.label, a.value) from aliases a where a.app_id = u.app_id and a.user_id = u.id), '{}'),
      'purchases', coalesce((
        select jsonb_agg(jsonb_build_object('sku', p.sku, 'iso', p.iso, 'amount', p.amount, 'count', p.count)
          order by p.bought_at, p.position)
        from purchases p where p.app_id = u.app_id and p.user_id = u.id), '[]'),
      'subscriptions', coalesce((
        select jsonb_agg(jsonb_build_object('id', s.id, 'type', s.type, 'spelling', s.type_spelling, 'token', s.token,
          'enabled', s.enabled, 'notification_types', s.notification_types, 'sdk', coalesce(s.sdk, ''),
          'language', s.language, 'created_at', extract(epoch from s.created_at),
          'last_active', extract(epoch from coalesce(w.last_active, s.created_at)),
          'session_count', coalesce(w.session_count, 0), 'session_time', coalesce(w.session_time, 0)))
        from subscriptions s
        left join subscription_activity w on w.app_id = s.app_id and w.subscription_id = s.id
        where s.app_id = u.app_id and s.user_id = u.id), '[]')
    ) as row
    from users u left join user_activity v on v.app_id = u.app_id and v.user_id = u.id
    where u.app_id = ${appId}`)
  return stored.map(({ row }) => row)
}

/** Apps whose counts of subscriptions are not the numbers of rows that they count. */
export const miscountedApps = (db: Db) =>
  db.query(sql`
    select a.id from apps a
    where (
      select (count(*),
        count(*) filter (where s.enabled and s.token is not null and coalesce(s.notification_types, 1) > 0),
        count(*) filter (where s.enabled and s.token is not null and coalesce(s.notification_types, 1) > 0
          and s.type in ('iOSPush', 'AndroidPush', 'FireOSPush', 'ChromeExtensionPush', 'ChromePush', 'WindowsPush',
            'SafariLegacyPush', 'FirefoxPush', 'macOSPush', 'HuaweiPush', 'SafariPush')))::text
      from subscriptions s where s.app_id = a.id
    ) <> (
      select (coalesce(sum(c.players), 0), coalesce(sum(c.subscribed), 0), coalesce(sum(c.messageable), 0))::text
      from player_counts c where c.app_id = a.id
    )`)

/** Names in the place of ids. Users that no answer ever named are "?". */
export function namedRows(rows: Row[], bindings: Bindings): string[] {
  const names = new Map([...bindings].map(([name, id]) => [id, name]))
  const nameOf = (id: string) => names.get(id) ?? '?'
  return inOneForm(
    rows.map((row) => ({
      ...row,
      id: nameOf(row.id),
      subscriptions: row.subscriptions.map((it) => ({ ...it, id: nameOf(it.id) })),
    })),
  )
}

export function expectedRows({ users, subscriptions }: State, bindings: Bindings): string[] {
  const nameOf = (name: string) => (bindings.has(name) ? name : '?')
  return inOneForm(
    [...users.values()].map((user) => {
      const owned = [...subscriptions.values()].filter((it) => it.owner === user.id)
      return {
        id: nameOf(user.id),
        tags: user.tags,
        language: user.language,
        spent: user.spent,
        alias_count: Object.keys(user.aliases).filter((label) => label !== 'external_id').length,
        subscription_count: owned.length,
        first_active: user.firstActive,
        last_active: user.lastActive,
        session_count: user.sessionCount,
        session_time: user.sessionTime,
        aliases: user.aliases,
        purchases: user.purchases,
        subscriptions: owned.map((it) => ({
          id: nameOf(it.id),
          type: it.type,
          spelling: it.spelling,
          token: it.token,
          enabled: it.enabled,
          notification_types: it.notificationTypes,
          sdk: it.sdk,
          language: it.language,
          created_at: it.createdAt,
          last_active: it.lastActive,
          session_count: it.sessionCount,
          session_time: it.sessionTime,
        })),
      }
    }),
  )
}

/** Neither users nor subscriptions nor names have an order. */
const inOneForm = (rows: Row[]): string[] =>
  rows
    .map((row) => {
      const subscriptions = row.subscriptions.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      return JSON.stringify({ ...row, subscriptions }, sortedKeys)
    })
    .sort()

const sortedKeys = (_: string, value: unknown) =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value
