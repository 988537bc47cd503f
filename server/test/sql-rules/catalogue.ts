// The schema as PostgreSQL's catalogue tells it, the same on every version that we run on.

import type { Db } from '../../src/storage/db.ts'
import { sql } from '../../src/storage/sql.ts'

export type Column = {
  tableName: string
  name: string
  type: string
  isRequired: boolean
  default: string | null
  isIdentity: boolean
  isGenerated: boolean
}

export type Constraint = {
  tableName: string
  name: string
  kind: 'primary key' | 'unique' | 'foreign key' | 'check' | 'exclusion' | 'trigger'
  columns: string[]
  foreignTable: string | null
  foreignColumns: string[]
  onDelete: string
  onUpdate: string
  definition: string
}

export type Index = {
  tableName: string
  name: string
  isUnique: boolean
  /** Null for an expression. */
  columns: (string | null)[]
  /** Made by a primary key, unique or exclusion constraint. */
  isOfConstraint: boolean
  definition: string
}

export type Table = {
  name: string
  kind: 'table' | 'partitioned table'
  isUnlogged: boolean
  hasRowSecurity: boolean
  /** The table that this one is a partition of, or inherits from. */
  parent: string | null
  bounds: string | null
  partitionKey: string | null
  options: string[]
}

export type Catalogue = {
  tables: Table[]
  columns: Column[]
  constraints: Constraint[]
  indexes: Index[]
  triggers: { tableName: string; name: string }[]
  /** Everything else that a migration could leave behind: views, sequences, functions, types. */
  others: { kind: string; name: string }[]
}

const ACTIONS: Record<string, string> = { a: 'no action', r: 'restrict', c: 'cascade', n: 'set null', d: 'set default' }
const KINDS: Record<string, Constraint['kind']> = {
  p: 'primary key',
  u: 'unique',
  f: 'foreign key',
  c: 'check',
  x: 'exclusion',
  t: 'trigger',
}

type Raw<Row, Changed> = Omit<Row, keyof Changed> & Changed

export async function readCatalogue(db: Db): Promise<Catalogue> {
  const tables = await db.query<Table>(sql`
    select c.relname as name, case c.relkind when 'p' then 'partitioned table' else 'table' end as kind,
      c.relpersistence = 'u' as is_unlogged, c.relrowsecurity as has_row_security,
      (select p.relname from pg_inherits i join pg_class p on p.oid = i.inhparent where i.inhrelid = c.oid limit 1) as parent,
      pg_get_expr(c.relpartbound, c.oid) as bounds, pg_get_partkeydef(c.oid) as partition_key,
      coalesce(c.reloptions, '{}') as options
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`)
  const columns = await db.query<Column>(sql`
    select c.relname as table_name, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
      a.attnotnull as is_required, pg_get_expr(d.adbin, d.adrelid) as default, a.attidentity <> '' as is_identity,
      a.attgenerated <> '' as is_generated
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
    order by c.oid, a.attnum`)
  // From version 18 on every "not null" is a constraint with a name of its own; it is told with its column.
  const constraints = await db.query<Raw<Constraint, { kind: string; onDelete: string; onUpdate: string }>>(sql`
    select c.relname as table_name, k.conname as name, k.contype as kind,
      array(select a.attname::text from unnest(k.conkey) with ordinality n(num, place)
        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = n.num order by n.place) as columns,
      f.relname as foreign_table,
      array(select a.attname::text from unnest(k.confkey) with ordinality n(num, place)
        join pg_attribute a on a.attrelid = k.confrelid and a.attnum = n.num order by n.place) as foreign_columns,
      k.confdeltype as on_delete, k.confupdtype as on_update, pg_get_constraintdef(k.oid) as definition
    from pg_constraint k
    join pg_class c on c.oid = k.conrelid
    left join pg_class f on f.oid = k.confrelid
    where c.relnamespace = 'public'::regnamespace and k.contype <> 'n'`)
  const indexes = await db.query<Index>(sql`
    select t.relname as table_name, c.relname as name, i.indisunique as is_unique,
      array(select a.attname::text from generate_series(0, i.indnkeyatts - 1) place
        left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[place] and a.attnum > 0
        order by place) as columns,
      exists(select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')) as is_of_constraint,
      pg_get_indexdef(i.indexrelid) as definition
    from pg_index i
    join pg_class c on c.oid = i.indexrelid
    join pg_class t on t.oid = i.indrelid
    where t.relnamespace = 'public'::regnamespace`)
  const triggers = await db.query<{ tableName: string; name: string }>(sql`
    select c.relname as table_name, t.tgname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'public'::regnamespace and not t.tgisinternal
    union all
    select c.relname, r.rulename from pg_rewrite r join pg_class c on c.oid = r.ev_class
    where c.relnamespace = 'public'::regnamespace and r.rulename <> '_RETURN'`)
  const others = await db.query<{ kind: string; name: string }>(sql`
    select case c.relkind when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view' else 'foreign table' end
      as kind, c.relname::text as name
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('S', 'v', 'm', 'f')
    union all
    select 'function', p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'public'::regnamespace
    union all
    select 'type', t.typname from pg_type t
    where t.typnamespace = 'public'::regnamespace and t.typtype in ('e', 'd', 'r')
    union all
    select 'policy', p.polname::text from pg_policy p
    union all
    select 'extension', e.extname::text from pg_extension e where e.extname <> 'plpgsql'
    union all
    select 'statistics', s.stxname::text from pg_statistic_ext s where s.stxnamespace = 'public'::regnamespace`)
  return {
    tables: sorted(tables),
    columns,
    constraints: sorted(constraints).map((it) => ({
      ...it,
      kind: KINDS[it.kind] ?? 'check',
      onDelete: ACTIONS[it.onDelete] ?? '',
      onUpdate: ACTIONS[it.onUpdate] ?? '',
    })),
    indexes: sorted(indexes),
    triggers: sorted(triggers),
    others: others.sort((a, b) => (`${a.kind} ${a.name}` < `${b.kind} ${b.name}` ? -1 : 1)),
  }
}

// Not by PostgreSQL: its order of names depends on the collation of the database.
const sorted = <Row extends { name: string }>(list: Row[]) => list.sort((a, b) => (a.name < b.name ? -1 : 1))
