// Makes the file, a stretch at a time: each is compressed by itself and stored together with how far it goes, so that
// whoever takes over goes on from there. Memory holds one stretch, however long the file is.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { JobHandler, JobRun } from '../queue/job.ts'
import { AUDIENCE_SCAN_HANDLER, type ScanAudience } from '../segments/scan.ts'
import type { Db } from '../storage/db.ts'
import { type Cell, csvLine } from './csv.ts'
import type { Export } from './export.ts'
import { type Sheet, type SheetBatch, sheetOf } from './sheets.ts'
import { advanceExport, endExport, findExport, insertChunk } from './store.ts'

export const MAKE_EXPORT = 'exports.make'

const MAX_ATTEMPTS = 5
export const TIME_LIMIT_MS = 12 * 3_600_000
const MAX_CHUNK_BYTES = 1_048_576
const MAX_FILE_BYTES = 100_000_000_000

type MakeContext = { db: Db; clock: Clock; scanAudience: ScanAudience }

export const makeExport = (ctx: MakeContext): JobHandler => ({
  maxAttempts: MAX_ATTEMPTS,
  timeLimitMs: TIME_LIMIT_MS,
  whenExhausted: 'drop',
  ...AUDIENCE_SCAN_HANDLER,
  async run(work) {
    const { appId, key, attempts } = work.job
    try {
      for (let last = await addBatch(ctx, work); last; last = await addBatch(ctx, work, last.nextSize))
        work.signal.throwIfAborted()
    } catch (error) {
      // The next one may begin.
      if (!work.signal.aborted && attempts + 1 >= MAX_ATTEMPTS)
        await endExport(ctx.db, appId, key, 'failed', ctx.clock.now())
      throw error
    }
  },
})

/** Undefined when there is no more to do. */
async function addBatch(
  { db, clock, scanAudience }: MakeContext,
  { job, signal, isStillHeld, recordProgress }: JobRun,
  size?: number,
): Promise<Pick<SheetBatch, 'nextSize'> | undefined> {
  const { appId, key: id } = job
  const it = await findExport(db, appId, id)
  if (it?.state !== 'making') return undefined
  const sheet = sheetOf(it.request)
  const stretch = await sheet.next({ db, scanAudience, signal, size }, appId, it.progress, clock.now())
  const { lines, cursor: place } = stretch
  const chunks = await compressed(it, sheet, lines)
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  return db.transaction(async (db) => {
    if (!(await isStillHeld(db))) return undefined
    if (it.byteCount + bytes > MAX_FILE_BYTES) {
      await endExport(db, appId, id, 'failed', clock.now())
      return undefined
    }
    await addChunks(db, appId, it, chunks)
    await advanceExport(db, appId, id, { progress: place ?? null, chunks: chunks.length, bytes, rows: lines.length })
    await recordProgress(db)
    if (place === undefined) await endExport(db, appId, id, 'ready', clock.now())
    return place === undefined ? undefined : stretch
  })
}

const compress = promisify(gzip)

/** A gzip file may have several members: what is unpacked is all of them in a row. */
async function compressed({ chunkCount }: Export, sheet: Sheet, lines: Cell[][]): Promise<Buffer[]> {
  const text = [...(chunkCount === 0 ? [sheet.columns] : []), ...lines].map(csvLine).join('')
  if (text === '') return []
  const bytes = await compress(text)
  return Array.from({ length: Math.ceil(bytes.length / MAX_CHUNK_BYTES) }, (_, n) =>
    bytes.subarray(n * MAX_CHUNK_BYTES, (n + 1) * MAX_CHUNK_BYTES),
  )
}

/** One at a time: each is large, and there are few. */
async function addChunks(db: Db, appId: AppId, { id, chunkCount }: Export, chunks: Buffer[]) {
  for (const [n, chunk] of chunks.entries()) await insertChunk(db, appId, id, chunkCount + n, chunk)
}
