// Loads email events from elsewhere, line by line, for migrations and tests.

import { findApp } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import { createLoadBatch, type LoadEventsContext } from './load-batch.ts'
import { LineError, type LoadLine, parseLoadLine } from './read-event-line.ts'
import { preparePartitions } from './retention.ts'

export type LoadEventsOptions = {
  /** The first line to be loaded; earlier ones are skipped. */
  from?: number | undefined
  /** Called for each refused line, with the reason. */
  refuse(line: number, reason: string): void
}

export type LoadResult = { loaded: number; refused: number }

const LINES_AT_ONCE = 5_000

/** Loading failed partway for a reason that no line is responsible for. */
export class LoadError extends Error {}

export async function loadEvents(
  ctx: LoadEventsContext,
  lines: AsyncIterable<string>,
  { from = 1, refuse }: LoadEventsOptions,
): Promise<LoadResult> {
  const now = ctx.clock.now()
  await preparePartitions(ctx.db, now)
  const result: LoadResult = { loaded: 0, refused: 0 }
  const knownApps = new Map<AppId, boolean>()
  const loadBatch = createLoadBatch(ctx, now)
  let writing: Promise<void> = Promise.resolve()
  let [number, firstUnloaded] = [0, from]
  let batch: LoadLine[] = []

  // The next batch is read while the previous one is written.
  async function flush() {
    await writing
    const [full, upTo] = [batch, number]
    batch = []
    writing = loadBatch(full).then(() => {
      result.loaded += full.length
      firstUnloaded = upTo + 1
    })
    // The next flush awaits this promise. The handler prevents an unhandled rejection until then.
    writing.catch(() => {})
  }

  const isKnown = async (appId: AppId) => {
    const known = knownApps.get(appId) ?? (await findApp(ctx.db, appId)) !== undefined
    knownApps.set(appId, known)
    return known
  }

  try {
    for await (const text of lines) {
      number++
      if (number < from || text.trim() === '') continue
      try {
        const line = parseLoadLine(text, now)
        if (!(await isKnown(line.appId))) throw new LineError('there is no such app')
        batch.push(line)
      } catch (error) {
        if (!(error instanceof LineError)) throw error
        result.refused++
        refuse(number, error.message)
      }
      if (batch.length === LINES_AT_ONCE) await flush()
    }
    await flush()
    await writing
  } catch (error) {
    await writing.catch(() => {})
    const where = `everything before line ${firstUnloaded} is loaded: go on with --from ${firstUnloaded}`
    throw new LoadError(`${(error as Error).message}; ${where}`, { cause: error })
  }
  return result
}
