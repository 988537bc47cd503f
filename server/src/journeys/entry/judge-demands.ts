import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { findMembership, type SegmentDemand } from '../runs/membership.ts'
import type { MeetsDemand } from './triggers.ts'

/** Finds for many users which demands of several journeys they meet. Equal demands are evaluated once. */
export async function findMetDemands(
  db: Db,
  appId: AppId,
  demands: readonly SegmentDemand[],
  userIds: readonly UserId[],
  now: Date,
): Promise<MeetsDemand> {
  const distinct = new Map(demands.map((demand) => [nameOf(demand), demand]))
  const places = new Map([...distinct.keys()].map((name, n) => [name, n]))
  const placeOf = new Map(demands.map((demand) => [demand, places.get(nameOf(demand)) as number]))
  const answers = await findMembership(db, appId, [...distinct.values()], userIds, now)
  return (userId, demand) => answers.get(userId)?.[placeOf.get(demand) as number] ?? false
}

const nameOf = ({ included, excluded }: SegmentDemand) => `${included} not ${excluded}`
