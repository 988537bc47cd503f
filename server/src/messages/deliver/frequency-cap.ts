// Frequency caps: a user gets at most a number of messages of a channel within any window. Caps are checked and
// recorded under the lock of the user's row, in the transaction that marks deliveries as being sent. One message to
// several devices counts once; in another run it counts again.

import type { AppId, UserId } from '../../lib/ids.ts'
import { type FrequencyCap, windowMsOf } from '../../sending/settings.ts'
import type { Db } from '../../storage/db.ts'
import { NO_RUN } from '../message.ts'
import { lockRecentSends, type SendTimes, writeRecentSends } from './recent-sends-store.ts'
import type { DueDelivery } from './store.ts'

type CappedDelivery = Pick<DueDelivery, 'messageId' | 'subscriptionId' | 'runId' | 'userId'>

const messageOf = ({ messageId, runId }: CappedDelivery) => (runId === NO_RUN ? messageId : `${messageId}/${runId}`)
const nameOf = (it: CappedDelivery) => `${messageOf(it)} ${it.subscriptionId}`
const messagesOf = (sends: SendTimes) => new Set(Object.keys(sends).map((name) => name.split(' ')[0]))
const usersOf = (deliveries: readonly CappedDelivery[]): UserId[] =>
  [...new Set(deliveries.map(({ userId }) => userId))].sort()

export type Admission = {
  isAdmitted(it: CappedDelivery): boolean
  /** Records the admitted deliveries that are actually sent. */
  recordSent(sent: readonly CappedDelivery[]): Promise<void>
}

export async function admitUnderCap(
  db: Db,
  appId: AppId,
  cap: FrequencyCap,
  deliveries: readonly CappedDelivery[],
  now: Date,
): Promise<Admission> {
  const since = now.getTime() - windowMsOf(cap)
  const locked = await lockRecentSends(db, appId, cap.channel, usersOf(deliveries), now)
  const recent = new Map([...locked].map(([userId, sends]) => [userId, sendsSince(sends, since)]))
  const messages = new Map([...recent].map(([userId, sends]) => [userId, messagesOf(sends)]))
  const admitted = new Set<CappedDelivery>()
  for (const it of deliveries) {
    const ofUser = messages.get(it.userId) ?? new Set()
    if (!ofUser.has(messageOf(it)) && ofUser.size >= cap.count) continue
    // An admitted delivery counts for the rest of the batch.
    ofUser.add(messageOf(it))
    admitted.add(it)
  }
  return {
    isAdmitted: (it) => admitted.has(it),
    async recordSent(sent) {
      for (const it of sent) (recent.get(it.userId) as SendTimes)[nameOf(it)] = now.getTime()
      const changed = usersOf(sent).map((userId) => ({ userId, sends: recent.get(userId) as SendTimes }))
      if (changed.length > 0) await writeRecentSends(db, appId, cap.channel, changed, now)
    },
  }
}

/** Deliveries that the provider refused were not sent. */
export async function removeSends(
  db: Db,
  appId: AppId,
  cap: FrequencyCap,
  refused: readonly CappedDelivery[],
  now: Date,
) {
  const locked = await lockRecentSends(db, appId, cap.channel, usersOf(refused), now)
  const names = new Set(refused.map(nameOf))
  const changed = [...locked].map(([userId, sends]) => ({
    userId,
    sends: Object.fromEntries(Object.entries(sends).filter(([name]) => !names.has(name))),
  }))
  await writeRecentSends(db, appId, cap.channel, changed, now)
}

const sendsSince = (sends: SendTimes, sinceMs: number): SendTimes =>
  Object.fromEntries(Object.entries(sends).filter(([, ms]) => ms > sinceMs))
