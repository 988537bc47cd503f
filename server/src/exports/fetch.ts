// Downloads a file by its address. A wrong address and a deleted file give the same answer.

import { timingSafeEqual } from 'node:crypto'
import { AppError, forbidden } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import { sha256 } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'
import type { ExportsContext } from './context.ts'
import { isExpired } from './delete-expired.ts'
import type { Export } from './export.ts'
import { findChunk, findExport } from './store.ts'

export type ExportFile = { size: number; chunks: AsyncIterable<Uint8Array> }

const notFound = () => new AppError('not-found', { code: 'export-0', title: 'There is no such file' })

export async function fetchExport(
  { db, now }: ExportsContext,
  appId: string,
  id: string,
  file: string,
): Promise<ExportFile> {
  const [, secret] = /^([\w-]{1,128})\.csv\.gz$/.exec(file) ?? []
  if (secret === undefined || !isUuid(appId) || !isUuid(id)) throw notFound()
  const it = await findExport(db, appId, id)
  if (!it || !timingSafeEqual(it.secretHash, sha256(secret))) throw notFound()
  if (it.state === 'making') throw forbidden('The file is not ready yet')
  if (it.state === 'failed' || isExpired(it, now())) throw notFound()
  return { size: it.byteCount, chunks: chunksOf(db, appId, it) }
}

async function* chunksOf(db: Db, appId: AppId, { id, chunkCount }: Export): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < chunkCount; n++) {
    const chunk = await findChunk(db, appId, id, n)
    if (!chunk) throw new Error('the file was deleted while it was read')
    yield chunk
  }
}
