// Events of emails from elsewhere, line by line: for moving house, and for tests.

import { findApp } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import { createLoadBatch, type LoadEventsContext } from './load-batch.ts'
import { LineError, type LoadLine, parseLoadLine } from './read-event-line.ts'
import { preparePartitions } from './retention.ts'

export type LoadEventsOptions = {
  /** The first line to be loaded; those before it are passed over. */
  from?: number | undefined
  /** Is told of each line that is refused, and why. */
  refuse(line: number, reason: string): void
}

export type LoadResult = { loaded: number; refused: number }

const LINES_AT_ONCE = 5_000

/** Some of it is loaded, and then something failed that is no line's fault. */
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

  // The next batch is read while the one before it is written.
  async function flush() {
    await writing
    const [full, upTo] = [batch, number]
    batch = []
    writing = loadBatch(full).then(() => {
      result.loaded += full.length
      firstUnloaded = upTo + 1
    })
    // Awaited by the next flush; until then a failure is nobody's yet.
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
