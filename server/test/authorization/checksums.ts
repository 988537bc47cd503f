import type { Db } from '../../src/storage/db.ts'
import { Sql } from '../../src/storage/sql.ts'
import { readCatalogue } from '../sql-rules/catalogue.ts'

/** One line for each table, which changes with any row of these apps. */
export async function checksums(db: Db, appIds: readonly string[]): Promise<string[]> {
  const { tables, columns } = await readCatalogue(db)
  const lines: string[] = []
  for (const { name, parent } of tables) {
    // Counted with the table that it is a partition of; months come and go.
    if (parent !== null) continue
    const column = name === 'apps' ? 'id' : columns.find((it) => it.tableName === name && it.name === 'app_id')?.name
    if (column === undefined) continue
    const [row] = await db.query<{ count: number; sum: string }>(
      new Sql(
        `select count(*) as count, md5(coalesce(string_agg(t::text, E'\\n' order by t::text), '')) as sum
         from ${name} t where t.${column} = any($1::uuid[])`,
        [appIds],
      ),
    )
    lines.push(`${name}: ${row?.count} rows, ${row?.sum}`)
  }
  return lines
}
