// Users whose time to enter again has come do so if they are in the audience; the others enter as soon as they are.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { CountChange } from '../stats-store.ts'
import type { CompiledJourney } from './compile-journey.ts'
import type { RunsContext } from './context.ts'
import { audienceDemand, findMembership } from './membership.ts'
import type { RunShard } from './run.ts'
import { freeSlots, insertRuns, type LockedRun } from './run-store.ts'

export async function reenterUsers(
  { newId }: Pick<RunsContext, 'newId'>,
  db: Db,
  appId: AppId,
  { id: journeyId, audience }: CompiledJourney,
  part: RunShard,
  over: readonly LockedRun[],
  now: Date,
): Promise<CountChange[]> {
  if (over.length === 0) return []
  await freeSlots(
    db,
    appId,
    over.map(({ place }) => place),
  )
  if (audience.kind !== 'segment') return []
  const users = over.map(({ userId }) => userId)
  const members = await findMembership(db, appId, [audienceDemand(audience)], users, now)
  const again = users.filter((userId) => members.get(userId)?.[0])
  const entered = await insertRuns(
    db,
    appId,
    part,
    again.map((userId) => ({ id: newId(), journeyId, userId })),
    now,
  )
  return [{ placeId: journeyId, fact: 'started', by: entered.length }]
}
