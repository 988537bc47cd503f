// Stores the events of concurrent requests of one app together, with a bounded number of events per statement.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import type { MergeOutcome, Merger } from '../storage/merge.ts'
import { announceFeedJob, feedJobInsert } from '../users/change-feed/change-feed.ts'
import { userIdOfRow } from '../users/reference-store.ts'
import { oldestValidKeyTime } from './delete.ts'
import type { EventMonths } from './months.ts'
import { HAS_FEED_ENTRIES, insertEvents, type NewEvent } from './store.ts'

/** Stores the events of a request, all or none. Returns the indexes of those whose user does not exist. */
export type InsertEvents = (appId: AppId, events: NewEvent[]) => Promise<Set<number>>

const EVENTS_AT_ONCE = 5_000

type InsertEventsContext = { db: Db; clock: Clock; newId: NewId; merger: Merger; months: EventMonths }

export function createInsertEvents({ db, clock, newId, merger, months }: InsertEventsContext): InsertEvents {
  const queue = createQueue({ clock, newId })
  async function insertTogether(appId: AppId, requests: NewEvent[][]): Promise<MergeOutcome<Set<number>>[]> {
    const now = clock.now()
    await months.prepare(now)
    const times = { now, keysFrom: oldestValidKeyTime(now) }
    const job = feedJobInsert(queue, appId, HAS_FEED_ENTRIES, now)
    const { unknown, isWaiting } = await insertEvents(db, appId, userIdOfRow(appId), job, requests.flat(), times)
    // Not awaited: accepting the event does not depend on it.
    if (isWaiting) void announceFeedJob(queue, db, appId)
    let first = 0
    return requests.map(({ length }) => {
      const places = new Set<number>()
      for (let i = 0; i < length; i++) if (unknown.has(first + i)) places.add(i)
      first += length
      return { value: places }
    })
  }

  return merger.merged({
    name: 'events.insert',
    async run(appId, requests: NewEvent[][]) {
      const outcomes: MergeOutcome<Set<number>>[] = []
      for (const together of bounded(requests)) {
        try {
          outcomes.push(...(await insertTogether(appId, together)))
        } catch (error) {
          // The groups before this one are stored, so only the requests of this group get the error.
          outcomes.push(...together.map(() => ({ error })))
        }
      }
      return outcomes
    },
  })
}

/** Groups requests up to the maximum number of events; never splits a request. */
function bounded(requests: NewEvent[][]): NewEvent[][][] {
  const groups: NewEvent[][][] = []
  let room = 0
  for (const request of requests) {
    if (request.length > room) {
      groups.push([])
      room = EVENTS_AT_ONCE
    }
    groups.at(-1)?.push(request)
    room -= request.length
  }
  return groups
}
