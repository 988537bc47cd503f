// How the tables are spread over the nodes of a Citus cluster. This is read from the catalog, so that tables of later
// migrations are included: a table is distributed by its app when app_id can be part of every key, and is a small
// reference table otherwise.

import type { Db } from './db.ts'
import { Sql, sql } from './sql.ts'

export type Placement = 'reference' | 'distributed'
/** `name` is quoted for SQL; `text` is the call that distributes the table. */
export type DistributionStep = { name: string; placement: Placement; text: string }

export async function hasCitus(db: Db): Promise<boolean> {
  const found = await db.query(sql`select from pg_extension where extname = 'citus'`)
  return found.length > 0
}

type DistributedTable = { name: string; literal: string; kind: 'apps' | 'by-app' | 'global'; parents: string[] }

/**
 * Lists each of our tables once, parents before children. The list of applied migrations stays local: only migrations
 * read it. Partitions follow their table.
 */
export async function planDistribution(db: Db): Promise<DistributionStep[]> {
  const tables = await db.query<DistributedTable>(sql`
    with ours as (
      select c.oid, quote_ident(c.relname) as name, c.relname
      from pg_class c
      where c.relnamespace = current_schema::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and c.relname <> 'schema_migrations'
        and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'))
    select t.name, quote_literal(t.name) as literal,
      case
        when t.relname = 'apps' then 'apps'
        when exists (select from pg_attribute a where a.attrelid = t.oid and a.attname = 'app_id' and a.attnotnull)
          and not exists (
            select from pg_index i
            where i.indrelid = t.oid and i.indisunique and not exists (
              select from pg_attribute a
              where a.attrelid = t.oid and a.attname = 'app_id' and a.attnum = any(i.indkey::smallint[])))
        then 'by-app'
        else 'global'
      end as kind,
      array(
        select distinct p.name
        from pg_constraint f join ours p on p.oid = f.confrelid
        where f.conrelid = t.oid and f.contype = 'f' and f.confrelid <> t.oid) as parents
    from ours t
    order by t.name`)
  return inOrder(tables).map(({ name, literal, kind }) =>
    kind === 'global'
      ? { name, placement: 'reference', text: `select create_reference_table(${literal})` }
      : {
          name,
          placement: 'distributed',
          text:
            kind === 'apps'
              ? `select create_distributed_table(${literal}, 'id')`
              : `select create_distributed_table(${literal}, 'app_id', colocate_with => 'apps')`,
        },
  )
}

/** Global tables first, then apps, with which the others are colocated; within that, parents before children. */
function inOrder(tables: DistributedTable[]): DistributedTable[] {
  const rank = { global: 0, apps: 1, 'by-app': 2 }
  const byName = new Map(tables.map((table) => [table.name, table]))
  const ordered = new Set<DistributedTable>()
  const place = (table: DistributedTable, above: readonly DistributedTable[]) => {
    if (ordered.has(table) || above.includes(table)) return
    for (const parent of table.parents) {
      const found = byName.get(parent)
      if (found) place(found, [...above, table])
    }
    ordered.add(table)
  }
  for (const table of tables.toSorted((a, b) => rank[a.kind] - rank[b.kind])) place(table, [])
  return [...ordered]
}

/** Tables that are distributed already. Tables that Citus only tracks ('s') are not. */
async function findPlaced(db: Db): Promise<Set<string>> {
  const placed = await db.query<{ name: string }>(sql`
    select quote_ident(c.relname) as name
    from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
    where p.partmethod = 'h' or p.repmodel = 't'`)
  return new Set(placed.map(({ name }) => name))
}

/**
 * Distributes the remaining tables, and returns them. Each step is a transaction of its own, so a failed run can be
 * resumed.
 */
export async function distribute(db: Db): Promise<DistributionStep[]> {
  const placed = await findPlaced(db)
  const missing = (await planDistribution(db)).filter(({ name }) => !placed.has(name))
  // The names come from the catalog and are quoted by it; these functions must be called with constants.
  for (const { text } of missing) await db.query(new Sql(text, []))
  return missing
}
