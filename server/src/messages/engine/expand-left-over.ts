// Open messages are expanded whenever somebody is added. Here it is seen to that they are closed when their time is over, and that
// nobody waits for good whose job was lost.

import { expandJob } from '../jobs.ts'
import { findLeftOverAcrossApps } from '../recipient-store.ts'
import { CLOSING_MARGIN_MS } from './audience.ts'
import type { Engine } from './engine.ts'

export async function expandLeftOver({ db, clock, queue }: Pick<Engine, 'db' | 'clock' | 'queue'>): Promise<void> {
  const found = await findLeftOverAcrossApps(db, new Date(clock.now().getTime() - CLOSING_MARGIN_MS))
  for (const [appId, messages] of Map.groupBy(found, ({ appId }) => appId))
    await queue.enqueue(
      db,
      messages.map((message) => expandJob(appId, message)),
    )
}
