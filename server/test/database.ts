import pg from 'pg'
import { inject } from 'vitest'
import { newId } from '../src/lib/ids.ts'
import { createPool, type Pool, type PoolOptions } from '../src/storage/db.ts'

export type TestDatabase = { connection: pg.ClientConfig; db: Pool; close(): Promise<void> }

/** A fresh database with the whole schema, dropped on close. */
export const testDatabase = (options?: Partial<PoolOptions>) => clone(inject('server').template, options)

/** A fresh database with nothing in it, for tests of the migrations themselves. */
export const emptyDatabase = (options?: Partial<PoolOptions>) => clone('template0', options)

/** As a restored backup would be: all the rows, in another database. Connections to the original are opened anew. */
export async function copyOf({ connection }: Pick<TestDatabase, 'connection'>): Promise<TestDatabase> {
  const name = connection.database as string
  await asAdmin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
  return clone(name)
}

async function clone(template: string, options: Partial<PoolOptions> = {}): Promise<TestDatabase> {
  const { admin, template: prefix } = inject('server')
  const name = `${prefix}_${newId().slice(0, 8)}`
  await asAdmin(`create database ${name} template ${template}`)
  const connection: pg.ClientConfig = { ...admin, database: name }
  const db = createPool({ connection, size: 4, ...options })
  return {
    connection,
    db,
    async close() {
      await db.close()
      await asAdmin(`drop database ${name} with (force)`)
    },
  }
}

export async function asAdmin(text: string) {
  const client = new pg.Client(inject('server').admin)
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}
