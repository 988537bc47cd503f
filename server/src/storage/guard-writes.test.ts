import { expect, test } from 'vitest'
import type { Db } from './db.ts'
import { guardWrites } from './guard-writes.ts'
import { sql } from './sql.ts'

test('while writing is not allowed, reads go through and writes and transactions are refused', async () => {
  const seen: string[] = []
  const db: Db = {
    query: async ({ text }) => {
      seen.push(text)
      return []
    },
    transaction: (run) => run(db),
  }
  let mayWrite = false
  const guarded = guardWrites(db, () => mayWrite)
  await guarded.query(sql`select updated_at from users`)
  for (const write of [
    sql`insert into users values (1)`,
    sql`with gone as (delete from users returning id) select id from gone`,
    sql`update users set tags = '{}'`,
    sql`create index concurrently x on users (id)`,
  ])
    await expect(guarded.query(write)).rejects.toMatchObject({ kind: 'unavailable' })
  await expect(guarded.transaction(async () => {})).rejects.toMatchObject({ kind: 'unavailable' })
  expect(seen).toEqual(['select updated_at from users'])
  mayWrite = true
  await guarded.transaction((db) => db.query(sql`update users set tags = '{}'`))
  expect(seen).toHaveLength(2)
})
