// Indexes on single tags, created and dropped while the server runs. PostgreSQL's catalog is the only record of which
// exist, so it cannot disagree with another.

import { hash } from 'node:crypto'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { Sql, sql } from '../storage/sql.ts'

/**
 * A tag key is the only customer text that ever becomes part of a statement's text. Keys with other characters are not
 * indexed.
 */
export const INDEXABLE_KEY = '^[A-Za-z0-9_-]{1,64}$'
const indexable = new RegExp(INDEXABLE_KEY)

export function quoteKey(key: string): string {
  if (!indexable.test(key)) throw new Error('this tag cannot be indexed')
  return `'${key}'`
}

export type TagUse = { appId: AppId; key: string; segments: number }

/** Tags of all apps that segments compare by `=` or `in_array`, the only relations that can use an index. */
export const findTagUsesAcrossApps = (db: Db) =>
  db.query<TagUse>(sql`
    select k.app_id, k.key, count(distinct k.id) as segments
    from (
      select g.app_id, g.id, f.value ->> 'key' as key
      from segments g cross join lateral jsonb_path_query(g.filters,
        'strict $.** ? (@.field == "tag" && (@.relation == "=" || @.relation == "in_array"))', silent => true) f(value)
    ) k
    where k.key ~ ${INDEXABLE_KEY}
    group by k.app_id, k.key`)

/** Counts the app's users, stopping at `most`. */
export async function countUsersUpTo(db: Db, appId: AppId, most: number): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql`
    select count(*) as total from (select 1 from users u where u.app_id = ${appId} limit ${most}) counted`)
  return row?.total ?? 0
}

const INDEX_PREFIX = 'users_tag_'
/** Hashed, because keys differ in case and index names must be short. */
export const indexName = (key: string) => `${INDEX_PREFIX}${hash('sha256', key, 'hex').slice(0, 16)}`

export type TagIndex = { name: string; isValid: boolean }

export const findTagIndexes = (db: Db) =>
  db.query<TagIndex>(sql`
    select c.relname::text as name, i.indisvalid as is_valid
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = 'users'::regclass and starts_with(c.relname, ${INDEX_PREFIX})
    order by c.relname`)

/** Longer than any table here needs. Without a limit, a forgotten lock would block the job forever. */
const BUILD_OPTIONS = { prepare: false, timeoutMs: 3_600_000 } as const

/**
 * Built concurrently, so that users can be written meanwhile. The index omits users without the tag, so they cost
 * nothing.
 */
export const createTagIndex = (db: Db, key: string) => {
  const tag = `tags ->> ${quoteKey(key)}`
  const text = `create index concurrently ${indexName(key)} on users (app_id, (${tag})) where (${tag}) is not null`
  return db.query(new Sql(text, []), BUILD_OPTIONS)
}

/** The name comes from the catalog. Only indexes that this module created are dropped. */
export function dropTagIndex(db: Db, name: string) {
  if (!/^users_tag_[0-9a-f]{16}$/.test(name)) throw new Error('this is no index of a tag')
  return db.query(new Sql(`drop index concurrently if exists ${name}`, []), BUILD_OPTIONS)
}

export const analyzeUsers = (db: Db) => db.query(sql`analyze users`)
