import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'

export type Migration = { version: number; name: string; text: string; checksum: string }

const FOLDER = new URL('../../migrations/', import.meta.url)
/** "carillon" on a phone keypad; any unique constant works. */
const LOCK = 22_745_566
const LOCK_NOT_AVAILABLE = '55P03'

export class MigrationError extends Error {}

export async function readMigrations(folder = FOLDER): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => /^\d{4}_.+\.sql$/.test(file)).sort()
  return Promise.all(
    files.map(async (name) => {
      const text = await readFile(new URL(name, folder), 'utf8')
      return { version: Number(name.slice(0, 4)), name, text, checksum: hash('sha256', text, 'hex') }
    }),
  )
}

/**
 * Returns the migrations that this database lacks. Throws when the database is newer or an applied migration was
 * edited.
 */
export async function pendingMigrations(client: pg.ClientBase, migrations: Migration[]): Promise<Migration[]> {
  const { rows } = await client.query("select to_regclass('schema_migrations') is not null as present")
  if (!rows[0].present) return migrations
  const applied: { version: number; name: string; checksum: string }[] = (
    await client.query('select version, name, checksum from schema_migrations order by version')
  ).rows
  const known = new Map(migrations.map((migration) => [migration.version, migration]))
  for (const row of applied) {
    const migration = known.get(row.version)
    if (!migration)
      throw new MigrationError(
        `the database has migration ${row.name}, which this version of Carillon does not know; start the newer version`,
      )
    if (migration.checksum !== row.checksum)
      throw new MigrationError(`migration ${row.name} was changed after it was applied`)
  }
  const done = new Set(applied.map((row) => row.version))
  return migrations.filter((migration) => !done.has(migration.version))
}

/**
 * Brings the schema up to date. One node migrates while the others wait for the lock. Each migration is one
 * transaction, so a crash never leaves one half applied. A table in use is waited for 5 s before the migration fails
 * with a message.
 */
export async function migrate(
  connection: pg.ClientConfig,
  appliedAt: Date,
  migrations?: Migration[],
): Promise<string[]> {
  const all = migrations ?? (await readMigrations())
  const client = new pg.Client({ ...connection, application_name: 'carillon migrate' })
  // A broken connection fails its statement; without a listener the event would also end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    await client.query(`create table if not exists schema_migrations (
      version integer constraint schema_migrations_pk primary key,
      name text not null, checksum text not null, applied_at timestamptz not null)`)
    const pending = await pendingMigrations(client, all)
    for (const migration of pending) await apply(client, migration, appliedAt)
    return pending.map((migration) => migration.name)
  } finally {
    await client.end()
  }
}

async function apply(client: pg.Client, migration: Migration, appliedAt: Date) {
  try {
    await client.query('begin')
    await client.query("set local lock_timeout = '5s'")
    await client.query(migration.text)
    await client.query('insert into schema_migrations (version, name, checksum, applied_at) values ($1, $2, $3, $4)', [
      migration.version,
      migration.name,
      migration.checksum,
      appliedAt,
    ])
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    const reason =
      (error as pg.DatabaseError).code === LOCK_NOT_AVAILABLE
        ? 'a table that it changes was in use for 5 s; try again when the database is quieter'
        : (error as Error).message
    throw new MigrationError(`migration ${migration.name} failed and was rolled back: ${reason}`)
  }
}
