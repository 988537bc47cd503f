// What an app's users are watched for: exactly what its live journeys listen for, and nothing where there are none.

import { lockApp } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { setWatches } from '../../users/change-feed/change-feed.ts'
import type { FeedWatch } from '../../users/change-feed/feed.ts'
import { compileJourney } from '../runs/compile-journey.ts'
import { findLiveJourneys } from '../store.ts'
import { triggersOf } from './triggers.ts'

/**
 * In every transaction that changes which journeys of the app are live, or what one of them listens for, after the change.
 * They take turns, so that of two at once the second knows what the first has changed.
 */
export async function refreshWatches(db: Db, appId: AppId): Promise<void> {
  await lockApp(db, appId)
  const journeys = await findLiveJourneys(db, appId)
  const watches = journeys.flatMap((journey) => triggersOf(compileJourney(journey)).watches)
  const distinct = new Map(watches.map((it): [string, FeedWatch] => [`${it.kind} ${it.name}`, it]))
  await setWatches(db, appId, [...distinct.values()])
}
