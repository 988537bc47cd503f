// Creates the file in batches of rows. Each is compressed separately and stored together with its position, so that
// another worker can continue from there. Memory holds only one batch, however long the file is.

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
      // Ending the failed export lets the next one of its kind begin.
      if (!work.signal.aborted && attempts + 1 >= MAX_ATTEMPTS)
        await endExport(ctx.db, appId, key, 'failed', ctx.clock.now())
      throw error
    }
  },
})

/** Returns undefined when there is nothing more to do. */
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

/** A gzip file may consist of several members, which are unpacked one after the other. */
async function compressed({ chunkCount }: Export, sheet: Sheet, lines: Cell[][]): Promise<Buffer[]> {
  const text = [...(chunkCount === 0 ? [sheet.columns] : []), ...lines].map(csvLine).join('')
  if (text === '') return []
  const bytes = await compress(text)
  return Array.from({ length: Math.ceil(bytes.length / MAX_CHUNK_BYTES) }, (_, n) =>
    bytes.subarray(n * MAX_CHUNK_BYTES, (n + 1) * MAX_CHUNK_BYTES),
  )
}

/** Inserted one at a time, because each chunk is large and there are few. */
async function addChunks(db: Db, appId: AppId, { id, chunkCount }: Export, chunks: Buffer[]) {
  for (const [n, chunk] of chunks.entries()) await insertChunk(db, appId, id, chunkCount + n, chunk)
}
