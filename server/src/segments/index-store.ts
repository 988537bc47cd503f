// Indexes on single tags, made and dropped while the server runs. The catalogue of PostgreSQL says which exist; no second
// list could disagree with it.

import { hash } from 'node:crypto'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { Sql, sql } from '../storage/sql.ts'

/** The only text of a customer that ever becomes part of a statement's text. Keys with other characters stay unindexed. */
export const INDEXABLE_KEY = '^[A-Za-z0-9_-]{1,64}$'
const indexable = new RegExp(INDEXABLE_KEY)

export function quoteKey(key: string): string {
  if (!indexable.test(key)) throw new Error('this tag cannot be indexed')
  return `'${key}'`
}

export type TagUse = { appId: AppId; key: string; segments: number }

/** Tags that segments compare with values, over all apps: only these relations can use an index. */
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

/** The app's users, counted no further than asked. */
export async function countUsersUpTo(db: Db, appId: AppId, most: number): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql`
    select count(*) as total from (select 1 from users u where u.app_id = ${appId} limit ${most}) counted`)
  return row?.total ?? 0
}

const INDEX_PREFIX = 'users_tag_'
/** Keys differ in case, and names of indexes are short. */
export const indexName = (key: string) => `${INDEX_PREFIX}${hash('sha256', key, 'hex').slice(0, 16)}`

export type TagIndex = { name: string; isValid: boolean }

export const findTagIndexes = (db: Db) =>
  db.query<TagIndex>(sql`
    select c.relname::text as name, i.indisvalid as is_valid
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = 'users'::regclass and starts_with(c.relname, ${INDEX_PREFIX})
    order by c.relname`)

/** Longer than any table here takes; without a limit a forgotten lock would hold the job for ever. */
const BUILD_OPTIONS = { prepare: false, timeoutMs: 3_600_000 } as const

/** Concurrently: users are written while it is built. Users without the tag are not in it and pay nothing for it. */
export const createTagIndex = (db: Db, key: string) => {
  const tag = `tags ->> ${quoteKey(key)}`
  const text = `create index concurrently ${indexName(key)} on users (app_id, (${tag})) where (${tag}) is not null`
  return db.query(new Sql(text, []), BUILD_OPTIONS)
}

/** The name comes from the catalogue; what is not of our making is not dropped. */
export function dropTagIndex(db: Db, name: string) {
  if (!/^users_tag_[0-9a-f]{16}$/.test(name)) throw new Error('this is no index of a tag')
  return db.query(new Sql(`drop index concurrently if exists ${name}`, []), BUILD_OPTIONS)
}

export const analyzeUsers = (db: Db) => db.query(sql`analyze users`)
