// All SQL on exports, except the rows that they contain: see rows-store.ts.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { Export, ExportId, ExportRequest } from './export.ts'

export type NewExport = { id: ExportId; request: ExportRequest; secretHash: Buffer; now: Date }

/** Returns false while another export of its kind is being created. */
export async function insertExport(db: Db, appId: AppId, { id, request, secretHash, now }: NewExport) {
  const made = await db.query(sql`
    insert into exports (app_id, id, kind, secret_hash, request, requested_at)
    select a.id, ${id}::uuid, ${request.kind}::text, ${secretHash}::bytea, ${JSON.stringify(request)}::jsonb,
      ${now}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict do nothing
    returning id`)
  return made.length > 0
}

export async function findExport(db: Db, appId: AppId, id: ExportId): Promise<Export | undefined> {
  const [found] = await db.query<Export>(sql`
    select e.id, e.request, e.state, e.secret_hash, e.progress, e.chunk_count, e.byte_count, e.row_count, e.ended_at
    from exports e
    where e.app_id = ${appId} and e.id = ${id}`)
  return found
}

export const insertChunk = (db: Db, appId: AppId, id: ExportId, n: number, content: Buffer) =>
  db.query(sql`
    insert into export_chunks (app_id, export_id, n, content)
    select a.id, ${id}::uuid, ${n}::integer, ${content}::bytea from apps a where a.id = ${appId}`)

export async function findChunk(db: Db, appId: AppId, id: ExportId, n: number): Promise<Buffer | undefined> {
  const [found] = await db.query<{ content: Buffer }>(sql`
    select c.content from export_chunks c where c.app_id = ${appId} and c.export_id = ${id} and c.n = ${n}`)
  return found?.content
}

export type ExportStep = { progress: unknown; chunks: number; bytes: number; rows: number }

export const advanceExport = (db: Db, appId: AppId, id: ExportId, { progress, chunks, bytes, rows }: ExportStep) =>
  db.query(sql`
    update exports
    set progress = ${JSON.stringify(progress)}::jsonb, chunk_count = chunk_count + ${chunks},
      byte_count = byte_count + ${bytes}, row_count = row_count + ${rows}
    where app_id = ${appId} and id = ${id}`)

export const endExport = (db: Db, appId: AppId, id: ExportId, state: 'ready' | 'failed', now: Date) =>
  db.query(sql`
    update exports set state = ${state}, ended_at = ${now}
    where app_id = ${appId} and id = ${id} and state = 'making'`)

/** Ends exports that nobody creates any more because their job was given up. */
export const failAbandoned = (db: Db, appId: AppId, since: Date, now: Date) =>
  db.query(sql`
    update exports set state = 'failed', ended_at = ${now}
    where app_id = ${appId} and state = 'making' and requested_at < ${since}`)

export const findOldExports = (db: Db, appId: AppId, until: Date) =>
  db.query<{ id: ExportId }>(sql`select e.id from exports e where e.app_id = ${appId} and e.ended_at <= ${until}`)

/** Deletes some of the chunks. A result below `limit` means that none are left. */
export async function deleteChunks(db: Db, appId: AppId, id: ExportId, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from export_chunks
    where app_id = ${appId} and export_id = ${id} and ctid = any(array(
      select ctid from export_chunks
      where app_id = ${appId} and export_id = ${id}
      order by n
      limit ${limit}
      for update skip locked))
    returning n`)
  return deleted.length
}

export const deleteExport = (db: Db, appId: AppId, id: ExportId) =>
  db.query(sql`delete from exports where app_id = ${appId} and id = ${id}`)
