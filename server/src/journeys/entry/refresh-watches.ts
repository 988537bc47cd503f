// The watches of an app: its users are watched for exactly the triggers of its live journeys.

import { lockApp } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { setWatches } from '../../users/change-feed/change-feed.ts'
import type { FeedWatch } from '../../users/change-feed/feed.ts'
import { compileJourney } from '../runs/compile-journey.ts'
import { findLiveJourneys } from '../store.ts'
import { triggersOf } from './triggers.ts'

/**
 * Called after the change in every transaction that changes which journeys are live, or their triggers. The app's lock makes the second
 * of two such transactions see what the first has changed.
 */
export async function refreshWatches(db: Db, appId: AppId): Promise<void> {
  await lockApp(db, appId)
  const journeys = await findLiveJourneys(db, appId)
  const watches = journeys.flatMap((journey) => triggersOf(compileJourney(journey)).watches)
  const distinct = new Map(watches.map((it): [string, FeedWatch] => [`${it.kind} ${it.name}`, it]))
  await setWatches(db, appId, [...distinct.values()])
}
